"""Which part of a case is still open: what it departs in and is not decided yet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kerneltruth.documents.case import Case
from kerneltruth.documents.records import Obligation
from kerneltruth.oracle.counts_by_obligation import ALWAYS_TRIED, OUTSIDE, CountsByObligation
from kerneltruth.oracle.obligations import Departure, without

# An obligation whose cases are refused this often, and never held, is not tried again.
REFUSALS = 3
# After this many cases that fail alike without their departure, it is not tried alone again.
ALIKE = 2
# No other departure's cases differ as much, so it takes two to tell whether a kernel fails always.
VARIED: frozenset[Obligation] = frozenset({"shapes"})


def open_part(counts: CountsByObligation, case: Case) -> Case | None:
    """The case without what is decided already; None where nothing is left to try.

    Where the published inputs fail, it departs in one way that has not held, beside those that
    have: what else it departed in would be blamed for the same failure.
    """
    found: Case | None = case
    while found is not None:
        departing = counts.departing(found)
        helped = _helps(counts, departing)
        closed = next((d for d in departing if _is_closed(counts, d.key, helped=helped)), None)
        closed = closed or _beside_the_least_tried(counts, departing)
        if closed is None:
            return found if departing or not counts.fails_undeparted else None
        found = without(counts.task, found, closed, counts.published)
    return None


def is_over(counts: CountsByObligation) -> bool:
    """Whether nothing more can be learned: all that departs fails as published inputs do."""
    return (
        counts.fails_undeparted
        and all(
            _is_closed(counts, key) or counts.alike[key] >= (ALIKE if d.obligation in VARIED else 1)
            for key, d in counts.known.items()
            if _may_be_tried(counts, d) and not counts.held[key]
        )
        and not _helps(counts, counts.known.values())
    )


def breaks_another(counts: CountsByObligation, key: str) -> bool:
    """Whether an obligation's cases break another one, as stray writes of odd sizes do.

    Cases that depart in other ways, too, would all fail by it, and tell nothing of those.
    """
    elsewhere = counts.elsewhere.get(key)
    return elsewhere is not None and elsewhere.total() >= ALIKE and not counts.held[key]


def _may_be_tried(counts: CountsByObligation, departure: Departure) -> bool:
    unasked = departure.obligation == "gradients" and not departure.promised
    lacking = departure.key in counts.lacking or counts.is_outside(departure.key)
    # An empty result is right whatever a kernel computes.
    return not (unasked or lacking or departure.obligation in ALWAYS_TRIED | {"empty"})


def _helps(counts: CountsByObligation, departing: Iterable[Departure]) -> bool:
    """Whether a case is right with one of these; an empty or NaN result may be by chance."""
    telling = (d.key for d in departing if d.obligation not in ALWAYS_TRIED | OUTSIDE)
    return counts.fails_undeparted and any(counts.held[key] for key in telling)


def _beside_the_least_tried(
    counts: CountsByObligation, departing: Sequence[Departure]
) -> Departure | None:
    if not counts.fails_undeparted:
        return None
    untried = [d for d in reversed(departing) if not counts.held[d.key]]
    least = min(untried, key=lambda d: counts.alike[d.key], default=None)
    # A size of 0 is a size.
    needed = {"shapes"} if least is not None and least.obligation == "empty" else set()
    return next((d for d in untried if d != least and d.obligation not in needed), None)


def _is_closed(counts: CountsByObligation, key: str, *, helped: bool = False) -> bool:
    given_up = counts.refused[key] >= REFUSALS and not counts.held[key]
    masked = counts.alike[key] >= ALIKE and not counts.held[key]
    spent = counts.is_broken(key) or given_up or breaks_another(counts, key)
    return spent or (masked and not helped)
