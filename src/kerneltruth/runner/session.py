"""A session: one candidate's children, one after the other."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, Protocol, Self, Unpack

from kerneltruth.runner.arguments import Argument, TensorArgument
from kerneltruth.runner.candidate import Candidate
from kerneltruth.runner.claims import checked
from kerneltruth.runner.keeper import Keeper
from kerneltruth.runner.kept_memory import KeptMemory, MemoryLost
from kerneltruth.runner.languages import TRITON_COMPILES
from kerneltruth.runner.link import LARGEST_ANSWER, Ended, Link, nonsense
from kerneltruth.runner.observation import Observation
from kerneltruth.runner.protocol import (
    Call,
    CallSettings,
    ChildMessage,
    Load,
    Prepare,
    ProtocolError,
    TooLarge,
)
from kerneltruth.runner.sandbox import is_at_rest

# "time_compiled" is "time" in a child that knows `torch.compile` already.
Mode = Literal["run", "compile", "time", "time_compiled"]

CALL_S = 30.0
# How long the last call's memory is watched while something is left that may write there: it costs
# each candidate that leaves a thread, even an idle one, as much.
LATE_S, _STEP_S = 0.5, 0.01
# Bytes that unknown results may take, beside eight times their inputs.
_RESULTS = 128 * 2**20


class ChildStarter(Protocol):
    """Where a session gets its children from; see `host.Runner`."""

    device: str
    targets: tuple[str, ...]
    load_s: float

    def fork(self, candidate: Candidate, mode: Mode, *, cold: bool, cache_name: str | None) -> Link:
        """Start a child."""
        ...

    def kit(self, candidate: Candidate) -> Path | None:
        """Return the folder of precompiled headers, if there is one."""
        ...

    def load_allowance(self, candidate: Candidate) -> float:
        """Return the seconds that a candidate may take to load."""
        ...

    def memory_of(self, where: str, mode: Mode) -> Callable[[int], KeptMemory] | None:
        """Return what makes memory of the judge's that a child there maps; None without any."""
        ...

    def forget(self, session: Session) -> None:
        """End the care for a session that is closed."""
        ...


class Session:
    """One candidate, called any number of times; a dead child is replaced on the next call."""

    def __init__(
        self,
        runner: ChildStarter,
        candidate: Candidate,
        mode: Mode,
        *,
        ahead: bool,
        cold: bool,
        cache: str | None,
    ) -> None:
        self.candidate = candidate
        self.mode: Mode = mode
        # Calls that were made again.
        self.lost = 0
        self._runner = runner
        self._link: Link | None = None
        # From the child's first call on, where the judge keeps memory.
        self._keeper: Keeper | None = None
        self._loaded: Observation | None = None
        self._load_deadline = 0.0
        self._ahead = ahead
        self._cold = cold
        self._cache = cache
        self._preparing = False
        self._pausing = False
        # By children that have ended.
        self._queued_s = 0.0
        self._begin()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def device(self) -> str:
        """Return where a right result lies: Triton candidates on a CPU see CUDA."""
        if self._runner.device == "cpu" and self.candidate.language in TRITON_COMPILES:
            return "cuda:0"
        return self._where

    @property
    def pid(self) -> int | None:
        """Return the child's process id; None before it has begun, and without a child."""
        link = self._link
        return None if link is None else link.pid

    @property
    def queued_s(self) -> float:
        """Return how long its children have waited for a processor; see `Link`."""
        return self._queued_s + (0.0 if self._link is None else self._link.queued_s)

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
            self._loaded = self._exchange(None, self._load_deadline, {}, limit=0)
        return self._loaded

    def call(
        self,
        arguments: Sequence[Argument],
        *,
        poison: bytes,
        deadline_s: float = CALL_S,
        most: int | None = None,
        **settings: Unpack[CallSettings],
    ) -> Observation:
        """Call the entry once, with the settings of `Call`, and return the observation.

        Results of more than `most` bytes are not received. A candidate that does not load returns
        its load's observation.
        """
        call = Call(arguments=tuple(arguments), poison=poison, **settings)
        buffers = [a.buffer for a in arguments if isinstance(a, TensorArgument)]
        size = sum(map(len, buffers))
        limit = size + (_RESULTS + 8 * size if most is None else most)
        if self.candidate.trusted:
            limit = LARGEST_ANSWER
        observation = self._attempt(call, deadline_s, limit)
        if observation.ended == "lost":
            self.lost += 1
            observation = self._attempt(call, deadline_s, limit)
        return observation

    def after_last(self) -> Observation:
        """Return what has changed in the judge's memory since the last call was read.

        It waits a while for threads and processes that the child has left.

        Raises:
            MemoryLost: the memory cannot be reached any more.
        """
        if self._keeper is None:
            return Observation(ended="returned")
        until = time.monotonic() + LATE_S
        while self.pid is not None and not is_at_rest(self.pid) and time.monotonic() < until:
            time.sleep(_STEP_S)
        inputs, result = self._keeper.changed()
        return Observation(ended="returned", inputs_changed=inputs, results_changed=result)

    def request(
        self,
        message: ChildMessage,
        *,
        sizes: dict[str, int] | None = None,
        deadline_s: float = CALL_S,
    ) -> Observation:
        """Send the child a message and return its observation. A timed child takes no `Rehearse`.

        Nothing is retried: what a lost child holds is lost with it.

        Args:
            message: what to send.
            sizes: for `Show`, the bytes of each input that it shows.
            deadline_s: how long the answer may take.
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
            answer = self._exchange(None, self._load_deadline, {}, 0)
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
        self._runner.forget(self)

    def _attempt(self, call: Call, deadline_s: float, limit: int) -> Observation:
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
        make = self._runner.memory_of(self._where, self.mode)
        if make is not None:
            self._keeper = self._keeper or Keeper(make)
            try:
                call = self._keeper.lay_out(call)
            except MemoryLost as error:
                # A fresh child holds no memory of the device yet.
                return self._ended(Ended(_lost(error)))
        return self._exchange(call, self._deadline(deadline_s), sizes, limit)

    def _deadline(self, seconds: float) -> float:
        """Return the time `seconds` from now, on the child's clock."""
        assert self._link is not None
        return self._link.now() + seconds

    def _begin(self) -> None:
        self._loaded = None
        self._link = self._runner.fork(
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
        self._keeper = None
        if self._link is None:
            return
        kit = None if self._cold else self._runner.kit(self.candidate)
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
            pretrained=self.candidate.pretrained,
        )
        try:
            self._link.send(message, deadline=self._load_deadline)
        except Ended as end:
            self._loaded = self._ended(end)

    def _exchange(
        self,
        call: ChildMessage | None,
        deadline: float,
        sizes: dict[str, int],
        limit: int = LARGEST_ANSWER,
    ) -> Observation:
        """Send the call, if any, and receive the answer; a malformed one ends the child."""
        assert self._link is not None
        try:
            if call is not None:
                self._link.send(call, deadline=deadline)
            received = self._link.receive(deadline=deadline, limit=limit)
            keeper = self._keeper if isinstance(call, Call) else None
            answer = checked(received, sizes, kept=keeper is not None)
            if keeper is not None:
                answer = keeper.read(answer, limit=limit)
        except Ended as end:
            return self._ended(end)
        except TooLarge as error:
            return self._ended(Ended(Observation(ended="flooded", message=str(error))))
        except ProtocolError as error:
            return self._ended(Ended(nonsense(error)))
        except MemoryLost as error:
            return self._ended(Ended(_lost(error)))
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
        link, self._link, self._keeper = self._link, None, None
        if link is not None:
            self._queued_s += link.queued_s
            link.kill(wait=wait)


def _lost(error: MemoryLost) -> Observation:
    return Observation(ended="lost", message=str(error))
