"""The judge's side: a runner owns zygotes, and opens sessions for candidates.

    with Runner(device="cpu") as runner, runner.open(candidate) as session:
        observation = session.call(arguments, poison=poison)

Nothing here imports torch. A deadline, a death or a malformed answer is an observation, never an
exception; the next call finds a fresh child. A runner belongs to the process that made it.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Self

from kerneltruth.errors import EnvironmentFault
from kerneltruth.runner.candidate import Candidate
from kerneltruth.runner.child_request import ChildRequest
from kerneltruth.runner.containment import Level, levels
from kerneltruth.runner.device_memory import DeviceMemories, begin_trial
from kerneltruth.runner.extensions import kit_folder, precompile_ahead
from kerneltruth.runner.helper_process import HelperLost
from kerneltruth.runner.kept_memory import KeptHostMemory, KeptMemory
from kerneltruth.runner.link import Link
from kerneltruth.runner.sandbox import MEMORY, ResourceLimits, total_memory
from kerneltruth.runner.session import Mode, Session
from kerneltruth.runner.zygote_client import Zygote, zygote_environment

LOAD_S = 60.0
# nvcc is slow.
LOAD_CUDA_S = 240.0
# `torch.compile` must not start processes of its own: the child may have few.
_TIMED = {"TORCHINDUCTOR_COMPILE_THREADS": "1"}


class Runner:
    """Opens sessions for candidates on one device.

    Attributes:
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
        isolation: Level | None = None,
        new_zygote: Callable[..., Zygote] = Zygote,
    ) -> None:
        """Start nothing yet; `new_zygote` makes the parents of children, as `Zygote` does."""
        self.device = device
        self._isolation = isolation
        self._new_zygote = new_zygote
        self.targets = tuple(targets)
        self.load_s = load_s
        on_cpu = device == "cpu"
        self._cache_root = cache_root.absolute() if cache_root else None
        self._limits = limits or (
            ResourceLimits()
            if on_cpu
            else ResourceLimits(address_space=None, memory=max(MEMORY, total_memory() // 2))
        )
        self._work_root = work_root
        self._built = self._cache_root / "driver" if self._cache_root and not on_cpu else None
        self._numbers = itertools.count()
        self._zygotes: dict[tuple[bool, bool], Zygote] = {}
        self._of_device = DeviceMemories(device, work_root)
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
            if self.device != "cpu" and mode == "run":
                begin_trial(self.device)
                self._of_device.start()

    def versions(self) -> dict[str, str]:
        """Return the versions of Python, torch and Triton in children; wait for the warm-up."""
        if self.device != "cpu":
            self._of_device.warm()
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

        With `ahead` the child only starts, and loads nothing before its first request. With `cold`
        it compiles from scratch, and as PyTorch does. Compiled files go to the candidate's own
        folder, or to `cache`.

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
        self._of_device.close()

    def load_allowance(self, candidate: Candidate) -> float:
        """Return the seconds that a candidate may take to load."""
        return LOAD_CUDA_S if candidate.language == "cuda" else self.load_s

    def _zygote(self, mode: Mode) -> Zygote:
        interpret, compiles = self.device == "cpu" and mode == "run", mode == "time_compiled"
        key = (interpret, compiles)
        with self._starting:
            if key not in self._zygotes:
                self._zygotes[key] = self._new_zygote(
                    interpret=interpret,
                    hide_cuda=self.device == "cpu",
                    work_root=self._work_root,
                    compiles=compiles,
                    built=self._built,
                )
            return self._zygotes[key]

    def fork(self, candidate: Candidate, mode: Mode, *, cold: bool, cache_name: str | None) -> Link:
        """Start a child for a session.

        Raises:
            EnvironmentFault: no child can be started on this machine.
        """
        root = None if cold else self._cache_root
        cache = root / (cache_name or candidate.sha256) if root else None
        request = ChildRequest(
            folder=f"child-{os.getpid()}-{next(self._numbers)}",
            cache=str(cache) if cache else None,
            limits=self._limits,
            environment=self._environment(candidate, mode),
            level=self._level(candidate),
            gpu=self.device != "cpu",
            trusted=candidate.trusted,
            reads=tuple(str(path) for path in self._readable()),
        )
        for _ in range(2):
            zygote = self._zygote(mode)
            try:
                return zygote.fork(request)
            except HelperLost:
                zygote.close()
                self._zygotes = {k: z for k, z in self._zygotes.items() if z is not zygote}
        raise EnvironmentFault(
            "the parent of candidate processes keeps dying; "
            "`kerneltruth doctor` says what this machine lacks"
        )

    def kit(self, candidate: Candidate) -> Path | None:
        """Return where headers for the candidate's extensions are, or will be, precompiled."""
        if self._cache_root is None or candidate.language != "cuda" or self.device == "cpu":
            return None
        environment = zygote_environment(interpret=False, hide_cuda=True)
        folder = kit_folder(self._cache_root / "kits", environment)
        precompile_ahead(folder, candidate.source, environment)
        return folder

    def memory_of(self, where: str, mode: Mode) -> Callable[[int], KeptMemory] | None:
        """Return what makes memory of the judge's that a child there maps; None without any."""
        if where == "cpu":
            return KeptHostMemory
        # A child that is timed has the device as it would without a judge.
        return self._of_device.make if mode == "run" and self._of_device.kept else None

    def _level(self, candidate: Candidate) -> Level:
        level = levels.chosen(self._isolation, device=self.device)
        # Programs that read the user's files do so as the user, where the user has them.
        return "strict" if candidate.trusted and level == "namespaces" else level

    def _readable(self) -> list[Path]:
        """Return the folders beside its own that a candidate's child may read."""
        if self._cache_root is None or self.device == "cpu":
            return []
        return [self._cache_root / "driver", self._cache_root / "kits"]

    def _environment(self, candidate: Candidate, mode: Mode) -> dict[str, str]:
        if self.device == "cpu":
            return {}
        # A timed candidate builds as it would elsewhere.
        return _TIMED if mode.startswith("time") else context_environment(candidate)

    def forget(self, session: Session) -> None:
        """End the care for a session that is closed."""
        self._sessions.discard(session)


def context_environment(candidate: Candidate) -> dict[str, str]:
    """Return environment variables for the child's CUDA context.

    The driver makes contexts one after the other, and most of the time goes into their hardware
    queues: on an H100 0.19 s for each fresh process with the usual 8 queues, 0.08 s with one. With
    one queue the work of several streams runs in the order of submission, which hides races between
    streams, so a source that mentions streams keeps all queues.
    """
    return {} if "stream" in candidate.source.lower() else {"CUDA_DEVICE_MAX_CONNECTIONS": "1"}
