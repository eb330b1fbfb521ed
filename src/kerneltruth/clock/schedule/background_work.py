"""Prepare in the background while candidates are timed; pause during batches.

Most of a run goes into work that needs no quiet device: compiling, drawing inputs, references.
Batches need one: background processes are stopped during them, and the judge's own work waits.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence

from kerneltruth.clock.protocol.sides import Pausable

# A process inside the driver stops only when it leaves it. Creating a context takes longest, and
# contexts are created one after the other.
STOP_S = 4.0
_LOOK_S = 5e-4
_DRAIN_S = 1e-2


class BackgroundWork:
    """Decides which thread may use a device: one that runs batches, or those that prepare."""

    def __init__(
        self, *, finish: Callable[[], None] = lambda: None, stop_s: float = STOP_S
    ) -> None:
        """Start with no batch running.

        `finish` waits until the device has done what this process asked it for; batches wait
        `stop_s` for processes to stop.
        """
        self._finish = finish
        self._stop_s = stop_s
        self._changed = threading.Condition()
        self._at_work = 0
        # The thread that runs batches.
        self._owner: int | None = None
        self._beside: list[Callable[[], Iterable[Pausable]]] = []

    @contextlib.contextmanager
    def work(self) -> Iterator[None]:
        """Run a piece of the judge's own work on the device; it begins when no batches run.

        Within `batches`, in the same thread, it is part of them.
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

    def always(self, processes: Callable[[], Iterable[Pausable]]) -> None:
        """Pause these during batches; `processes` returns the current ones."""
        with self._changed:
            self._beside.append(processes)

    @contextlib.contextmanager
    def beside(self, processes: Callable[[], Iterable[Pausable]]) -> Iterator[None]:
        """Pause these processes during batches until the context ends."""
        self.always(processes)
        try:
            yield
        finally:
            with self._changed:
                self._beside.remove(processes)

    @contextlib.contextmanager
    def batches(self) -> Iterator[None]:
        """Have the device to oneself: background processes are paused, and no work begins."""
        with self._changed:
            self._changed.wait_for(lambda: self._owner is None)
            self._owner = threading.get_ident()
        # Inside the try: Ctrl-C during the wait must not leave the others paused for ever.
        try:
            with self._changed:
                self._changed.wait_for(lambda: not self._at_work)
                beside = [process for processes in self._beside for process in processes()]
            with paused(beside, stop_s=self._stop_s):
                yield
        finally:
            with self._changed:
                self._owner = None
                self._changed.notify_all()


@contextlib.contextmanager
def paused(processes: Sequence[Pausable], *, stop_s: float = STOP_S) -> Iterator[None]:
    """Pause processes until the context ends; wait `stop_s` for them to stop."""
    try:
        for process in processes:
            process.pause()
        end = time.monotonic() + stop_s
        while not all(process.paused for process in processes) and time.monotonic() < end:
            time.sleep(_LOOK_S)
        if processes:
            # Kernels that they launched may still run.
            time.sleep(_DRAIN_S)
        yield
    finally:
        for process in processes:
            process.resume()
