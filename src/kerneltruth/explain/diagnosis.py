"""From a failing judgement to its smallest case and a sentence: asks the candidate further."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch

from kerneltruth.cases.case import Case
from kerneltruth.cases.layouts import LAYOUTS
from kerneltruth.explain.evidence import Evidence, Sibling, Values, siblings_of
from kerneltruth.explain.localize import localize
from kerneltruth.explain.minimize import Budget
from kerneltruth.explain.simpler_cases import minimize_case
from kerneltruth.oracle.attempt import Judgement
from kerneltruth.oracle.expectation import Expectation
from kerneltruth.oracle.judge import Ruling
from kerneltruth.oracle.probes import Probes, probe
from kerneltruth.oracle.trial import Trial
from kerneltruth.oracle.verdict import (
    CompileError,
    Crashed,
    Failed,
    RuntimeFault,
    TimedOut,
    Verdict,
    word,
)

SYMPTOMS = ("value", "nan", "inf")
CAUSES = ("nondeterministic", "uninitialized", "out_of_bounds")
MAX_SIBLINGS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How much an explanation may cost: kernel runs and seconds."""

    evaluations: int = 120
    seconds: float = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """The smallest failing case found, and where and how the output is wrong."""

    minimal: Case
    explanation: str
    tags: tuple[str, ...]
    evaluations: int


def diagnose(
    trial: Trial, failure: Judgement, others: Sequence[Judgement], effort: Effort
) -> Diagnosis:
    """Minimize and localize a failure.

    Args:
        trial: of the candidate; its children are called again.
        failure: the judgement to explain.
        others: judgements of other cases of the same candidate.
        effort: the budget.
    """
    fails = _predicate(trial, failure)
    shrunk = minimize_case(
        failure.case,
        trial.task,
        fails,
        literalize=lambda case: _literal(trial, case),
        budget=Budget(evaluations=effort.evaluations, seconds=effort.seconds, clock=time.monotonic),
        blocks=sorted(trial.blocks),
    )
    explanation, tags = explain(trial, failure, others)
    return Diagnosis(
        minimal=shrunk.value,
        explanation=explanation,
        tags=tags,
        evaluations=shrunk.evaluations,
    )


def explain(
    trial: Trial, failure: Judgement, others: Sequence[Judgement]
) -> tuple[str, tuple[str, ...]]:
    """One or two sentences on a failure, and their tags."""
    verdict = failure.verdict
    if not isinstance(verdict, Failed):
        return _without_output(verdict), (word(verdict),)
    expectation = trial.cache.get(trial.task, failure.case)
    ruling, _, _ = trial.call(expectation, config=failure.config)
    fault = localize(
        Evidence(
            case=failure.case,
            verdict=verdict,
            values=_values(expectation, ruling),
            inputs={
                name: t.to(torch.float64)
                for name, t in expectation.inputs.tensors.items()
                if t is not None
            },
            blocks=tuple(sorted(trial.blocks)),
            reduced=tuple(d.symbol for d in trial.task.dims if d.role in ("reduced", "contracted")),
            probes=probe(trial, expectation, ruling, config=failure.config),
            siblings=(*siblings_of(others), *_relatives(trial, failure)),
        )
    )
    return fault.sentence, fault.tags


def _without_output(verdict: Verdict) -> str:
    match verdict:
        case CompileError(detail=detail, target=target):
            return f"Does not compile{f' for {target}' if target else ''}: {detail}"
        case RuntimeFault(error=error, detail=detail):
            return f"Raises {error} in the core domain: {detail}"
        case Crashed(signal=signal, detail=detail):
            return f"Dies{f' by signal {signal}' if signal else ''}: {detail}"
        case TimedOut(seconds=seconds):
            return f"Did not return within {seconds:g} s."
        case _:
            return ""


def _values(expectation: Expectation, ruling: Ruling) -> Values | None:
    """The wrong output of the ruling that localization looks at."""
    for expected, got, difference in zip(
        expectation.outputs, ruling.outputs, ruling.differences, strict=False
    ):
        if difference is not None and bool(difference.wrong.any()):
            return Values(
                output=got.to(torch.float64),
                reference=expected.reference.to(torch.float64),
                wrong=difference.wrong,
            )
    return None


def _predicate(trial: Trial, failure: Judgement) -> Callable[[Case], bool]:
    """Whether a case fails with the same verdict, and kind, as the failure did."""
    verdict = failure.verdict
    wanted = (word(verdict), verdict.kind if isinstance(verdict, Failed) else None)

    def fails(case: Case) -> bool:
        expectation = trial.cache.get(trial.task, case)
        if expectation.invalid is not None or expectation.unrefereeable is not None:
            return False
        ruling, _, _ = trial.call(expectation, config=failure.config)
        found = ruling.verdict
        if not isinstance(found, Failed) or wanted[0] != "fail":
            return word(found) == wanted[0]
        if found.kind in SYMPTOMS and wanted[1] in CAUSES:
            probes: Probes = probe(trial, expectation, ruling, config=failure.config)
            return probes.kind == wanted[1]
        return found.kind == wanted[1]

    return fails


def _literal(trial: Trial, case: Case) -> Case:
    """The case with its drawn values written out."""
    inputs = trial.cache.get(trial.task, case).inputs
    literals = tuple(
        (name, tuple(t.to(torch.float64).reshape(-1).tolist()))
        for name, t in inputs.tensors.items()
        if t is not None
    )
    return replace(case, literals=literals)


def _relatives(trial: Trial, failure: Judgement) -> tuple[Sibling, ...]:
    """The failing case in other dtypes and layouts: does the fault need this one?"""
    case = failure.case
    dtypes = [d for d in trial.task.dtypes if d != case.dtype]
    variants = [replace(case, dtype=d, literals=()) for d in dtypes]
    if case.layout != "contiguous":
        others = [name for name in LAYOUTS if name != case.layout and name != "expanded"]
        variants += [replace(case, layout=name) for name in others]
    found = []
    for variant in variants[:MAX_SIBLINGS]:
        expectation = trial.cache.get(trial.task, variant)
        if expectation.invalid is not None or expectation.unrefereeable is not None:
            continue
        ruling, _, _ = trial.call(expectation, config=failure.config)
        if isinstance(ruling.verdict, Failed) or word(ruling.verdict) == "pass":
            ratio = None if ruling.stats is None else ruling.stats.max_bound_ratio
            failed = isinstance(ruling.verdict, Failed)
            found.append(Sibling(case=variant, failed=failed, ratio=ratio))
    return tuple(found)
