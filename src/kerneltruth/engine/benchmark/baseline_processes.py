"""Processes of baselines, which go from one task to the next.

A device's driver makes one context at a time, and each takes a good part of a second.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from kerneltruth.runner.candidate import Candidate
from kerneltruth.runner.host import Mode, Runner, Session
from kerneltruth.runner.protocol import Leave

# Where `torch.compile` keeps what it makes of any of them, for the next run.
_CACHE = "baselines"
# For giving back what a baseline holds.
_LEAVE_S = 30.0


class BaselineProcesses:
    """Opens sessions for baselines, in processes that others have left where there are any."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._idle: list[Session] = []
        self._changing = threading.Lock()

    @property
    def device(self) -> str:
        """The runner's."""
        return self._runner.device

    def open(self, source: Candidate, mode: Mode, *, shared: bool) -> Session:
        """A session for a baseline, which is loading when this returns.

        Args:
            source: the baseline.
            mode: "time", or "time_compiled" where PyTorch compiles it, too.
            shared: whether it may be in a process that another left, and leaves its own to others.
        """
        if not shared:
            return self._runner.open(source, mode=mode)
        with self._changing:
            fitting = (
                s for s in self._idle if (s.mode, s.candidate.language) == (mode, source.language)
            )
            found = next(fitting, None)
            if found is not None:
                self._idle.remove(found)
        if found is None:
            return self._runner.open(source, mode=mode, cache=_CACHE)
        found.load_instead(source)
        return found

    def leave(self, session: Session) -> None:
        """Have a baseline leave its process to others; one that cannot is ended with it."""
        if session.errand(Leave(), deadline_s=_LEAVE_S).ended != "returned":
            session.close()
            return
        with self._changing:
            self._idle.append(session)

    def end_idle(self, *, wait: bool = True) -> None:
        """End processes that nobody uses; without `wait` this is only asked for."""
        with self._changing:
            ending, self._idle = self._idle, []
        side_by_side(partial(session.close, wait=wait) for session in ending)


def side_by_side(ends: Iterable[Callable[[], None]]) -> None:
    """Do all of it at a time: each end of a process takes some tenths of a second."""
    ends = [*ends]
    with ThreadPoolExecutor(max(len(ends), 1)) as pool:
        for done in [pool.submit(end) for end in ends]:
            done.result()
