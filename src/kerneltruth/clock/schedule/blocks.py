"""Which blocks of a benchmark count, which are repeated, and when there are enough. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from kerneltruth.clock.protocol.effort import Effort
from kerneltruth.clock.protocol.sides import Batch

# For each side its batches of one block, by the side's name; and the overheads, in seconds, of the
# shortest batches that followed some of them.
BatchesOf = dict[str, tuple[Batch, ...]]
OverheadsOf = dict[str, tuple[float, ...]]


@dataclass(slots=True, kw_only=True)
class Blocks:
    """The blocks of a benchmark.

    Attributes:
        counted: those that count; `overheads` of each the overheads of shortest batches.
        disturbed: why others were thrown away and repeated.
    """

    effort: Effort
    counted: list[BatchesOf] = field(default_factory=list)
    overheads: list[OverheadsOf] = field(default_factory=list)
    disturbed: list[str] = field(default_factory=list)

    def record(self, block: BatchesOf, overheads: OverheadsOf, disturbance: str | None) -> bool:
        """Count a block, or throw it away because it was disturbed.

        After `Effort.repeats` disturbed blocks every block counts: the device does not get calmer.

        Returns:
            Whether the block counts.
        """
        if disturbance is not None and len(self.disturbed) < self.effort.repeats:
            self.disturbed.append(disturbance)
            return False
        self.counted.append(block)
        self.overheads.append(overheads)
        return True

    def are_enough(self, *, seconds: float, most: int, enough: Callable[[], bool]) -> bool:
        """Return whether no further block is needed.

        Args:
            seconds: since the first of these blocks began.
            most: how many blocks there may be.
            enough: whether the intervals are narrow enough; asked past the fewest blocks only.
        """
        if len(self.counted) >= most:
            return True
        if len(self.counted) < self.effort.blocks[0]:
            return False
        return seconds > self.effort.budget_s or enough()
