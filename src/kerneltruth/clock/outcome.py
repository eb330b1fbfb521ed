"""The word on a candidate beside a baseline, `faster`, `tie` or `slower`, and what made it a tie.

The rest of the clock and of the benchmark collects facts; only this module weighs them.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from kerneltruth.clock.comparison import Comparison
from kerneltruth.clock.statistics.summary import Outcome, outcome

Doubt = Literal[
    "timing_suspect",
    "processes_differ",
    "below_floor",
    "not_graded",
    "baseline_hindered",
    "wrong",
]
# Flags of a shape that withdraw the word `faster`, the one that says most first.
WITHDRAWING: tuple[Doubt, ...] = ("timing_suspect", "below_floor", "not_graded")
# Flags of times that contradict each other: such a candidate is never called faster. A baseline is
# hindered if it runs faster once the candidate is gone.
_CONTRADICTED = frozenset({"timing_suspect", "below_floor", "baseline_hindered"})
# The flag of times that measure the host.
HOST_BOUND = "host_bound"
# The flag of times that differ between processes by more than batches within one.
PROCESSES_DIFFER = "processes_differ"
# The flag of a shape with unknown results: no candidate is called faster on it either.
NOT_GRADED = "not_graded"


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeFacts:
    """What is known of a candidate beside one baseline on one shape.

    Attributes:
        first: their comparison.
        confirmation: their comparison in other processes, if there was one.
        flags: of the shape.
        hindered: whether the baseline ran faster once the candidate was gone.
        candidate: what holds of the candidate on some shape: `wrong` or `timing_suspect`.
    """

    first: Comparison
    confirmation: Comparison | None = None
    flags: Collection[str] = ()
    hindered: bool = False
    candidate: Doubt | None = None


class Conclusion(NamedTuple):
    """The word, and the doubt that makes a tie of what the interval calls a difference."""

    outcome: Outcome
    doubt: Doubt | None = None


def conclude(facts: OutcomeFacts) -> Conclusion:
    """Conclude from what is known so far; a doubt turns a difference into a tie.

    1. The interval supports the word. Nothing can turn a tie into a difference.
    2. A gain that the judge's own clock contradicts is none. This comes before other processes,
       which would contradict themselves in the same way.
    3. A difference that other processes do not show lies between processes, in either direction.
    4. `slower` stands: what is left can only flatter a candidate.
    5. What is flagged on the shape withdraws `faster`.
    6. So does a baseline that the candidate hindered, for this baseline.
    7. So do wrong results, and times that contradict each other, on any shape: what a candidate did
       once may have helped it elsewhere unseen. This comes last, since it says least of this shape.
    """
    supported = outcome(facts.first.ratio)
    if supported == "tie":
        return Conclusion("tie")
    if supported == "faster" and facts.first.suspect:
        return Conclusion("tie", "timing_suspect")
    confirmed = facts.confirmation and conclude(OutcomeFacts(first=facts.confirmation)).outcome
    if confirmed not in (None, supported):
        return Conclusion("tie", "processes_differ")
    if supported == "slower":
        return Conclusion("slower")
    for doubt in WITHDRAWING:
        if doubt in facts.flags:
            return Conclusion("tie", doubt)
    if facts.hindered:
        return Conclusion("tie", "baseline_hindered")
    if facts.candidate is not None:
        return Conclusion("tie", facts.candidate)
    return Conclusion("faster")


def contradicts(flags: Collection[str]) -> bool:
    """Return whether a shape's times contradict each other.

    Calls that wait for their host are slower beside any other that uses the same cores, so a
    hindered baseline among them makes no candidate suspect; none is called faster than it.
    """
    found = _CONTRADICTED & {*flags}
    return bool(found) and not (found == {"baseline_hindered"} and HOST_BOUND in flags)


def doubt_on_any_shape(
    *, wrong: bool, flags: Iterable[Collection[str]]
) -> Literal["wrong", "timing_suspect"] | None:
    """Return what doubts a candidate on all its shapes: a wrong result on one, or its times there.

    `flags` are those of each shape.
    """
    if wrong:
        return "wrong"
    return "timing_suspect" if any(map(contradicts, flags)) else None


def nearly_tied(found: Sequence[Comparison], near_tie: float) -> tuple[str, ...]:
    """Baselines that are quicker or slower than the candidate by less than `near_tie`, in logs."""
    return tuple(
        s.baseline
        for s in found
        if abs(math.log(s.ratio.estimate)) < near_tie
        and conclude(OutcomeFacts(first=s)).outcome != "tie"
    )
