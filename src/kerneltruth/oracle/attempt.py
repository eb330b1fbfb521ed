"""An attempt: the cases of a candidate judged, and all that they came to."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

from msgspec import structs

from kerneltruth.documents.model import model_of
from kerneltruth.documents.records import (
    Attempt,
    BinaryRecord,
    Judgement,
)
from kerneltruth.documents.verdict import (
    CompileError,
    Crashed,
    Hack,
    Infra,
    TimedOut,
    UnsupportedHere,
    Verdict,
)
from kerneltruth.oracle.candidate_session import CandidateSession
from kerneltruth.oracle.case_loop import CaseLoop
from kerneltruth.oracle.decide import decide, deciding_failure
from kerneltruth.oracle.hazards import hazards
from kerneltruth.oracle.kernel_fact import kernel_entry, launches_none
from kerneltruth.oracle.large import call_large
from kerneltruth.oracle.plan import Plan
from kerneltruth.oracle.profile import profile_of
from kerneltruth.oracle.score import score
from kerneltruth.runner.candidate import is_torch_only


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseJudged:
    """Event: a case was judged."""

    judgement: Judgement


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptEnded:
    """Event: the candidate has its verdict; always the last event of an attempt."""

    attempt: Attempt


AttemptEvent = CaseJudged | AttemptEnded


def judge_cases(session: CandidateSession, plan: Plan) -> Iterator[AttemptEvent]:
    """Judge a candidate on the planned cases; the last event is `AttemptEnded`.

    An obligation ends at its own first broken case, and the others go on.
    """
    start = time.monotonic()
    loop = CaseLoop(session, plan)
    not_loaded = load_verdict(session)
    if not_loaded is None:
        for judgement in loop.judgements():
            yield CaseJudged(judgement=judgement)
    attempt = _attempt(session, plan, loop, not_loaded)
    yield AttemptEnded(attempt=structs.replace(attempt, seconds=time.monotonic() - start))


def _attempt(
    session: CandidateSession, plan: Plan, loop: CaseLoop, not_loaded: Verdict | None
) -> Attempt:
    """All that the cases came to, with the verdict."""
    ended = None if not_loaded is None else f"{not_loaded.word} on loading"
    fact = loop.kernel_fact()
    kernel = kernel_entry(fact, ended, required=plan.require_kernel)
    tally, facts = loop.tally, loop.facts(not_loaded, kernel)
    failure = deciding_failure(facts.failures)
    if failure is not None and not tally.failed:
        tally.count_form()
    profile = profile_of(loop.counts, ended or loop.ended) | {"kernel": kernel}
    notes = tuple(noted.note() for noted in tally.noted.values())
    verdict = decide(facts)
    tries_large = plan.large and not_loaded is None
    large = call_large(session, plan, verdict, profile) if tries_large else None
    profile |= {} if large is None else large.noted(profile)
    return Attempt(
        task=session.task.key,
        candidate=session.candidate.ref,
        torch_only=is_torch_only(session.candidate) or launches_none(session.candidate, fact),
        verdict=verdict,
        contract=plan.contract,
        cases=tally.cases,
        failed=tally.failed,
        declined=tuple(tally.declined),
        unrefereeable=dict(tally.unrefereeable),
        skipped=dict(tally.skipped),
        failure=failure,
        binaries=tuple(model_of(BinaryRecord, b) for b in session.targets.binaries),
        worst_ratio=tally.worst,
        dtypes=tally.dtypes,
        headers=session.headers,
        own_weights=session.weights.own,
        void=dict(tally.void),
        interface=notes,
        profile=profile,
        hazards=hazards(profile, notes) | ({} if large is None else large.hazard),
        score=0.0 if isinstance(verdict, Hack) else score(profile),
        kernel=fact,
    )


def load_verdict(session: CandidateSession) -> Verdict | None:
    """Return the verdict on a candidate that does not load here; None if it does."""
    loaded = session.loaded()
    match loaded.ended:
        case "returned":
            return None
        case "unsupported":
            return UnsupportedHere(reason=loaded.message or "")
        case "lost":
            return Infra(reason=loaded.message or "the worker was lost")
        case "timeout":
            return TimedOut(seconds=session.runner.load_allowance(session.candidate))
        case "died" | "flooded":
            detail = f"while loading: {loaded.message or loaded.ended}"
            return Crashed(signal=loaded.signal, detail=detail)
        case _:
            detail = f"{loaded.error}: {loaded.message}" if loaded.error else str(loaded.message)
            return CompileError(detail=detail)
