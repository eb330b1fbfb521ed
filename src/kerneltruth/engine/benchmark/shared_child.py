"""A child that several baselines share, and one that is short of memory."""

from __future__ import annotations

import threading

from kerneltruth.clock.protocol.sides import Contestant
from kerneltruth.engine.benchmark.baseline_processes import BaselineProcesses
from kerneltruth.errors import lacks_memory
from kerneltruth.runner.host import Session
from kerneltruth.runner.protocol import Errand, Observation


def is_out_of_memory(seen: Observation) -> bool:
    """Whether the device had no memory for what was asked: others may hold it."""
    return seen.ended != "returned" and lacks_memory(f"{seen.error} {seen.message}")


def begin_anew(side: Contestant, seen: Observation) -> None:
    """Have a side that was short of memory get ready once more, in a process that is there."""
    if seen.dirty or seen.ended == "lost":
        side.child.restart()
        side.stocked = False
    side.rows, side.warmed, side.captured = 0, False, None


class SharedChild:
    """A child that several contests share, and several baselines, each with slots of its own."""

    def __init__(self, session: Session) -> None:
        self.session = session
        # Whether the child is somebody else's now, or gone.
        self.left = False
        self.sides: list[Contestant] = []
        self._asked = threading.Lock()

    def errand(
        self, message: Errand, *, sizes: dict[str, int] | None = None, deadline_s: float = 30.0
    ) -> Observation:
        """Have the child do one thing; one contest at a time."""
        with self._asked:
            if self.left:
                return Observation(ended="lost", message="the baseline has left its process")
            return self.session.errand(message, sizes=sizes, deadline_s=deadline_s)

    def close(self, *, wait: bool = True) -> None:
        """End the child; without `wait` this is only asked for."""
        self.left = True
        self.session.close(wait=wait)

    def leave(self, processes: BaselineProcesses) -> None:
        """Leave the child to other baselines, or end it where it is at work."""
        if not self._asked.acquire(blocking=False):
            self.close()
            return
        try:
            if not self.left:
                self.left = True
                processes.leave(self.session)
        finally:
            self._asked.release()

    def restart(self) -> None:
        """Begin anew: what the slots held is gone."""
        with self._asked:
            if self.left:
                return
            self.session.restart()
        for side in self.sides:
            side.forget_rows()
            side.stocked = False
