"""Explain a failing judgement: its smallest case and a sentence, found by further runs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from msgspec import structs

from kerneltruth.documents.case import Case
from kerneltruth.documents.records import Attempt, ErrorMap, Judgement, QuantizationFault
from kerneltruth.documents.verdict import (
    OF_SEVERAL_CALLS,
    CompileError,
    Crashed,
    Failed,
    RuntimeFault,
    TimedOut,
    Verdict,
)
from kerneltruth.explain.configurations import configurations
from kerneltruth.explain.departed_rule import departed_rule
from kerneltruth.explain.inquiry import Inquiry
from kerneltruth.explain.localize.error_map import map_of
from kerneltruth.explain.localize.evidence import FailureEvidence, Values, siblings_of
from kerneltruth.explain.localize.sentences import localize
from kerneltruth.explain.localize.when import threshold
from kerneltruth.explain.minimize.cases import domain, minimize_case
from kerneltruth.explain.minimize.search import MinimizeBudget, Shrunk
from kerneltruth.explain.shown import shown
from kerneltruth.oracle.candidate_session import CandidateSession
from kerneltruth.oracle.claims import claims_in_words
from kerneltruth.oracle.expectation import Expectation
from kerneltruth.oracle.judge import Ruling
from kerneltruth.oracle.reference import real_parts
from kerneltruth.tasks.model import OUT

# On a GPU, compiling the first simpler case may exceed the time for a whole explanation in a run of
# many candidates.
FIRST_S = 5.0
# Kinds that accumulated small errors may show on one case.
ACCUMULATING = frozenset({"value", "precision", "dtype", "offset"})


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnosisEffort:
    """How much an explanation may cost: kernel runs and seconds, and more for a first success.

    The default finds the smallest shape in all but contrived faults.
    """

    evaluations: int = 120
    seconds: float = 20.0
    first_s: float = FIRST_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """The smallest failing case found, and where and how the output is wrong.

    Attributes:
        explanation: of the original failure, whose patterns say more than those of a smaller one.
        shown: the smallest case in a line, with expected and returned values.
    """

    minimal: Case
    explanation: str
    tags: tuple[str, ...]
    evaluations: int
    error_map: ErrorMap | None = None
    shown: str = ""
    quantization: QuantizationFault | None = None

    def added_to(self, attempt: Attempt) -> Attempt:
        """Return the attempt with its explanation."""
        return structs.replace(
            attempt,
            minimal=self.minimal,
            explanation=self.explanation,
            error_map=self.error_map,
            shown=self.shown,
            quantization=self.quantization,
        )


def diagnose(
    session: CandidateSession,
    failure: Judgement,
    others: Sequence[Judgement],
    effort: DiagnosisEffort,
) -> Diagnosis:
    """Minimize and localize a failure.

    The failure is as the session's probes refined it; `others` are judgements of other cases.
    """
    inquiry = Inquiry(session=session, failure=failure, until=time.monotonic() + effort.seconds)
    explanation = _message(failure)
    tags: tuple[str, ...] = (failure.verdict.word,)
    if not _can_be_repeated(failure.verdict, session, effort):
        return Diagnosis(minimal=failure.case, explanation=explanation, tags=tags, evaluations=0)
    quantization = departed_rule(inquiry, others)
    repeated = inquiry.ask(failure.case)
    shrunk = _shrink(inquiry, effort)
    if isinstance(failure.verdict, Failed) and repeated is not None:
        drawn = next((c for c in reversed(shrunk.trail) if not c.literals), failure.case)
        inquiry.ask_relatives(drawn)
        explanation, tags = _explain(inquiry, *repeated, others)
    said = "" if quantization is None else quantization.sentence
    explanation = " ".join(filter(None, (explanation, said, configurations(inquiry))))
    smallest = inquiry.ask(shrunk.value)
    return Diagnosis(
        minimal=structs.replace(shrunk.value, domain=domain(shrunk.value, session.task)),
        shown="" if smallest is None else shown(*smallest, several=session.task.random),
        explanation=explanation,
        tags=tags,
        evaluations=shrunk.evaluations,
        error_map=None if repeated is None else _map(session, *repeated),
        quantization=quantization,
    )


def _shrink(inquiry: Inquiry, effort: DiagnosisEffort) -> Shrunk[Case]:
    """Look for the smallest case that fails alike, in what is left of the effort."""
    session = inquiry.session
    return minimize_case(
        inquiry.failure.case,
        session.task,
        inquiry.fails,
        literalize=lambda case: _literal(session, case),
        budget=MinimizeBudget(
            evaluations=effort.evaluations,
            seconds=max(inquiry.until - time.monotonic(), 0.0),
            clock=time.monotonic,
            first_s=effort.first_s,
        ),
        blocks=sorted(session.launches.blocks),
    )


def _can_be_repeated(verdict: Verdict, session: CandidateSession, effort: DiagnosisEffort) -> bool:
    """Return whether further calls can show the failure, within the budget."""
    if isinstance(verdict, TimedOut):
        return session.deadline_s <= effort.seconds
    # A single case does not show some faults.
    return not (isinstance(verdict, Failed) and verdict.kind in OF_SEVERAL_CALLS)


def _explain(
    inquiry: Inquiry, expectation: Expectation, ruling: Ruling, others: Sequence[Judgement]
) -> tuple[str, tuple[str, ...]]:
    session, failure = inquiry.session, inquiry.failure
    assert isinstance(failure.verdict, Failed)
    reduced = tuple(d.symbol for d in session.task.dims if d.role in ("reduced", "contracted"))
    values = _values(session, expectation, ruling)
    evidence = FailureEvidence(
        case=failure.case,
        verdict=failure.verdict,
        values=values,
        inputs={
            name: real_parts(t).to(torch.float64)
            for name, t in expectation.inputs.tensors.items()
            if t is not None and name != OUT
        },
        blocks=tuple(sorted(session.launches.blocks)),
        reduced=reduced,
        siblings=(*siblings_of(others), *inquiry.siblings),
        output=_named(failure.verdict, values) if len(expectation.outputs) > 1 else None,
    )
    fault = localize(evidence)
    limit = threshold(evidence, list(evidence.siblings))
    if "size_threshold" in fault.tags and limit is not None:
        inquiry.ask_at(*limit)
    elif set(fault.tags) <= ACCUMULATING and failure.verdict.kind == "value":
        inquiry.ask_smaller(reduced)
    else:
        return fault.sentence, fault.tags
    siblings = (*siblings_of(others), *inquiry.siblings)
    fault = localize(replace(evidence, siblings=siblings))
    return fault.sentence, fault.tags


def not_in_time(failure: Judgement, seconds: float) -> str:
    """Return that a call did not return within its limit, and which call it was."""
    return f"A call did not return within {seconds:g} s: {failure.case.summary()}."


def _message(failure: Judgement) -> str:
    match failure.verdict:
        case CompileError(detail=detail, target=target):
            return f"Does not compile{f' for {target}' if target else ''}: {detail}"
        case RuntimeFault(error=error, detail=detail):
            return f"Raises {error} in the core domain{f': {detail}' if detail else '.'}"
        case Crashed(signal=signal, detail=detail):
            return f"Dies{f' by signal {signal}' if signal else ''}: {detail}"
        case TimedOut(seconds=seconds):
            return not_in_time(failure, seconds)
        case Failed(detail=detail):
            return detail
        case _:
            return ""


def _map(session: CandidateSession, expectation: Expectation, ruling: Ruling) -> ErrorMap | None:
    values = _values(session, expectation, ruling)
    return None if values is None else map_of(values)


def _values(session: CandidateSession, expectation: Expectation, ruling: Ruling) -> Values | None:
    references = [o.reference for o in expectation.outputs]
    for expected, got, difference in zip(
        expectation.outputs, ruling.outputs, ruling.differences, strict=False
    ):
        accept = expected.spec.accept
        if difference is not None:
            wrong = difference.wrong
        elif accept is not None:
            wrong = ~accept(expectation.inputs.tensors, ruling.outputs, references)
        elif ruling.claimed_wrong is not None and expected is expectation.outputs[0]:
            wrong = ruling.claimed_wrong
        else:
            # These claims are about the output as a whole; no single element is wrong.
            continue
        if bool(wrong.any()) and wrong.shape == got.shape:
            return Values(
                output=got.to(torch.float64),
                reference=expected.reference.to(torch.float64),
                wrong=wrong,
                name=expected.spec.name,
                several=accept is not None or session.task.random,
                claims=claims_in_words(ruling.claims),
                dtype=expected.dtype,
            )
    return None


def _named(verdict: Failed, values: Values | None) -> str | None:
    """Return the output that an explanation is about; None if it is not about one output."""
    if values is not None and (verdict.output or verdict.kind == "value"):
        return values.name
    return verdict.output


def _literal(session: CandidateSession, case: Case) -> Case:
    inputs = session.cache.get(session.task, case).inputs
    literals = tuple(
        (name, tuple(t.to(torch.float64).reshape(-1).tolist()))
        for name, t in inputs.tensors.items()
        if t is not None and name != OUT
    )
    return structs.replace(case, literals=literals)
