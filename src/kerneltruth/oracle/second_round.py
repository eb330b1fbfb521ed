"""A second round: what passed is judged again, in a fresh child and on cases drawn anew."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace

from msgspec import structs

from kerneltruth.cases.philox import derive
from kerneltruth.documents.records import (
    Attempt,
    SecondRound,
    SecondRoundReason,
    SuspectFact,
    Suspicion,
)
from kerneltruth.documents.verdict import Passed
from kerneltruth.oracle.attempt import AttemptEnded, AttemptEvent, CaseJudged, judge_cases
from kerneltruth.oracle.candidate_session import CandidateSession
from kerneltruth.oracle.decide import deciding_round
from kerneltruth.oracle.plan import Plan
from kerneltruth.runner.source_patches import patches

# How many times the cases of the first round a suspect candidate must pass.
STRICTER = 2
# Names that a source replaces, as a suspicion lists them.
MOST_NAMED = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class SecondRoundBegun:
    """Event: the candidate passed, and is judged again."""

    reason: SecondRoundReason


def judge_candidate(
    session: CandidateSession, plan: Plan
) -> Iterator[AttemptEvent | SecondRoundBegun]:
    """Judge a candidate, and a second time if it passed and there is a reason to.

    The last event is `AttemptEnded`, with the attempt of the round that decides: a pass holds only
    if both rounds do.
    """
    first = yield from _round(session, plan)
    reason = _reason(session, plan, first) if isinstance(first.verdict, Passed) else None
    if reason is None:
        yield AttemptEnded(attempt=first)
        return
    yield SecondRoundBegun(reason=reason)
    # The large call depends on no seed, and takes seconds.
    second_plan = replace(plan, seed=second_seed(plan.seed), large=False)
    if reason == "suspect":
        second_plan = replace(second_plan, cases=STRICTER * plan.cases)
    session.begin_second_round()
    second = yield from _round(session, second_plan)
    known = {s.fact: s for s in (*second.suspicions, *first.suspicions)}
    yield AttemptEnded(
        attempt=structs.replace(
            deciding_round(first, second),
            seconds=first.seconds + second.seconds,
            suspicions=tuple(known.values()),
            second_round=SecondRound(
                reason=reason,
                seed=second_plan.seed,
                verdict=second.verdict.word,
                cases=second.cases,
            ),
        )
    )


def second_seed(seed: int) -> int:
    """Return the seed of the second round's cases, short enough to retype."""
    return derive(seed, "second round") >> 32


def is_drawn(seed: int, sha256: str, share: float) -> bool:
    """Return whether a source is among the share that is judged a second time.

    A candidate cannot foresee it without the seed.
    """
    return derive(seed, "judged twice", sha256) < share * 2**64


def _reason(session: CandidateSession, plan: Plan, first: Attempt) -> SecondRoundReason | None:
    if first.suspicions:
        return "suspect"
    if plan.twice >= 1:
        return "asked"
    return "drawn" if is_drawn(plan.seed, session.candidate.sha256, plan.twice) else None


def _round(session: CandidateSession, plan: Plan) -> Generator[CaseJudged, None, Attempt]:
    """Judge one round; return its attempt."""
    for event in judge_cases(session, plan):
        if isinstance(event, AttemptEnded):
            ended = event.attempt
            passed = isinstance(ended.verdict, Passed)
            return structs.replace(ended, suspicions=_suspicions(session, ended) if passed else ())
        yield event
    raise AssertionError("a round ends with an attempt")


def _suspicions(session: CandidateSession, attempt: Attempt) -> tuple[Suspicion, ...]:
    """Return what makes a right candidate suspect; it convicts none."""
    traces, kernel = session.traces(), attempt.kernel
    replaced = patches(session.candidate.source)
    more = f" and {len(replaced) - MOST_NAMED} more" if len(replaced) > MOST_NAMED else ""
    details: dict[SuspectFact, str] = {
        "replaces_names": ", ".join(replaced[:MOST_NAMED]) + more,
        "threads_left": _several(traces.threads, "thread") + " ran on after a call",
        "processes_left": _several(traces.processes, "process") + " ran on after the calls",
        "calls_lost": _several(traces.lost, "call") + " ended with a lost child",
        "repetition_differs": "an equal call gave another result, which is right as well",
        "kernels_not_needed": "launches its own kernels, and is right when they do nothing",
    }
    holds: dict[SuspectFact, bool] = {
        "replaces_names": bool(replaced),
        "threads_left": bool(traces.threads),
        "processes_left": bool(traces.processes),
        "calls_lost": bool(traces.lost),
        "repetition_differs": traces.changing,
        "kernels_not_needed": kernel is not None and kernel.probe == "not_needed",
    }
    return tuple(Suspicion(fact=f, detail=said) for f, said in details.items() if holds[f])


def _several(count: int, noun: str) -> str:
    return f"{count} {noun}{'es' if noun.endswith('s') else 's'}" if count > 1 else f"1 {noun}"
