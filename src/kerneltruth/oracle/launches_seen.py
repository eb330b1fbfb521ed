"""What the calls of a candidate show of its kernels' launches, beside their results."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kerneltruth.documents.case import Case
from kerneltruth.runner.candidate import Candidate
from kerneltruth.runner.languages import TRITON_COMPILES
from kerneltruth.runner.observation import KernelWork, Launch, Observation
from kerneltruth.runner.source_numbers import block_sizes

MAX_CONFIGS = 64
CONFIGS_ON_FIRST_CASE = 8
# Looking for launches of CUDA C++ takes milliseconds a call.
COUNTED_CALLS = 8


class LaunchesSeen:
    """What the calls of a candidate have shown of its launches so far.

    Attributes:
        work: the first call that launches an own kernel, else the first call: its work, and its
            case.
        blocks: block sizes, of launches and of the source.
        configs: the most configurations that a launch had.
    """

    def __init__(self, candidate: Candidate) -> None:
        self._language = candidate.language
        self.blocks: set[int] = set(block_sizes(candidate.source))
        self.configs = 1
        self.forget_work()

    def forget_work(self) -> None:
        """Forget what calls have shown of work; a fresh child shows its own."""
        self.work: tuple[KernelWork, Case] | None = None
        self._counted = 0

    @property
    def may_show_work(self) -> bool:
        """Whether the next call may be the first that runs a kernel of its own."""
        language = self._language
        may_launch = language in TRITON_COMPILES or (
            language == "cuda" and self._counted < COUNTED_CALLS
        )
        return self.work is None or (may_launch and not self.work[0].own)

    def note(self, observation: Observation, case: Case, *, idle: bool) -> None:
        """Keep what a call shows; one whose kernels were `idle` shows no work."""
        counted = None if idle else observation.work
        self._counted += counted is not None
        if counted is not None and (self.work is None or counted.own):
            self.work = counted, case
        self.configs = configs_after(self.configs, observation.launches)
        for launch in observation.launches:
            self.blocks.update(
                v for v in launch.constants.values() if type(v) is int and 2 <= v <= 65536
            )

    def configs_of(self, count: int, most: Callable[[], int]) -> Iterator[int]:
        """Which configurations of an autotuned kernel the `count`-th case runs under, in turns.

        Their number is known only after the first call, so the first case takes the others
        afterwards, `most` in all.
        """
        yield count % self.configs
        if count == 0:
            yield from range(1, min(self.configs, most()))


def configs_after(known: int, launches: tuple[Launch, ...]) -> int:
    """The most configurations, of those known before and those of some launches."""
    return max([known, *(min(launch.configs, MAX_CONFIGS) for launch in launches)])
