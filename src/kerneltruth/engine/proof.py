"""Let a suite prove itself: PyTorch as the candidate is never flagged, and decoys always are."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import torch

from kerneltruth.cases.materialize import benchmark_case, materialize
from kerneltruth.cases.strategies import generate
from kerneltruth.documents.case import Case
from kerneltruth.documents.model import model_of
from kerneltruth.documents.records import Judgement
from kerneltruth.documents.suites import FlaggedCase, ProofCounts, TaskProof
from kerneltruth.documents.verdict import Verdict, is_bad, said_of
from kerneltruth.errors import UserError
from kerneltruth.oracle.attempt import AttemptEnded, judge_cases
from kerneltruth.oracle.candidate_session import CandidateSession
from kerneltruth.oracle.case_status import reason_of
from kerneltruth.oracle.expectation_builder import ExpectationCache
from kerneltruth.oracle.plan import Plan
from kerneltruth.oracle.reference import reference
from kerneltruth.runner.candidate import Candidate
from kerneltruth.runner.host import Runner
from kerneltruth.tasks.model import CALL, DTYPE
from kerneltruth.tasks.spec import INDEX_KINDS, Task, TensorSpec, evaluate

# Why further cases of a dtype were not begun.
NO_TIME = "no time was left for more cases"
# Cases in which attributes and dims must show an effect.
_CASES = 40
# Channels come in groups, and sizes in factors of 2 and 3.
_STEPS = (1, 2, 3, 4, 6, 8, 9)
_REFUSALS = (RuntimeError, ValueError, IndexError, TypeError, ArithmeticError)
OutputTensors = tuple[torch.Tensor, ...]


@dataclass(slots=True, kw_only=True)
class Proof:
    """The results of one task.

    Attributes:
        cases: judged cases by dtype.
        flagged: what was found wrong with PyTorch: mistakes of ours, unless the torch is broken.
        declined: refusals of PyTorch in the extended domain, by reason.
        unrefereeable: cases where a decoy passed, by reason.
        skipped: cases that were not judged, by reason: the operator rejects them, mostly.
        idle: attributes and dims that no result depends on.
        trouble: why no candidate can be judged on the task, for one that a user brought along.
    """

    task: str
    category: str
    cases: dict[str, int] = field(default_factory=dict)
    flagged: list[FlaggedCase] = field(default_factory=list)
    declined: Counter[str] = field(default_factory=Counter)
    unrefereeable: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    idle: tuple[str, ...] = ()
    trouble: str | None = None
    seconds: float = 0.0

    @property
    def holds(self) -> bool:
        """Return whether every dtype had judged cases and none was flagged."""
        if self.trouble is not None:
            return not self.flagged
        # Without a bound only empty cases are judged, which prove nothing.
        judged = sum(self.cases.values()) > self.unrefereeable.total()
        return judged and all(self.cases.values()) and not self.flagged

    def document(self) -> TaskProof:
        """Return the proof as `audit --suite --json` prints it."""
        return model_of(TaskProof, self)


def prove(
    task: Task,
    candidate: Candidate,
    runner: Runner,
    cache: ExpectationCache,
    *,
    plan: Plan,
    only_decisive: bool = False,
    until: float = math.inf,
    tell: Callable[[Proof], None] = lambda _: None,
) -> Proof:
    """Judge a candidate that must be right, on the plan's cases in each dtype.

    With `only_decisive`, nothing is held against a candidate that its plan's contract lets pass.
    No case begins after `until`, on the monotonic clock. `tell` receives the proof so far after
    each case.

    Raises:
        UserError: the task has none of the dtypes.
    """
    start = time.monotonic()
    proof = Proof(task=task.key, category=task.category, trouble=task.unrefereeable)
    if task.unrefereeable is not None:
        return proof
    declared = (*task.dtypes, *task.extended_dtypes)
    chosen = tuple(d for d in declared if plan.dtypes is None or d in plan.dtypes)
    if not chosen:
        raise UserError(f"{task.key} has none of the dtypes {', '.join(plan.dtypes or ())}")

    def report(proof: Proof) -> None:
        proof.seconds = time.monotonic() - start
        tell(proof)

    with CandidateSession(task, candidate, runner, cache, deadline_s=60.0) as session:
        for dtype in chosen:
            if task.foreign and dtype != chosen[0]:
                # The author's own sizes, which may be large, come in the author's dtype.
                session.task = replace(task, first={})
            here = replace(plan, dtypes=(dtype,), stop_at_first=False, compile=False)
            before = len(proof.flagged)
            verdict = _judge(session, here, dtype, proof, until, report)
            if only_decisive and verdict is not None and not is_bad(verdict):
                del proof.flagged[before:]
    if task.foreign:
        # The author does not say what the problem is in another dtype.
        proof.cases = {d: n for d, n in proof.cases.items() if n or d in task.dtypes}
    else:
        proof.idle = (*idle_attributes(task), *idle_dims(task))
    proof.seconds = time.monotonic() - start
    return proof


def _judge(
    session: CandidateSession,
    plan: Plan,
    dtype: str,
    proof: Proof,
    until: float,
    tell: Callable[[Proof], None],
) -> Verdict | None:
    """Judge a dtype; return the verdict, if time was left for all of it."""
    if time.monotonic() > until:
        proof.skipped[NO_TIME] += 1
        return None
    for count, event in enumerate(judge_cases(session, plan), 1):
        if isinstance(event, AttemptEnded):
            attempt = event.attempt
            proof.cases[dtype] = attempt.cases
            proof.declined.update(reason for _, reason in attempt.declined)
            proof.unrefereeable.update(attempt.unrefereeable)
            proof.skipped.update(attempt.skipped)
            if is_bad(attempt.verdict) and attempt.failure is None:
                said = said_of(attempt.verdict)
                flag = FlaggedCase(case="", verdict=attempt.verdict.word, detail=said)
                proof.flagged.append(flag)
            return attempt.verdict
        proof.flagged += _flags(event.judgement)
        proof.cases[dtype] = count
        tell(proof)
        if time.monotonic() > until:
            proof.skipped[NO_TIME] += 1
            return None
    return None


def _flags(judgement: Judgement) -> Iterator[FlaggedCase]:
    """Yield what a judgement holds against a candidate that must be right."""
    case, verdict = judgement.case.summary(), judgement.verdict
    for mismatch in judgement.interface:
        said = f"{mismatch.kind} {mismatch.output} {mismatch.detail}"
        yield FlaggedCase(case=case, verdict="fail", detail=said)
    if is_bad(verdict):
        parts = (*(getattr(verdict, n, None) for n in ("kind", "output")), reason_of(verdict))
        yield FlaggedCase(
            case=case, verdict=verdict.word, detail=" ".join(str(p) for p in parts if p)
        )


def by_category(proofs: Iterable[Proof]) -> dict[str, ProofCounts]:
    """Counts by category."""
    table: dict[str, list[Proof]] = {}
    for proof in proofs:
        table.setdefault(proof.category, []).append(proof)
    return {category: counted(own) for category, own in sorted(table.items())}


def counted(proofs: Sequence[Proof]) -> ProofCounts:
    """Count how many of some tasks hold, and the verdicts on their cases."""
    return ProofCounts(
        tasks=len(proofs),
        hold=sum(proof.holds for proof in proofs),
        cases=sum(sum(proof.cases.values()) for proof in proofs),
        flagged=sum(len(proof.flagged) for proof in proofs),
        declined=sum(proof.declined.total() for proof in proofs),
        unrefereeable=sum(proof.unrefereeable.total() for proof in proofs),
        skipped=sum(proof.skipped.total() for proof in proofs),
    )


def idle_attributes(task: Task) -> Iterator[str]:
    """Return the attributes that change no result in any of these cases."""
    varied = (a for a in task.attributes if len(a.values) > 1 and a.name not in (CALL, DTYPE))
    pending = {a.name: a.values for a in varied}
    for case in _some(task):
        usual = _result(task, case) if pending else None
        if usual is None:
            continue
        for name, values in list(pending.items()):
            others = (case.with_attributes(**{name: v}) for v in values)
            results = (_result(task, other) for other in others if other != case)
            if any(r is not None and not _equal(r, usual) for r in results):
                del pending[name]
    yield from pending


def idle_dims(task: Task) -> Iterator[str]:
    """Return the dims whose last elements affect no result in any of these cases."""
    pending = [d.symbol for d in task.dims]
    for case in _some(task):
        pending = [symbol for symbol in pending if not _counts(task, case, symbol)]
        if not pending:
            return
    yield from pending


def _some(task: Task) -> Iterator[Case]:
    yield benchmark_case(task, 0, task.dtypes[0])
    yield from generate(task, seed=0, count=_CASES, dtypes=task.dtypes[:1])


def _result(task: Task, case: Case, cut: Case | None = None) -> OutputTensors | None:
    """Return the reference's result, or None if the operator or the task rejects the case.

    Inputs are cut to the shapes of `cut`, a smaller case.
    """
    if not task.allows(case.sizes, case.settings):
        return None
    try:
        inputs = materialize(task, case)
        if cut is None:
            return reference(task, inputs.tensors, inputs.scalars)
        tensors = {
            spec.name: _cut(task, spec, inputs.tensors[spec.name], cut) for spec in task.tensors
        }
        return reference(task, tensors, task.scalars(cut.sizes, cut.settings))
    except _REFUSALS:
        return None


def _cut(task: Task, spec: TensorSpec, t: torch.Tensor | None, case: Case) -> torch.Tensor | None:
    """Cut a tensor to a smaller case; indices stay within it."""
    if t is None:
        return None
    shape = task.shape(spec, case.sizes, case.settings)
    left = t[tuple(slice(n) for n in shape)].clone()
    if spec.kind not in INDEX_KINDS or spec.extent is None:
        return left
    return left.clamp_max(evaluate(spec.extent, task.scope(case.sizes, case.settings)) - 1)


def _counts(task: Task, case: Case, symbol: str) -> bool:
    """Return whether the result changes when the elements of a larger size are cut off again."""
    size = case.sizes[symbol]
    if not task.allows(case.sizes, case.settings):
        return False
    for step in _STEPS:
        larger = case.with_dims(**{symbol: size + step})
        whole = _result(task, larger)
        part = None if whole is None else _result(task, larger, case.with_dims())
        if whole is not None and part is not None:
            return not _equal(whole, part)
    return False


def _equal(one: OutputTensors, other: OutputTensors) -> bool:
    return len(one) == len(other) and all(
        a.shape == b.shape and torch.equal(torch.nan_to_num(a), torch.nan_to_num(b))
        for a, b in zip(one, other, strict=True)
    )
