"""Who gets ready on a device beside a candidate that is timed, and rests while its laps run.

Most seconds of a run go into what needs no quiet: compiling, drawing inputs, references. All of
that may go on beside others; laps may not, so whoever works then is stopped for as long.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

# A process that is within the driver stops when it leaves it; making a context takes longest.
_STOP_S = 0.5
_LOOK_S = 5e-4
_DRAIN_S = 1e-2


class Resting(Protocol):
    """A process that can be stopped, and goes on where it was."""

    def rest(self) -> None:
        """Ask it to stop; its deadlines wait."""
        ...

    @property
    def rests(self) -> bool:
        """Whether it has stopped, or is gone."""
        ...

    def go_on(self) -> None:
        """Let it go on."""
        ...


class Quiet:
    """One device's quiet: threads ask for it, or for leave to work."""

    def __init__(self, *, finish: Callable[[], None] = lambda: None) -> None:
        """Nobody has laps run yet.

        Args:
            finish: waits until the device has done what this process asked it for.
        """
        self._finish = finish
        self._changed = threading.Condition()
        self._at_work = 0
        # The thread that has laps run.
        self._owner: int | None = None
        self._beside: list[Callable[[], Iterable[Resting]]] = []

    @contextlib.contextmanager
    def work(self) -> Iterator[None]:
        """A piece of the judge's own work on the device; it begins when no laps run.

        Within `laps`, in the same thread, it is part of them.
        """
        if self._owner == threading.get_ident():
            yield
            return
        with self._changed:
            self._changed.wait_for(lambda: self._owner is None)
            self._at_work += 1
        try:
            try:
                yield
            finally:
                self._finish()
        finally:
            with self._changed:
                self._at_work -= 1
                self._changed.notify_all()

    def always(self, processes: Callable[[], Iterable[Resting]]) -> None:
        """Have these rest while laps run; `processes` gives those there are at the moment."""
        with self._changed:
            self._beside.append(processes)

    @contextlib.contextmanager
    def beside(self, processes: Callable[[], Iterable[Resting]]) -> Iterator[None]:
        """As `always`, for as long as this lasts."""
        self.always(processes)
        try:
            yield
        finally:
            with self._changed:
                self._beside.remove(processes)

    @contextlib.contextmanager
    def laps(self) -> Iterator[None]:
        """Have the device to oneself: all that is beside rests, and no work begins."""
        with self._changed:
            self._changed.wait_for(lambda: self._owner is None)
            self._owner = threading.get_ident()
            self._changed.wait_for(lambda: not self._at_work)
            resting = [process for processes in self._beside for process in processes()]
        try:
            for process in resting:
                process.rest()
            end = time.monotonic() + _STOP_S
            while not all(process.rests for process in resting) and time.monotonic() < end:
                time.sleep(_LOOK_S)
            if resting:
                # What they have asked the device for goes on without them.
                time.sleep(_DRAIN_S)
            yield
        finally:
            for process in resting:
                process.go_on()
            with self._changed:
                self._owner = None
                self._changed.notify_all()
