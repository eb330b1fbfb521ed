"""The judge's side: a runner owns zygotes, a session owns one candidate's children.

    with Runner(device="cpu") as runner, runner.open(candidate) as session:
        observation = session.call(arguments, poison=poison)

Nothing here imports torch. A deadline, a death or a malformed answer is an observation, never an
exception; the next call finds a fresh child. A runner belongs to the process that made it.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Literal, Self, Unpack

from kerneltruth.errors import EnvironmentFault
from kerneltruth.runner.arguments import Argument, TensorArgument
from kerneltruth.runner.candidate import Candidate
from kerneltruth.runner.claims import checked
from kerneltruth.runner.extensions import kit_folder, precompile_ahead
from kerneltruth.runner.link import Ended, Link, nonsense
from kerneltruth.runner.protocol import (
    Call,
    CallSettings,
    ChildMessage,
    Load,
    Observation,
    Prepare,
    ProtocolError,
)
from kerneltruth.runner.sandbox import ResourceLimits
from kerneltruth.runner.zygote_client import Zygote, ZygoteLost, zygote_environment

# "time_compiled" is "time" in a child that knows `torch.compile` already.
Mode = Literal["run", "compile", "time", "time_compiled"]

CALL_S = 30.0
LOAD_S = 60.0
# nvcc is slow.
LOAD_CUDA_S = 240.0
# `torch.compile` must not start processes of its own: the child may have few.
_TIMED = {"TORCHINDUCTOR_COMPILE_THREADS": "1"}


class Runner:
    """Opens sessions for candidates on one device.

    Attributes:
        device: "cpu" or "cuda:N".
        targets: the targets of compile mode.
        load_s: seconds that a candidate may take to load, unless nvcc builds it.
    """

    def __init__(
        self,
        *,
        device: str = "cpu",
        targets: Sequence[str] = ("sm_90",),
        work_root: Path | None = None,
        cache_root: Path | None = None,
        limits: ResourceLimits | None = None,
        load_s: float = LOAD_S,
    ) -> None:
        self.device = device
        self.targets = tuple(targets)
        self.load_s = load_s
        on_cpu = device == "cpu"
        self._cache_root = cache_root.absolute() if cache_root else None
        self._limits = limits or (
            ResourceLimits() if on_cpu else ResourceLimits(address_space=None)
        )
        self._work_root = work_root
        self._built = self._cache_root / "driver" if self._cache_root and not on_cpu else None
        self._numbers = itertools.count()
        self._zygotes: dict[tuple[bool, bool], Zygote] = {}
        self._sessions: set[Session] = set()
        self._pid = os.getpid()
        self._starting = threading.Lock()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self, modes: Iterable[Mode] = ("run",)) -> None:
        """Begin to warm up for these modes, and return at once."""
        for mode in modes:
            self._zygote(mode)

    def versions(self) -> dict[str, str]:
        """Return the versions of Python, torch and Triton in children; wait for the warm-up."""
        return self._zygote("run").ready()

    @property
    def keeps_compiled(self) -> bool:
        """Return whether what a child compiles is reused by its candidate's next child."""
        return self._cache_root is not None

    def open(
        self,
        candidate: Candidate,
        mode: Mode = "run",
        *,
        ahead: bool = False,
        cold: bool = False,
        cache: str | None = None,
    ) -> Session:
        """Open a session for the candidate; its child is loading when this returns.

        Args:
            candidate: to be loaded.
            mode: what the child does with it.
            ahead: whether the child only starts, and loads nothing before its first request.
            cold: whether it compiles from scratch, and as PyTorch does.
            cache: where compiled files go, instead of the candidate's own folder.

        Raises:
            EnvironmentFault: no child can be started on this machine.
        """
        session = Session(self, candidate, mode, ahead=ahead, cold=cold, cache=cache)
        self._sessions.add(session)
        return session

    def close(self) -> None:
        """End all children and zygotes, and remove their folders."""
        if os.getpid() != self._pid:
            return
        for session in list(self._sessions):
            session.close()
        for zygote in self._zygotes.values():
            zygote.close()
        self._zygotes.clear()

    def load_allowance(self, candidate: Candidate) -> float:
        """Return the seconds that a candidate may take to load."""
        return LOAD_CUDA_S if candidate.language == "cuda" else self.load_s

    def _zygote(self, mode: Mode) -> Zygote:
        interpret, compiles = self.device == "cpu" and mode == "run", mode == "time_compiled"
        key = (interpret, compiles)
        with self._starting:
            if key not in self._zygotes:
                self._zygotes[key] = Zygote(
                    interpret=interpret,
                    hide_cuda=self.device == "cpu",
                    work_root=self._work_root,
                    compiles=compiles,
                    built=self._built,
                )
            return self._zygotes[key]

    def _fork(
        self, candidate: Candidate, mode: Mode, *, cold: bool, cache_name: str | None
    ) -> Link:
        root = None if cold else self._cache_root
        cache = root / (cache_name or candidate.sha256) if root else None
        request = {
            "folder": f"child-{os.getpid()}-{next(self._numbers)}",
            "cache": str(cache) if cache else None,
            "limits": asdict(self._limits),
            "environment": self._environment(candidate, mode),
        }
        for _ in range(2):
            zygote = self._zygote(mode)
            try:
                return zygote.fork(request)
            except ZygoteLost:
                zygote.close()
                self._zygotes = {k: z for k, z in self._zygotes.items() if z is not zygote}
        raise EnvironmentFault("the parent of candidate processes dies again and again")

    def _kit(self, candidate: Candidate) -> Path | None:
        """Return where headers for the candidate's extensions are, or will be, precompiled."""
        if self._cache_root is None or candidate.language != "cuda" or self.device == "cpu":
            return None
        environment = zygote_environment(interpret=False, hide_cuda=True)
        kit = kit_folder(self._cache_root / "kits", environment)
        precompile_ahead(kit, candidate.source, environment)
        return kit

    def _environment(self, candidate: Candidate, mode: Mode) -> dict[str, str]:
        if self.device == "cpu":
            return {}
        # A timed candidate builds as it would elsewhere.
        return _TIMED if mode.startswith("time") else context_environment(candidate)

    def _forget(self, session: Session) -> None:
        self._sessions.discard(session)


def context_environment(candidate: Candidate) -> dict[str, str]:
    """Return environment variables for the child's CUDA context.

    The driver makes contexts one after the other, and most of the time goes into their hardware
    queues: on an H100 0.19 s for each fresh process with the usual 8 queues, 0.08 s with one. With
    one queue the work of several streams runs in the order of submission, which hides races between
    streams, so a source that mentions streams keeps all queues.
    """
    return {} if "stream" in candidate.source.lower() else {"CUDA_DEVICE_MAX_CONNECTIONS": "1"}


class Session:
    """One candidate, called any number of times; a dead child is replaced on the next call."""

    def __init__(
        self,
        runner: Runner,
        candidate: Candidate,
        mode: Mode,
        *,
        ahead: bool,
        cold: bool,
        cache: str | None,
    ) -> None:
        self.candidate = candidate
        self.mode: Mode = mode
        self._runner = runner
        self._link: Link | None = None
        self._loaded: Observation | None = None
        self._load_deadline = 0.0
        self._ahead = ahead
        self._cold = cold
        self._cache = cache
        self._preparing = False
        self._pausing = False
        self._begin()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def device(self) -> str:
        """Return where a right result lies: Triton candidates on a CPU see CUDA."""
        if self._runner.device == "cpu" and self.candidate.language == "triton":
            return "cuda:0"
        return self._where

    @property
    def pid(self) -> int | None:
        """Return the child's process id; None before it has begun, and without a child."""
        link = self._link
        return None if link is None else link.pid

    @property
    def _where(self) -> str:
        """Return where arguments are placed: on the CPU for NumPy and for compiling."""
        host = self.candidate.language == "numpy" or self.mode == "compile"
        return "cpu" if host else self._runner.device

    @property
    def loaded(self) -> Observation:
        """Return how loading the candidate ended; wait for it."""
        self.load()
        if self._loaded is None:
            self._loaded = self._await_load()
        return self._loaded

    def call(
        self,
        arguments: Sequence[Argument],
        *,
        poison: bytes,
        deadline_s: float = CALL_S,
        **settings: Unpack[CallSettings],
    ) -> Observation:
        """Call the entry once, with the settings of `Call`, and return the observation.

        A candidate that does not load returns its load's observation.
        """
        call = Call(arguments=tuple(arguments), poison=poison, **settings)
        observation = self._attempt(call, deadline_s)
        if observation.ended == "lost":
            observation = self._attempt(call, deadline_s)
        return observation

    def request(
        self,
        message: ChildMessage,
        *,
        sizes: dict[str, int] | None = None,
        deadline_s: float = CALL_S,
    ) -> Observation:
        """Send a message (in mode "time" not `Rehearse`) to a child; return the observation.

        A lost child takes what it holds with it: nothing is retried.

        Args:
            message: the request.
            sizes: for `Show`, bytes of the inputs that are shown.
            deadline_s: seconds that it may take.
        """
        if self._link is None:
            return Observation(ended="lost", message="the child that was timed is gone")
        if self.loaded.ended != "returned":
            return self.loaded
        return self._exchange(message, self._deadline(deadline_s), sizes or {})

    def prepared(self) -> None:
        """Wait until a child that was started ahead has its context on the device."""
        if self._preparing:
            self._preparing = False
            answer = self._exchange(None, self._load_deadline, {})
            if answer.ended != "returned":
                self._loaded = answer

    def load(self) -> None:
        """Make a child that was started ahead begin to load."""
        if self._ahead:
            self.prepared()
            self._ahead = False
            self._send_load()

    def load_instead(self, candidate: Candidate) -> None:
        """Make the child load another candidate in the same mode, both being the judge's own."""
        kept = self._link is not None and self.loaded.ended == "returned"
        self.candidate = candidate
        if not kept:
            self.restart()
            return
        self._loaded = None
        self._send_load()

    def pause(self) -> None:
        """Stop the child until `resume`; its deadlines wait. Any thread may call this."""
        self._pausing = True
        if (link := self._link) is not None:
            link.pause()

    @property
    def paused(self) -> bool:
        """Return whether the child has stopped, or there is none."""
        link = self._link
        return link is None or link.paused

    def resume(self) -> None:
        """Let the child continue."""
        self._pausing = False
        if (link := self._link) is not None:
            link.resume()

    def restart(self) -> None:
        """End the child and start a fresh one."""
        self._end()
        self._begin()

    def close(self, *, wait: bool = True) -> None:
        """End the child and all that it started; without `wait`, only request it."""
        self._end(wait=wait)
        self._runner._forget(self)

    def _attempt(self, call: Call, deadline_s: float) -> Observation:
        failed = self._loaded is not None and self._loaded.ended not in ("returned", "lost")
        if self._link is None and not failed:
            self._begin()
        if self.loaded.ended != "returned":
            return self.loaded
        sizes = {
            a.name: len(a.buffer)
            for a in call.arguments
            if isinstance(a, TensorArgument) and a.shown
        }
        return self._exchange(call, self._deadline(deadline_s), sizes)

    def _deadline(self, seconds: float) -> float:
        """Return the time `seconds` from now, on the child's clock."""
        assert self._link is not None
        return self._link.now() + seconds

    def _begin(self) -> None:
        self._loaded = None
        self._link = self._runner._fork(
            self.candidate, self.mode, cold=self._cold, cache_name=self._cache
        )
        if self._pausing:
            self._link.pause()
        if not self._ahead:
            self._send_load()
            return
        self._load_deadline = self._deadline(self._runner.load_s)
        try:
            self._link.send(Prepare(device=self._where), deadline=self._load_deadline)
            self._preparing = True
        except Ended as end:
            self._loaded = self._ended(end)

    def _send_load(self) -> None:
        if self._link is None:
            return
        kit = None if self._cold else self._runner._kit(self.candidate)
        self._load_deadline = self._deadline(self._runner.load_allowance(self.candidate))
        message = Load(
            source=self.candidate.source,
            filename=os.path.basename(self.candidate.path),
            language=self.candidate.language,
            entry=self.candidate.entry,
            device=self._where,
            mode="time" if self.mode == "time_compiled" else self.mode,
            targets=self._runner.targets if self.mode == "compile" else (),
            kit=None if kit is None else str(kit),
        )
        try:
            self._link.send(message, deadline=self._load_deadline)
        except Ended as end:
            self._loaded = self._ended(end)

    def _await_load(self) -> Observation:
        return self._exchange(None, self._load_deadline, {})

    def _exchange(
        self, call: ChildMessage | None, deadline: float, sizes: dict[str, int]
    ) -> Observation:
        """Send the call, if any, and receive the answer; a malformed one ends the child."""
        assert self._link is not None
        try:
            if call is not None:
                self._link.send(call, deadline=deadline)
            answer = checked(self._link.receive(deadline=deadline), sizes)
        except Ended as end:
            return self._ended(end)
        except ProtocolError as error:
            return self._ended(Ended(nonsense(error)))
        except BaseException:
            # Ctrl-C interrupted: the answer to this call must not be taken for the next one's.
            self._end()
            raise
        answer = replace(answer, output=self._link.take_output())
        if answer.dirty or answer.ended == "lost":
            self._end()
        return answer

    def _ended(self, end: Ended) -> Observation:
        output = self._link.take_output() if self._link is not None else ""
        self._end()
        return replace(end.observation, output=output)

    def _end(self, *, wait: bool = True) -> None:
        link, self._link = self._link, None
        if link is not None:
            link.kill(wait=wait)
