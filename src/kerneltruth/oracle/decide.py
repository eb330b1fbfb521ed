"""What decides a verdict: the first reason against a pass, in one order.

The rest of the oracle judges each case and counts; only this module weighs that into a verdict on
the candidate. It calls nothing and changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from msgspec.structs import replace

from kerneltruth.documents.records import Attempt, Judgement, ProfileEntry
from kerneltruth.documents.verdict import (
    Declined,
    Failed,
    Hack,
    Infra,
    Passed,
    RuntimeFault,
    Unrefereeable,
    UnsupportedHere,
    Verdict,
    Void,
)
from kerneltruth.oracle.case_status import UNREACHED, case_status
from kerneltruth.oracle.tally import Tally

# A pass rests on at least this share of the planned cases, or of those the kernel was given.
LEAST_JUDGED = 0.5
# A user may do this instead; a model that writes kernels may not.
OR_WITHOUT = ", or judge without --require-kernel"
ADVICE = f"compute the result in a Triton or CUDA C++ kernel of the source's own{OR_WITHOUT}"


class Failure(NamedTuple):
    """What an obligation failed by, and whether the contract has that decide."""

    key: str
    judgement: Judgement
    decides: bool


class Untried(NamedTuple):
    """An obligation that decides and was not tried, and what became of a case that tries it."""

    key: str
    unjudged: Verdict | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """All that a verdict rests on.

    Attributes:
        not_loaded: the verdict on a candidate that does not load.
        failures: one for each obligation that failed, in the order in which they first did.
        untried: the first obligation that decides and was not tried.
        time_spent: what it means that the candidate's time ended before its cases did, if it did.
        planned: how many cases it takes.
        forgiving: see `Plan.forgiving`.
        kernel: what became of the obligation `kernel`, where it decides.
    """

    not_loaded: Verdict | None
    failures: Sequence[Failure]
    untried: Untried | None
    time_spent: Verdict | None
    tally: Tally
    planned: int
    forgiving: bool = False
    kernel: ProfileEntry | None = None


def decide(facts: Facts) -> Verdict:
    """The verdict on a candidate: the first of these reasons that holds, or `Passed` without any.

    1. It does not load. No case was judged, so nothing else is known.
    2. An obligation failed; `deciding_failure` says which failure counts. It comes before all that
       was not tried, since nothing that follows could make a failing kernel right.
    3. Something that decides was not tried, and the candidate's time is spent. It comes before the
       other reasons for what was not tried, since it explains them.
    4. Something that decides was not tried, though cases are right. It comes before the counts of
       cases, which cannot name the obligation. Where no case is right, or the child left some
       unanswered, the counts say more, and this is skipped.
    5. The child did not answer a case. It comes before the number of right cases: a child that
       chooses which cases it answers could reach any number.
    6. Too few cases are right.
    7. A kernel of its own is required, and is not shown to have done the work. It comes last, since
       only a right result needs an author.
    """
    if facts.not_loaded is not None:
        return facts.not_loaded
    failure = deciding_failure(facts.failures)
    if failure is not None:
        return _of_failure(failure)
    passed = facts.tally.passed > 0
    if not (facts.forgiving and passed):
        if facts.untried is not None and facts.time_spent is not None:
            return facts.time_spent
        if facts.untried is not None and passed and not facts.tally.unanswered:
            return _not_tried(facts.untried)
        if facts.tally.unanswered:
            return _not_answered(facts.tally)
        if not _are_enough(facts.tally, facts.planned):
            return _too_few(facts.tally)
    if facts.kernel is not None and facts.kernel.status != "held":
        return _not_its_work(facts.kernel)
    return Passed()


def deciding_failure(failures: Sequence[Failure]) -> Judgement | None:
    """The failure that decides: the earliest one of the first group that is not empty.

    1. What proves deceit, under every contract: nothing else that the candidate returned counts.
    2. Wrong values, crashes and calls without an end. They come before a wrong form, which a caller
       notices at once, and a wrong value late or never.
    3. Right values in another form. They come before refusals: a caller goes on with them.
    4. Refusals, which are loud.
    """
    deciding = [f for f in failures if f.decides]
    broken = [f for f in deciding if case_status(f.judgement.verdict) == "broken"]
    order = (
        [f for f in failures if isinstance(f.judgement.verdict, Hack)],
        [f for f in broken if f.key != "interface"],
        broken,
        deciding,
    )
    return next((group[0].judgement for group in order if group), None)


def deciding_round(first: Attempt, second: Attempt) -> Attempt:
    """The one of two rounds that decides: a pass takes both. The first one passed."""
    return first if isinstance(second.verdict, Passed) else second


def _of_failure(failure: Judgement) -> Verdict:
    """A failing verdict; an input declined beyond the prompt counts as refused."""
    verdict = failure.verdict
    if isinstance(verdict, Declined):
        return RuntimeFault(error="refused", detail=verdict.reason)
    return verdict


def _not_tried(untried: Untried) -> Verdict:
    key, unjudged = untried
    match unjudged:
        case Void(reason=reason) | Unrefereeable(reason=reason):
            return Unrefereeable(reason=f"{key} was not tried: {reason}")
        case UnsupportedHere(reason=reason) | Infra(reason=reason):
            return replace(unjudged, reason=f"{key} was not tried: {reason}")
        case _:
            return UnsupportedHere(
                reason=f"`{key}` decides but was not tried: {UNREACHED}; ask for more with --cases"
            )


def _not_answered(tally: Tally) -> Verdict:
    verdict = tally.unanswered[0]
    if not tally.passed:
        return verdict
    count = f"{len(tally.unanswered)} of {tally.put} cases"
    return replace(verdict, reason=f"{verdict.reason} (in {count}, as its process reported)")


def _are_enough(tally: Tally, planned: int) -> bool:
    return tally.passed >= max(1, LEAST_JUDGED * min(planned, tally.put))


def _too_few(tally: Tally) -> Verdict:
    """Why too few cases are right, where none that decides failed."""
    if tally.declined and len(tally.declined) >= tally.void.total():
        reason = f"{len(tally.declined)} of {tally.put} cases were declined"
        return UnsupportedHere(reason=f"{reason}, such as: {tally.declined[0][1]}")
    if tally.skipped:
        return UnsupportedHere(reason=tally.skipped.most_common(1)[0][0])
    for reasons in (tally.void, tally.unrefereeable):
        if reasons:
            return Unrefereeable(reason=reasons.most_common(1)[0][0])
    return Unrefereeable(reason="no case fits the chosen strategies, dtypes and domain")


def _not_its_work(kernel: ProfileEntry) -> Verdict:
    if kernel.status == "broken":
        return Failed(kind="no_kernel", detail=f"{kernel.reason}; {ADVICE}")
    return UnsupportedHere(reason=f"whether its own kernel did the work: {kernel.reason}")
