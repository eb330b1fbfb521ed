"""The cost limit of timing one case, and the width that its intervals must reach."""

from __future__ import annotations

from dataclasses import dataclass

from kerneltruth.errors import InternalError


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """The cost limit of a benchmark, and the width that its intervals must reach.

    Attributes:
        batch_s: device time of the longest batches, where memory suffices for it.
        graph_batch_s: the same where calls are short enough for graphs; their batches scatter more.
        precision: half-width of the ratios' intervals, in logs and before the machine's noise, at
            which a benchmark ends.
        budget_s: seconds after which no further block begins, past the fewest.
        graph_below_s: if a call of any side takes less, all calls are captured in CUDA graphs,
            where all sides and memory allow it.
        flush_bytes: this much memory, at least, is read before each batch.
        shown: how many batches have their last result graded.
        spot_checks: how many batches are spot-checked during the fewest blocks; more where a batch
            has few calls. They are not measured.
        repeats: how many disturbed blocks are repeated.
        first_call_s: time limit of first calls, which compile, if that is longer.
        warm: whether calls on inputs that the caches hold are timed, too.
        energy: whether the energy of calls is measured, too.
        near_tie: a ratio that is no tie, and this near to 1 in logs, is confirmed in new processes.
    """

    batch_s: float = 0.004
    graph_batch_s: float = 0.012
    blocks: tuple[int, int] = (8, 60)
    precision: float = 0.002
    budget_s: float = 2.0
    graph_below_s: float = 100e-6
    memory_bytes: int = 4 * 2**30
    flush_bytes: int = 128 * 2**20
    shown: int = 2
    spot_checks: int = 2
    repeats: int = 20
    deadline_s: float = 30.0
    first_call_s: float = 300.0
    warm: bool = True
    energy: bool = False
    near_tie: float = 0.1

    def __post_init__(self) -> None:
        if not 0 < self.batch_s <= self.graph_batch_s:
            raise InternalError(f"batches of graphs must be the longer ones: {self}")


# In `run` a shape takes a few tenths of a second, baselines included. Only `time` times calls on
# warm caches.
RUN_EFFORT = Effort(
    batch_s=0.002,
    graph_batch_s=0.006,
    blocks=(6, 24),
    precision=0.005,
    budget_s=0.3,
    memory_bytes=2 * 2**30,
    warm=False,
)
