"""Cases in order, a call and a ruling for each, and what it comes to."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from kerneltruth.cases.promised import domain_of
from kerneltruth.cases.published import published_case
from kerneltruth.cases.strategies import enough_cases, generate
from kerneltruth.documents.case import Case, Domain
from kerneltruth.documents.model import model_of
from kerneltruth.documents.records import (
    Attempt,
    BinaryRecord,
    CandidateRef,
    Judgement,
    KernelFact,
)
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
from kerneltruth.oracle.kernel_fact import (
    kernel_entry,
    kernel_fact,
    launches_none,
    with_kernel_required,
)
from kerneltruth.oracle.probes import probe
from kerneltruth.oracle.profile import Outcome, ProfileBuilder, outcome_of
from kerneltruth.oracle.score import score
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
from kerneltruth.runner.protocol import Observation
from kerneltruth.tasks.spec import Task

CONFIGS_ON_FIRST_CASE = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to try, and when to stop.

    Attributes:
        seed: master seed of the cases.
        strategies: names of strategies; empty means all of them.
        cases: how many cases to judge, the published inputs among them.
        promises: whether more are judged where that is what it takes to try each of the task's
            promises once.
        dtypes: restriction of the dtypes; None means the task's.
        domain: "core" judges the core only.
        deadline_s: wall time allowed for one call.
        stop_at_first: whether an obligation ends at its first failing case.
        require_kernel: whether a right result must be the work of the candidate's own kernels.
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
    require_kernel: bool = False
    compile: bool = True

    def total(self, task: Task, device: str) -> int:
        """How many cases are judged of a task."""
        if not self.promises:
            return self.cases
        return enough_cases(task, least=self.cases, device=device, **self.chosen())

    def asks(self, published: Case) -> bool:
        """Whether the published inputs are among what is to be tried."""
        dtypes = self.dtypes is None or published.dtype in self.dtypes
        return dtypes and (not self.strategies or "default" in self.strategies)

    def chosen(self) -> dict[str, Any]:
        """The arguments of `generate` that choose the cases."""
        return {
            "strategies": self.strategies,
            "seed": self.seed,
            "dtypes": self.dtypes,
            "domain": self.domain,
        }


def evaluate_cases(session: CandidateSession, plan: Plan) -> Iterator[Event]:
    """Judge a candidate on the planned cases; the last event is `AttemptEnded`.

    An obligation ends at its own first broken case, and the others go on.
    """
    start = time.monotonic()
    loop = _CaseLoop(session, plan)
    tally = loop.tally
    early = _load_verdict(session.loaded(), session.runner.load_allowance(session.candidate))
    if early is None:
        for judgement in loop.judgements():
            yield CaseJudged(judgement=judgement)
        tally.convict_of_form()
    ended = None if early is None else f"{word(early)} on loading"
    fact = loop.kernel_fact()
    kernel = kernel_entry(fact, ended, required=plan.require_kernel)
    profile = loop.profile.profile(ended) | {"kernel": kernel}
    verdict = early or tally.verdict(plan.cases)
    yield AttemptEnded(
        attempt=Attempt(
            task=session.task.key,
            candidate=CandidateRef(
                sha256=session.candidate.sha256,
                path=session.candidate.path,
                language=session.candidate.language,
                entry=session.candidate.entry,
            ),
            torch_only=is_torch_only(session.candidate) or launches_none(session.candidate, fact),
            verdict=with_kernel_required(verdict, kernel) if plan.require_kernel else verdict,
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
            profile=profile,
            score=score(profile),
            kernel=fact,
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


class _CaseLoop:
    """The cases of one candidate in turn.

    Attributes:
        tally: counts of what was judged.
        profile: what became of each obligation.
    """

    def __init__(self, session: CandidateSession, plan: Plan) -> None:
        self.tally = Tally()
        self.profile = ProfileBuilder(
            task=session.task,
            published=published_case(session.task, seed=plan.seed, device=session.runner.device),
            fails=self._fails_alike,
        )
        self._session = session
        self._plan = plan
        self._outcomes: dict[str, Outcome | None] = {}
        self._right: list[Expectation] = []

    def judgements(self) -> Iterator[Judgement]:
        """Judge case by case until the planned number, or until nothing more can be learned."""
        session, plan = self._session, self._plan
        task, device = session.task, session.runner.device
        total = session.cache.count((task.key, plan, device), lambda: plan.total(task, device))
        for count, planned in enumerate(self._cases(total)):
            if self.tally.cases >= total or self.profile.is_over:
                break
            case = self.profile.open_part(planned) if plan.stop_at_first else planned
            if case is None or case.identity in self._outcomes:
                continue
            for judgement in self._judge(case, count):
                yield judgement
                if isinstance(judgement.verdict, TimedOut) and plan.stop_at_first:
                    # Each further call may take as long.
                    return
        if self._right and not self.profile.is_over:
            yield from self._call_again()

    def kernel_fact(self) -> KernelFact | None:
        """Whose work the judged calls are."""
        return kernel_fact(self._session, self._right)

    def _judge(self, case: Case, count: int) -> Iterator[Judgement]:
        """Judge a case under each configuration whose turn it is."""
        session = self._session
        expectation = session.cache.get(session.task, case)
        unfit = _unfit(session, expectation)
        if unfit is not None:
            self.tally.skipped[unfit] += 1
            return
        if expectation.unrefereeable is not None:
            unsettled = Unrefereeable(reason=expectation.unrefereeable)
            yield from self._counted(Judgement(case=case, verdict=unsettled))
            return
        for config in _configs(session, count):
            judgement = self._judge_one(expectation, config)
            if session.keeps_its_weights(case, judgement.verdict):
                return
            yield from self._counted(judgement)
            if is_bad(judgement.verdict) and self._plan.stop_at_first:
                return
            if isinstance(judgement.verdict, Passed) and config == 0:
                _keep(self._right, expectation)

    def _counted(self, judgement: Judgement) -> Iterator[Judgement]:
        """Count a judgement; what is refused beyond the core may be refused in it, too."""
        self.tally.add(judgement)
        self._outcomes[judgement.case.identity] = outcome_of(judgement.verdict)
        simplest = self.profile.add(judgement) if self._plan.stop_at_first else None
        yield judgement
        if simplest is None or judgement.case.domain == "core":
            return
        simplest = replace(simplest, domain=domain_of(self._session.task, simplest))
        if simplest.domain == "core":
            expectation = self._session.cache.get(self._session.task, simplest)
            yield from self._counted(self._judge_one(expectation, judgement.config))

    def _fails_alike(self, like: Judgement, case: Case) -> bool:
        """Whether a case ends as a judged one did: wrong, or refused."""
        case = replace(case, domain=domain_of(self._session.task, case))
        if case.identity not in self._outcomes:
            self._outcomes[case.identity] = self._outcome(case, like.config)
        return self._outcomes[case.identity] == outcome_of(like.verdict)

    def _outcome(self, case: Case, config: int) -> Outcome | None:
        expectation = self._session.cache.get(self._session.task, case)
        if expectation.unrefereeable is not None or _unfit(self._session, expectation) is not None:
            return None
        _, verdict = self._call(expectation, config)
        outcome = outcome_of(verdict)
        if outcome in (None, "held") or self._session.objection(expectation, verdict) is None:
            return outcome
        return None

    def _call_again(self) -> Iterator[Judgement]:
        """Make the further calls of right cases that alone show some faults."""
        session, first = self._session, self._right[0]
        kept = kept_from_before(session, first, config=0, models=session.controls is not None)
        if isinstance(kept, Failed):
            yield from self._counted(_of_several_calls(first, kept))
            return
        if kept is not None:
            yield from self._counted(self._judge_one(kept, 0))
        drawn = telling(self._right) if session.task.random else None
        same = None if drawn is None else drawn_alike(session, drawn, config=0)
        if drawn is not None and same is not None:
            yield from self._counted(_of_several_calls(drawn, same))
        self.profile.add_repeated(1)

    def _cases(self, total: int) -> Iterator[Case]:
        """The published inputs, then the rest with the block sizes that their launch shows.

        Three times as many are offered as are wanted, so that cases that cannot be judged are
        replaced.
        """
        session, plan = self._session, self._plan
        settings = {**plan.chosen(), "device": session.runner.device}
        seen: set[str] = set()
        first: Case | None = self.profile.published
        if not plan.asks(self.profile.published):
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

    def _judge_one(self, expectation: Expectation, config: int) -> Judgement:
        """Judge one case under one configuration."""
        session = self._session
        start = time.monotonic()
        ruling, verdict = self._call(expectation, config)
        judgement = Judgement(
            case=expectation.case,
            verdict=verdict,
            stats=ruling.stats,
            config=config,
            seconds=time.monotonic() - start,
            interface=ruling.interface,
        )
        # PyTorch does not share the mismatches of form that are noted.
        noted = self.tally.noted.keys()
        new_form = any((m.kind, m.output) not in noted for m in ruling.interface)
        if is_bad(verdict) or new_form:
            objection = session.objection(expectation, verdict)
            if objection is not None:
                return replace(judgement, verdict=Void(reason=objection))
        if is_bad(verdict):
            session.convicted = session.convicted or ((expectation.case.identity, config), ruling)
            probes = probe(session, expectation, ruling, config=config)
            judgement = replace(judgement, verdict=probes.refine(verdict))
            kept = kept_from_others(session, expectation, judgement.verdict, config=config)
            if kept is not None:
                return replace(_of_several_calls(expectation, kept), config=config)
        elif not (expectation.case.domain == "core" and ruling.interface):
            return judgement
        return with_digests(judgement, expectation, ruling)

    def _call(self, expectation: Expectation, config: int) -> tuple[Ruling, Verdict]:
        """Call and compile: the ruling on the call, and the verdict on both."""
        session = self._session
        ruling, observation, _ = session.call(expectation, config=config)
        verdict = ruling.verdict
        if self._plan.compile and session.runner.targets and not is_bad(verdict):
            refused = session.compile(expectation, observation.launches, config)
            if refused is not None:
                core = expectation.case.domain == "core"
                verdict = refused if core else Declined(reason=refused.detail)
        beyond = session.task.beyond(expectation.case.settings)
        if beyond is not None and (is_bad(verdict) or isinstance(verdict, UnsupportedHere)):
            verdict = Declined(reason=f"{_what(verdict)}; {beyond}")
        return ruling, verdict


def _unfit(session: CandidateSession, expectation: Expectation) -> str | None:
    """Why the case is put to no candidate, or not to one in this language."""
    if expectation.invalid is not None:
        return f"the operator rejects the case: {expectation.invalid}"
    return session.cannot_take(expectation)


def _keep(right: list[Expectation], expectation: Expectation) -> None:
    """Keep what may be called again; of a large case only where there is no other."""
    if right and right[0].is_large:
        right.pop()
    if not right or not expectation.is_large:
        right.append(expectation)


def _of_several_calls(expectation: Expectation, verdict: Failed) -> Judgement:
    return Judgement(
        case=expectation.case,
        verdict=verdict,
        digests=expectation.inputs.digests(),
        reference_digest=expectation.digest(),
    )


def _configs(session: CandidateSession, count: int) -> Iterator[int]:
    """Which configurations of an autotuned kernel a case runs under: all in turn over the cases.

    The number is known only after the first call, so the first case takes the others afterwards.
    """
    yield count % session.configs
    if count == 0:
        yield from range(1, min(session.configs, CONFIGS_ON_FIRST_CASE))


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
