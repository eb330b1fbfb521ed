"""A candidate's profile: what became of each obligation, and why."""

from __future__ import annotations

from typing import cast

from msgspec.structs import replace

from kerneltruth.cases.published import reduction
from kerneltruth.documents.profiles import NO_TURN
from kerneltruth.documents.records import OBLIGATIONS, Obligation, ProfileEntry
from kerneltruth.oracle.case_status import UNREACHED, reason_of
from kerneltruth.oracle.counts_by_obligation import CountsByObligation
from kerneltruth.oracle.kinds import Kind
from kerneltruth.oracle.obligations import BEYOND, fixed_numbers
from kerneltruth.oracle.open_parts import breaks_another, is_over

LEFT_OUT = "left out by the chosen dtypes or strategies"
SAME_WITHOUT = "fails in the same way without it"
REFUSED_WITHOUT = "refused in the same way without it"
WRONG_AS_PUBLISHED = "wrong on the published inputs"
REFUSED_AS_PUBLISHED = "refused on the published inputs"
UNPROMISED_GRADIENTS = "the task's prompt does not promise gradients"


def profile_of(counts: CountsByObligation, ended: str | None = None) -> dict[str, ProfileEntry]:
    """Every obligation of the task in order; `ended` is why no case was judged."""
    unreached = LEFT_OUT if counts.is_narrowed else UNREACHED
    entries = {key: _entry(counts, key, ended or unreached) for key in counts.known}
    known = {key.partition(".")[0] for key in entries}
    lacking = ProfileEntry(status="not_applicable", promised=False)
    entries |= {obligation: lacking for obligation in OBLIGATIONS if obligation not in known}
    return {key: entries[key] for key in sorted(entries, key=_place)}


def _entry(counts: CountsByObligation, key: str, reason: str) -> ProfileEntry:
    found = ProfileEntry(
        status="held",
        promised=counts.known[key].promised,
        decisive=counts.decides(key),
        cases=counts.held[key],
        failure=counts.failures.get(key),
    )
    if key in counts.lacking:
        return replace(found, status="not_applicable", reason=counts.lacking[key])
    if counts.is_outside(key):
        return replace(found, status="not_applicable", reason=_why_not(counts, key, reason))
    if counts.is_broken(key):
        return replace(found, status="broken")
    if found.failure is not None:
        return replace(found, status="refused", reason=reason_of(found.failure.verdict))
    if found.cases:
        size = reduction(counts.task, counts.published) if key == "published" else None
        return replace(found, reason=size, untried=_untried(counts, key))
    return replace(found, status="not_tried", reason=_why_not(counts, key, reason))


def _untried(counts: CountsByObligation, key: str) -> dict[str, str]:
    """The kinds within an obligation that no case tried, and why."""
    kinds = (Kind(key, name) for name in counts.kinds.within(key))
    left = (kind for kind in kinds if kind not in counts.tried_kinds)
    return {kind.name: counts.unjudged_kinds.get(kind, NO_TURN) for kind in left}


def _why_not(counts: CountsByObligation, key: str, reason: str) -> str:
    refused = "published" in counts.failures and not counts.is_broken("published")
    if breaks_another(counts, key):
        return f"its cases break `{counts.elsewhere[key].most_common(1)[0][0]}`"
    if counts.alike[key]:
        return REFUSED_WITHOUT if refused else SAME_WITHOUT
    if key in counts.unjudged:
        return reason_of(counts.unjudged[key])
    if key == "gradients" and not counts.known[key].promised:
        return UNPROMISED_GRADIENTS
    if key == "attributes" and not counts.known[key].promised:
        return f"the task lists only one value of {', '.join(fixed_numbers(counts.task))}"
    if not is_over(counts):
        return reason
    return REFUSED_AS_PUBLISHED if refused else WRONG_AS_PUBLISHED


def _place(key: str) -> tuple[int, bool]:
    obligation, _, part = key.partition(".")
    return OBLIGATIONS.index(cast(Obligation, obligation)), part == BEYOND
