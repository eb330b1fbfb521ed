"""Cases in order, a call and a ruling for each, and what it comes to."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from kerneltruth.cases.strategies import enough_cases, generate
from kerneltruth.documents.case import Case, Domain
from kerneltruth.documents.model import model_of
from kerneltruth.documents.records import Attempt, BinaryRecord, CandidateRef, Judgement
from kerneltruth.oracle.again import (
    drawn_alike,
    kept_from_before,
    kept_from_others,
    telling,
)
from kerneltruth.oracle.attempt import AttemptEnded, CaseJudged, Event
from kerneltruth.oracle.candidate_session import CandidateSession
from kerneltruth.oracle.expected import Expectation, tensors_digest
from kerneltruth.oracle.judge import Ruling
from kerneltruth.oracle.probes import probe
from kerneltruth.oracle.tally import Tally
from kerneltruth.oracle.verdict import (
    CompileError,
    Crashed,
    Declined,
    Failed,
    Infra,
    Passed,
    TimedOut,
    Unrefereeable,
    UnsupportedHere,
    Verdict,
    Void,
    is_bad,
    word,
)
from kerneltruth.runner.candidate import is_torch_only
from kerneltruth.runner.host import load_allowance
from kerneltruth.runner.protocol import Observation
from kerneltruth.tasks.spec import Task

CONFIGS_ON_FIRST_CASE = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to try, and when to stop.

    Attributes:
        seed: master seed of the cases.
        strategies: names of strategies; empty means all of them.
        cases: how many cases to judge.
        promises: whether more are judged where that is what it takes to try each of the task's
            promises once.
        dtypes: restriction of the dtypes; None means the task's.
        domain: "core" judges the core only.
        deadline_s: wall time allowed for one call.
        stop_at_first: whether the first failing case ends the session.
        compile: whether every launch is also compiled for the runner's targets.
    """

    seed: int = 0
    strategies: tuple[str, ...] = ()
    cases: int = 48
    promises: bool = False
    dtypes: tuple[str, ...] | None = None
    domain: Domain = "extended"
    deadline_s: float = 20.0
    stop_at_first: bool = True
    compile: bool = True

    def total(self, task: Task, device: str) -> int:
        """How many cases are judged of a task."""
        if not self.promises:
            return self.cases
        return enough_cases(task, least=self.cases, device=device, **self.chosen())

    def chosen(self) -> dict[str, Any]:
        """The arguments of `generate` that choose the cases."""
        return {
            "strategies": self.strategies,
            "seed": self.seed,
            "dtypes": self.dtypes,
            "domain": self.domain,
        }


def evaluate_cases(session: CandidateSession, plan: Plan) -> Iterator[Event]:
    """Judge a candidate on the planned cases; the last event is `AttemptEnded`."""
    start = time.monotonic()
    tally = Tally()
    early = _load_verdict(session.loaded(), load_allowance(session.candidate))
    if early is None:
        for judgement in _judge_cases(session, plan, tally):
            yield CaseJudged(judgement=judgement)
            tally.add(judgement)
            if plan.stop_at_first and tally.failure is not None:
                break
        tally.convict_of_form()
    yield AttemptEnded(
        attempt=Attempt(
            task=session.task.key,
            candidate=CandidateRef(
                sha256=session.candidate.sha256,
                path=session.candidate.path,
                language=session.candidate.language,
                entry=session.candidate.entry,
            ),
            torch_only=is_torch_only(session.candidate),
            verdict=early or tally.verdict(plan.cases),
            cases=tally.cases,
            failed=tally.failed,
            declined=tuple(tally.declined),
            unrefereeable=dict(tally.unrefereeable),
            skipped=dict(tally.skipped),
            failure=tally.failure,
            binaries=tuple(model_of(BinaryRecord, b) for b in session.binaries),
            worst_ratio=tally.worst,
            seconds=time.monotonic() - start,
            dtypes=tally.dtypes,
            headers=session.headers,
            own_weights=session.own_weights,
            void=dict(tally.void),
            interface=tuple(noted.note() for noted in tally.noted.values()),
        )
    )


def _load_verdict(loaded: Observation, allowed_s: float) -> Verdict | None:
    match loaded.ended:
        case "returned":
            return None
        case "unsupported":
            return UnsupportedHere(reason=loaded.message or "")
        case "lost":
            return Infra(reason=loaded.message or "the worker was lost")
        case "timeout":
            return TimedOut(seconds=allowed_s)
        case "died" | "flooded":
            detail = f"while loading: {loaded.message or loaded.ended}"
            return Crashed(signal=loaded.signal, detail=detail)
        case _:
            detail = f"{loaded.error}: {loaded.message}" if loaded.error else str(loaded.message)
            return CompileError(detail=detail)


def _judge_cases(session: CandidateSession, plan: Plan, tally: Tally) -> Iterator[Judgement]:
    device = session.runner.device
    total = session.cache.count(
        (session.task.key, plan, device), lambda: plan.total(session.task, device)
    )
    right: list[Expectation] = []
    for count, case in enumerate(_cases(session, plan, total)):
        if tally.cases >= total:
            break
        expectation = session.cache.get(session.task, case)
        if expectation.invalid is not None:
            tally.skipped[f"the operator rejects the case: {expectation.invalid}"] += 1
            continue
        cannot = session.cannot_take(expectation)
        if cannot is not None:
            tally.skipped[cannot] += 1
            continue
        if expectation.unrefereeable is not None:
            yield Judgement(case=case, verdict=Unrefereeable(reason=expectation.unrefereeable))
            continue
        for config in _configs(session, count):
            judgement = _judge_one(session, plan, expectation, config, tally.noted.keys())
            if session.keeps_its_weights(case, judgement.verdict):
                break
            yield judgement
            if is_bad(judgement.verdict) and plan.stop_at_first:
                return
            if isinstance(judgement.verdict, Passed) and config == 0:
                _keep(right, expectation)
    if tally.failure is None:
        yield from _called_again(session, plan, tally, right)


def _keep(right: list[Expectation], expectation: Expectation) -> None:
    """Keep what may be called again; of a large case only where there is no other."""
    if right and right[0].is_large:
        right.pop()
    if not right or not expectation.is_large:
        right.append(expectation)


def _called_again(
    session: CandidateSession, plan: Plan, tally: Tally, right: Sequence[Expectation]
) -> Iterator[Judgement]:
    """What only further calls of right cases show to be wrong."""
    if not right:
        return
    kept = kept_from_before(session, right[0], config=0, models=session.controls is not None)
    if isinstance(kept, Failed):
        yield _of_several_calls(right[0], kept)
        return
    if kept is not None:
        yield _judge_one(session, plan, kept, 0, tally.noted.keys())
    drawn = telling(right) if session.task.random and tally.failure is None else None
    same = None if drawn is None else drawn_alike(session, drawn, config=0)
    if drawn is not None and same is not None:
        yield _of_several_calls(drawn, same)


def _of_several_calls(expectation: Expectation, verdict: Failed) -> Judgement:
    return Judgement(
        case=expectation.case,
        verdict=verdict,
        digests=expectation.inputs.digests(),
        reference_digest=expectation.digest(),
    )


def _cases(session: CandidateSession, plan: Plan, total: int) -> Iterator[Case]:
    """The planned cases: one first, to see the launch, then the rest with its block sizes.

    Three times as many are offered as are wanted, so that cases that cannot be judged are replaced.
    """
    settings = {**plan.chosen(), "device": session.runner.device}
    seen: set[str] = set()
    first = next(generate(session.task, count=1, **settings), None)
    if first is not None:
        seen.add(first.identity)
        yield first
        if session.own_weights is not None and (again := session.as_taken(first)) is not None:
            yield again
    blocks = tuple(sorted(session.blocks))
    for case in generate(
        session.task, count=3 * total, blocks=blocks, thresholds=session.thresholds, **settings
    ):
        if case.identity not in seen:
            seen.add(case.identity)
            if (taken := session.as_taken(case)) is not None:
                yield taken


def _configs(session: CandidateSession, count: int) -> Iterator[int]:
    """Which configurations of an autotuned kernel a case runs under: all in turn over the cases.

    The number is known only after the first call, so the first case takes the others afterwards.
    """
    yield count % session.configs
    if count == 0:
        yield from range(1, min(session.configs, CONFIGS_ON_FIRST_CASE))


def _judge_one(
    session: CandidateSession,
    plan: Plan,
    expectation: Expectation,
    config: int,
    noted: Collection[tuple[str, str]],
) -> Judgement:
    """Judge one case; `noted` has the mismatches of form that PyTorch does not share."""
    start = time.monotonic()
    ruling, observation, _ = session.call(expectation, config=config)
    verdict = ruling.verdict
    core = expectation.case.domain == "core"
    if plan.compile and session.runner.targets and not is_bad(verdict):
        refused = session.compile(expectation, observation.launches, config)
        if refused is not None:
            verdict = refused if core else Declined(reason=refused.detail)
    beyond = session.task.beyond(expectation.case.settings)
    if beyond is not None and (is_bad(verdict) or isinstance(verdict, UnsupportedHere)):
        verdict = Declined(reason=f"{_what(verdict)}; {beyond}")
    judgement = Judgement(
        case=expectation.case,
        verdict=verdict,
        stats=ruling.stats,
        config=config,
        seconds=time.monotonic() - start,
        interface=ruling.interface,
    )
    new_form = any((m.kind, m.output) not in noted for m in ruling.interface)
    if is_bad(verdict) or new_form:
        objection = session.objection(expectation, verdict)
        if objection is not None:
            return replace(judgement, verdict=Void(reason=objection))
    if is_bad(verdict):
        session.convicted = (expectation.case.identity, config), ruling
        probes = probe(session, expectation, ruling, config=config)
        judgement = replace(judgement, verdict=probes.refine(verdict))
        kept = kept_from_others(session, expectation, judgement.verdict, config=config)
        if kept is not None:
            return replace(_of_several_calls(expectation, kept), config=config)
    elif not (core and ruling.interface):
        return judgement
    return with_digests(judgement, expectation, ruling)


def _what(verdict: Verdict) -> str:
    """A bad verdict in a few words."""
    said = (getattr(verdict, name, None) for name in ("detail", "error", "reason"))
    return str(next(filter(None, said), word(verdict))).splitlines()[0]


def with_digests(judgement: Judgement, expectation: Expectation, ruling: Ruling) -> Judgement:
    """The judgement with what a replay compares: digests of inputs, reference and outputs."""
    return replace(
        judgement,
        digests=expectation.inputs.digests(),
        reference_digest=expectation.digest(),
        output_digest=tensors_digest(ruling.outputs) if ruling.outputs else None,
    )
