"""The baselines: how each is made, and the processes that tasks share and hand on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from kerneltruth.clock.protocol.sides import ChildEvent, Side
from kerneltruth.corpus import ENTRIES, filename, source
from kerneltruth.errors import UserError
from kerneltruth.runner.candidate import Candidate, read_candidate
from kerneltruth.runner.host import Runner
from kerneltruth.runner.observation import Observation
from kerneltruth.runner.protocol import ChildMessage, Unload
from kerneltruth.runner.session import Mode, Session
from kerneltruth.suites.pytorch import eager_of, own_function
from kerneltruth.tasks.spec import Task

# The `torch.compile` mode of each baseline made from eager PyTorch; None runs it as it is.
COMPILED = {
    "eager": None,
    "compile": "default",
    # Without graphs of its own: either the calls of all sides are captured, or none.
    "compile_max_autotune": "max-autotune-no-cudagraphs",
}
BASELINES = (*COMPILED, "control")
# The timed side; among a task's baselines it is eager PyTorch, timed against itself.
CANDIDATE = "candidate"
# The process of the baselines that are made from eager PyTorch.
PYTORCH = "pytorch"


def process_of(name: str) -> str:
    """Return the process that a baseline runs in."""
    return PYTORCH if name in COMPILED else name


def check_baselines(names: Iterable[str]) -> None:
    """Refuse a name that is not a baseline.

    Raises:
        UserError: a name is not one of `BASELINES`.
    """
    for name in names:
        if name not in BASELINES:
            raise UserError(f"--against {name!r}: must be one of {', '.join(BASELINES)}")


def baseline_sources(task: Task) -> dict[str, Candidate]:
    """Return a task's baselines: eager PyTorch, and a control from the corpus."""
    found: dict[str, Candidate] = {}
    eager = eager_of(task) or own_function(task)
    if eager is not None:
        found["eager"] = eager
    for entry in ENTRIES:
        if entry.role == "control" and entry.task == task.key:
            control = read_candidate(
                source(entry), filename(entry), task_names=(task.name,), task=task.name
            )
            if control.language == "triton":
                return {**found, "control": control}
    return found


# The folder in which `torch.compile` keeps its results for the next run.
_CACHE = "baselines"
# Time limit for a baseline to free what it holds.
_LEAVE_S = 30.0


class BaselineProcesses:
    """Opens sessions for baselines, in idle processes where there are any."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._idle: list[Session] = []
        self._changing = threading.Lock()

    @property
    def device(self) -> str:
        """Return the runner's device."""
        return self._runner.device

    def open(self, source: Candidate, mode: Mode, *, shared: bool) -> Session:
        """Open a session for a baseline, which is loading when this returns.

        A shared session may take an idle process, and hand its own on.
        """
        if not shared:
            return self._runner.open(source, mode=mode)
        with self._changing:
            alike = (s for s in self._idle if _kind(s.mode, s.candidate) == _kind(mode, source))
            found = next(alike, None)
            if found is not None:
                self._idle.remove(found)
        if found is None:
            return self._runner.open(source, mode=mode, cache=_CACHE)
        found.load_instead(source)
        return found

    def hand_on(self, session: Session) -> None:
        """Make a baseline's process idle; end it if it cannot free what it holds."""
        if session.request(Unload(), deadline_s=_LEAVE_S).ended != "returned":
            session.close()
            return
        with self._changing:
            self._idle.append(session)

    def end_idle(self, *, wait: bool = True) -> None:
        """End idle processes; without `wait` this only asks them to end."""
        with self._changing:
            ending, self._idle = self._idle, []
        in_parallel(partial(session.close, wait=wait) for session in ending)


def _kind(mode: Mode, source: Candidate) -> tuple[Mode, str, bool]:
    return (mode, source.language, source.trusted)


class SharedChild:
    """A child that several baselines and benchmarks share, each with slots of its own."""

    def __init__(self, session: Session) -> None:
        self.session = session
        # Whether the child belongs to others now, or is gone.
        self.left = False
        self.sides: list[Side] = []
        self._in_use = threading.Lock()

    def request(
        self,
        message: ChildMessage,
        *,
        sizes: dict[str, int] | None = None,
        deadline_s: float = 30.0,
    ) -> Observation:
        """Have the child do one thing; one benchmark at a time."""
        with self._in_use:
            if self.left:
                return Observation(ended="lost", message="the baseline has left its process")
            return self.session.request(message, sizes=sizes, deadline_s=deadline_s)

    def pause(self) -> None:
        """Ask the child to stop; its deadlines wait."""
        self.session.pause()

    @property
    def paused(self) -> bool:
        """Return whether the child has stopped, or is gone."""
        return self.session.paused

    def resume(self) -> None:
        """Let the child go on."""
        self.session.resume()

    def close(self, *, wait: bool = True) -> None:
        """End the child; without `wait`, only request it."""
        self.left = True
        self.session.close(wait=wait)

    def hand_on(self, processes: BaselineProcesses) -> None:
        """Hand the child on to other baselines, or end it if it is at work."""
        if not self._in_use.acquire(blocking=False):
            self.close()
            return
        try:
            if not self.left:
                self.left = True
                processes.hand_on(self.session)
        finally:
            self._in_use.release()

    def restart(self) -> None:
        """Start a fresh child: what the slots held is gone."""
        with self._in_use:
            if self.left:
                return
            self.session.restart()
        for side in self.sides:
            side.advance(ChildEvent.RESTARTED)


def in_parallel(ends: Iterable[Callable[[], None]]) -> None:
    """End processes at the same time: each end takes some tenths of a second."""
    ends = [*ends]
    with ThreadPoolExecutor(max(len(ends), 1)) as pool:
        for done in [pool.submit(end) for end in ends]:
            done.result()
