"""Cases in turn: a call and a ruling for each, until the plan is carried out."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain, islice

from msgspec.structs import replace

from kerneltruth.cases.promised import domain_of
from kerneltruth.cases.strategies import generate
from kerneltruth.documents.case import Case
from kerneltruth.documents.records import Judgement, KernelFact, ProfileEntry
from kerneltruth.documents.verdict import (
    Declined,
    Failed,
    Passed,
    TimedOut,
    Unrefereeable,
    UnsupportedHere,
    Verdict,
    Void,
    is_bad,
)
from kerneltruth.oracle.allowance import OutOfTime
from kerneltruth.oracle.blame import Blame
from kerneltruth.oracle.candidate_session import CandidateSession
from kerneltruth.oracle.case_status import CaseStatus, case_status, detail_of, kind_of
from kerneltruth.oracle.counts_by_obligation import ALWAYS_TRIED, CountsByObligation
from kerneltruth.oracle.decide import Facts, deciding_failure
from kerneltruth.oracle.expectation import Expectation, with_digests
from kerneltruth.oracle.judge import Ruling
from kerneltruth.oracle.kernel_fact import kernel_fact
from kerneltruth.oracle.kinds import Kinds
from kerneltruth.oracle.launches_seen import CONFIGS_ON_FIRST_CASE
from kerneltruth.oracle.open_parts import is_over, open_part
from kerneltruth.oracle.pace import InterpreterPace, is_too_large
from kerneltruth.oracle.plan import Plan
from kerneltruth.oracle.probes import probe
from kerneltruth.oracle.repeated_calls import (
    RightCases,
    drawn_alike,
    kept_from_others,
    of_several_calls,
)
from kerneltruth.oracle.tally import Tally

# Try at most this many other cases in place of one that could not be judged.
INSTEAD = 8
# Compiling for GPUs that are not here may take this share of a candidate's time; the rest of its
# specializations are not compiled. Some configurations take a minute each.
COMPILING = 0.25
# Stop after this many calls that do not return.
HANGS = 2


class CaseLoop:
    """The cases of one candidate in turn.

    Attributes:
        tally: counts of what was judged.
        counts: what they have shown of each obligation.
    """

    def __init__(self, session: CandidateSession, plan: Plan) -> None:
        self.tally = Tally()
        self._session = session
        self._plan = plan
        self._begin_from(
            session.cache.published(session.task, seed=plan.seed, device=session.runner.device)
        )
        # By identity of the case and number of the configuration.
        self._statuses: dict[tuple[str, int], CaseStatus | None] = {}
        self._judged: set[tuple[str, int]] = set()
        self._called: set[str] = set()
        self._right = RightCases()
        self._total = plan.cases
        self._pace = InterpreterPace(session)
        # The published inputs at smaller sizes, where their own take too long in the interpreter.
        self._smaller: Case | None = None
        self._out_of_time: TimedOut | None = None
        self._compiling_s = 0.0

    def _begin_from(self, published: Case) -> None:
        session, plan = self._session, self._plan
        self.counts = CountsByObligation(
            task=session.task,
            published=published,
            kinds=Kinds(session.task, published, session.runner.device),
            contract=plan.contract_with_demands,
            is_narrowed=plan.is_narrowed,
        )
        self._blame = Blame(counts=self.counts, fails=self._fails_alike, held=self._is_held)

    def facts(self, not_loaded: Verdict | None, kernel: ProfileEntry) -> Facts:
        """What `decide` takes, of the candidate's results and of whose work they are."""
        return Facts(
            not_loaded=not_loaded,
            failures=self.counts.failed(),
            untried=next(self.counts.undecided(), None),
            time_spent=self._out_of_time and self._pace.spent(self._out_of_time),
            tally=self.tally,
            planned=self._plan.cases,
            forgiving=self._plan.forgiving,
            kernel=kernel if kernel.decisive else None,
        )

    @property
    def ended(self) -> str | None:
        """Why no more cases were tried, if time ran out or too many calls were lost."""
        spent = self._out_of_time
        time = None if spent is None else f"the candidate's time, {spent.seconds:g} s, is spent"
        return time or self.tally.ended

    def judgements(self) -> Iterator[Judgement]:
        """Judge case by case until the planned number, or until nothing more can be learned."""
        if self._plan.stop_at_first:
            self._session.allowance.left_s = self._plan.seconds
        try:
            yield from self._in_turn()
        except OutOfTime:
            self._out_of_time = TimedOut(seconds=self._plan.seconds)

    def _in_turn(self) -> Iterator[Judgement]:
        plan, hangs = self._plan, 0
        for count, planned in enumerate(self._cases()):
            enough = self.tally.cases >= self._total or self.tally.ended
            if enough or (plan.stop_at_first and is_over(self.counts)):
                break
            case = open_part(self.counts, planned) if plan.stop_at_first else planned
            if case is not None and count:
                case = self._pace.fitted(case, self._total - self.tally.cases)
            if case is None or case.identity in self._called:
                continue
            for judgement in self._judge(case, count):
                yield judgement
                hangs += isinstance(judgement.verdict, TimedOut)
            if plan.stop_at_first and hangs >= (1 if case == self.counts.published else HANGS):
                self._out_of_time = TimedOut(seconds=hangs * plan.deadline_s)
                return
        first = self._right.first if plan.repeat else None
        if first is not None and not is_over(self.counts):
            yield from self._repeat_calls(first)
        late = None if is_over(self.counts) else self._session.changed_later()
        if late is not None:
            yield self._counted(of_several_calls(*late), late[0].case, late[0].case)

    def kernel_fact(self) -> KernelFact | None:
        """Which kernels computed right results, with the published arguments if possible.

        None also if the candidate's time is spent.
        """
        try:
            return kernel_fact(
                self._session,
                self._right.kept,
                self.counts.published,
                required=self._plan.require_kernel,
            )
        except OutOfTime:
            return None

    def _judge(self, case: Case, count: int) -> Iterator[Judgement]:
        """Judge a case under each configuration that is due."""
        session = self._session
        expectation = session.cache.get(session.task, case)
        unfit = _unfit(session, expectation)
        if unfit is not None:
            self.tally.skipped[unfit] += 1
            if expectation.invalid is None:
                self.counts.leave_out(case, UnsupportedHere(reason=unfit))
            else:
                self.counts.reject(case, unfit)
            if session.cannot_take(expectation) is not None:
                self.counts.lacks_dtype(case.dtype, unfit)
            return
        if expectation.unrefereeable is not None:
            unsettled = Unrefereeable(reason=expectation.unrefereeable)
            yield self._counted(Judgement(case=case, verdict=unsettled), case, case)
            return
        if self._pace.is_slow and (slow := self._pace.too_large(expectation)) is not None:
            self._leave_out(case, slow)
            return
        most = partial(self._pace.affordable, CONFIGS_ON_FIRST_CASE)
        for config in session.launches.configs_of(count, most):
            judgement, simplest = self._judge_one(expectation, config)
            if session.weights.become_own(case, judgement.verdict):
                return
            verdict = judgement.verdict
            if isinstance(verdict, UnsupportedHere) and is_too_large(verdict):
                self._leave_out(case, verdict)
                smaller, self._smaller = self._smaller, None
                if case == self.counts.published and smaller is not None:
                    self._begin_from(smaller)
                    yield from self._judge(smaller, count)
                return
            yield self._counted(judgement, case, simplest)
            if is_bad(judgement.verdict) and self._plan.stop_at_first:
                return
            if isinstance(judgement.verdict, Passed) and config == 0:
                self._right.keep(expectation)

    def _leave_out(self, case: Case, why: UnsupportedHere) -> None:
        self.tally.skipped[why.reason] += 1
        self.counts.leave_out(case, why)

    def _counted(self, judgement: Judgement, dealt: Case, simplest: Case) -> Judgement:
        """Count a judgement; see `Blame.add`."""
        decides = self._blame.add(judgement, dealt, simplest)
        self.tally.add(judgement, decides=decides)
        key = judgement.case.identity, judgement.config
        self._statuses[key] = case_status(judgement.verdict)
        self._judged.add(key)
        self._called.add(judgement.case.identity)
        return judgement

    def _fails_alike(self, like: Judgement, case: Case) -> bool:
        """Whether a case ends as a judged one did: wrong, or refused."""
        case = replace(case, domain=domain_of(self._session.task, case))
        key = case.identity, like.config
        if key not in self._statuses:
            self._statuses[key] = self._status(case, like.config)
            self._called.add(case.identity)
        return self._statuses[key] == case_status(like.verdict)

    def _is_held(self, like: Judgement, case: Case) -> bool:
        return self._statuses.get((case.identity, like.config)) == "held"

    def _status(self, case: Case, config: int) -> CaseStatus | None:
        expectation = self._session.cache.get(self._session.task, case)
        if expectation.unrefereeable is not None or _unfit(self._session, expectation) is not None:
            return None
        _, verdict = self._call(expectation, config)
        status = case_status(verdict)
        if status in (None, "held") or self._session.objection(expectation, verdict) is None:
            return status
        return None

    def _repeat_calls(self, first: Expectation) -> Iterator[Judgement]:
        """Repeat calls of right cases: only that shows some faults."""
        session = self._session
        kept = self._right.state_kept(session)
        if isinstance(kept, Failed):
            yield self._counted(of_several_calls(first, kept), first.case, first.case)
            return
        if kept is not None:
            judgement, simplest = self._judge_one(kept, 0)
            yield self._counted(judgement, kept.case, simplest)
        drawn = self._right.telling() if session.task.random else None
        same = None if drawn is None else drawn_alike(session, drawn)
        if drawn is not None and same is not None:
            yield self._counted(of_several_calls(drawn, same), drawn.case, drawn.case)
        self.counts.add_repeated()

    def _cases(self) -> Iterator[Case]:
        """The published inputs, then the rest with the block sizes that their launch shows."""
        session, plan = self._session, self._plan
        device = session.runner.device
        published: Case | None = self.counts.published
        if not plan.asks(self.counts.published):
            published = next(generate(session.task, count=1, device=device, **plan.chosen()), None)
        if published is not None:
            yield published
            if session.weights.own is not None and (taken := session.weights.as_taken(published)):
                yield taken
        dealt = session.cache.deals.deal(
            session.task,
            plan,
            self.counts.published,
            device=device,
            blocks=tuple(sorted(session.launches.blocks)),
            thresholds=session.thresholds,
        )
        # Configurations of the first case may have taken the number of cases by themselves.
        self._total = max(dealt.total, self.tally.cases + len(dealt.firsts) * plan.grows)
        waiting = chain(dealt.firsts, self._instead(dealt.others), dealt.others)
        for case in waiting:
            if case.identity not in self._called and (taken := session.weights.as_taken(case)):
                yield taken

    def _instead(self, waiting: Sequence[Case]) -> Iterator[Case]:
        """Cases that replace deciding ones which could not be judged."""
        undecided = [key for key, _ in self.counts.undecided() if key not in ALWAYS_TRIED]
        for key in undecided:
            trying = (c for c in waiting if key in {d.key for d in self.counts.departing(c)})
            for case in islice(trying, INSTEAD):
                if key not in {open_key for open_key, _ in self.counts.undecided()}:
                    break
                if deciding_failure(self.counts.failed()) is None:
                    # Obligations that a failure left open do not justify cases beyond the budget.
                    self._total = max(self._total, self.tally.cases + self._plan.grows)
                yield case

    def _judge_one(self, expectation: Expectation, config: int) -> tuple[Judgement, Case]:
        """Judge one case under one configuration.

        Returns:
            The judgement, and the most ordinary case that fails alike. A failing judgement is that
            of the most ordinary case, unless it was judged before.
        """
        session, case = self._session, expectation.case
        start = time.monotonic()
        ruling, verdict = self._call(expectation, config)
        judgement = Judgement(
            case=case,
            verdict=verdict,
            stats=ruling.stats,
            config=config,
            seconds=time.monotonic() - start,
            interface=ruling.interface,
        )
        if isinstance(verdict, TimedOut) and self._pace.is_unknown:
            self._smaller = self._pace.measure(case, config)
        slow = self._pace.explains(expectation, verdict)
        if slow is not None:
            return replace(judgement, verdict=slow), case
        # PyTorch does not share the mismatches of form that are noted.
        noted = self.tally.noted.keys()
        new_form = any((m.kind, m.output) not in noted for m in ruling.interface)
        if is_bad(verdict) or new_form:
            objection = session.objection(expectation, verdict)
            if objection is not None:
                return replace(judgement, verdict=Void(reason=objection)), case
        try:
            return self._followed_up(judgement, expectation, ruling)
        except OutOfTime:
            # The failure stands, though nothing more is known about it.
            return with_digests(judgement, expectation, ruling.outputs), case

    def _followed_up(
        self, judgement: Judgement, expectation: Expectation, ruling: Ruling
    ) -> tuple[Judgement, Case]:
        """See `_judge_one`: further calls of a failing case."""
        session, case, verdict = self._session, judgement.case, judgement.verdict
        config, simplest = judgement.config, judgement.case
        if case_status(verdict) in ("broken", "refused"):
            simplest = self._blame.simplest(judgement, expectation.inputs)
            judged = (simplest.identity, config) in self._judged
            if judged or self._is_known(judgement, simplest):
                return judgement, simplest
            simplified = simplest.identity != case.identity and not isinstance(verdict, TimedOut)
            if simplified and self._plan.stop_at_first:
                simpler, inner = self._judge_one(session.cache.get(session.task, simplest), config)
                if case_status(simpler.verdict) == case_status(verdict):
                    return simpler, inner
                simplest = case
        if is_bad(verdict):
            return self._examined(judgement, expectation, ruling), simplest
        if ruling.interface:
            return with_digests(judgement, expectation, ruling.outputs), case
        return judgement, simplest

    def _is_known(self, judgement: Judgement, simplest: Case) -> bool:
        """Whether it fails without any departure, as the published inputs did: nothing new."""
        known = self._blame.failure_as_published(judgement, any_config=True)
        departing = self.counts.departing(simplest)
        same = known is not None and kind_of(known.verdict) == kind_of(judgement.verdict)
        return same and not departing

    def _examined(
        self, judgement: Judgement, expectation: Expectation, ruling: Ruling
    ) -> Judgement:
        """The judgement with its causes and the digests that a replay compares."""
        session, config = self._session, judgement.config
        session.examined = session.examined or ((expectation.case.identity, config), ruling)
        probes = probe(session, expectation, ruling, config=config)
        judgement = replace(judgement, verdict=probes.refine(judgement.verdict))
        kept = kept_from_others(session, expectation, judgement.verdict, config=config)
        if kept is not None:
            return replace(of_several_calls(expectation, kept), config=config)
        return with_digests(judgement, expectation, ruling.outputs)

    def _call(self, expectation: Expectation, config: int) -> tuple[Ruling, Verdict]:
        """Call and compile: the ruling on the call, and the verdict on both."""
        session = self._session
        ruling, observation, _ = session.call(expectation, config=config)
        verdict = ruling.verdict
        self._pace.learn(expectation, verdict, observation.seconds)
        plan = self._plan
        compiles = not plan.stop_at_first or self._compiling_s < COMPILING * plan.seconds
        if plan.compile and session.runner.targets and compiles and not is_bad(verdict):
            start = time.monotonic()
            refused = session.compile(expectation, observation.launches, config)
            self._compiling_s += time.monotonic() - start
            if refused is not None:
                core = expectation.case.domain == "core"
                verdict = refused if core else Declined(reason=refused.detail)
        beyond = session.task.beyond(expectation.case.settings)
        loud = case_status(verdict) == "refused" or isinstance(verdict, UnsupportedHere)
        if beyond is not None and loud:
            verdict = Declined(reason=f"{detail_of(verdict)}; {beyond}")
        return ruling, verdict


def _unfit(session: CandidateSession, expectation: Expectation) -> str | None:
    if expectation.invalid is not None:
        return f"the operator rejects the case: {expectation.invalid}"
    return session.cannot_take(expectation)
