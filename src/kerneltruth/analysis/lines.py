"""Turn a result line, in JSON's types, into a `Result`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import lru_cache
from sys import intern

from msgspec.structs import astuple

from kerneltruth.analysis.line_parts import (
    AttemptPart,
    CandidatePart,
    CasePart,
    KernelPart,
    LabelsPart,
    Leaf,
    Leaves,
    LinePart,
    PerfPart,
    SaidPart,
    ShapePart,
    SpentPart,
    StagesPart,
)
from kerneltruth.analysis.results import (
    NOT_RUN,
    NOT_TRIED,
    PASSED,
    TIMED,
    TORCH_ONLY,
    UNKNOWN_SPENT,
    WHEN_TIMED,
    WRONG,
    Obliged,
    Rates,
    Ratio,
    Result,
    Spent,
    TimedShape,
    Timing,
    timing,
)
from kerneltruth.clock.statistics.summary import Outcome
from kerneltruth.documents.model import Json, parse
from kerneltruth.documents.records import DtypeCount, Status
from kerneltruth.documents.verdict import NOT_JUDGED
from kerneltruth.errors import UserError

# Verdicts after which, if no case came to more, the call was never made.
_NEVER_RETURNED = ("compile_error", "runtime_error", "crash", "timeout")
PUBLISHED = "published:"

_NO_ATTEMPT, _NO_CANDIDATE, _NO_KERNEL = AttemptPart(), CandidatePart(), KernelPart()
_NO_LABELS, _NOT_SAID, _NO_PERF, _NO_STAGES = LabelsPart(), SaidPart(), PerfPart(), StagesPart()


def result_of(line: LinePart | Mapping[str, Json], run: int) -> Result:
    """Read a line of `results.jsonl`, without what `same_as` refers to.

    Raises:
        UserError: it is no result line; says what is missing or of a wrong form.
    """
    read = parse(LinePart, line)
    attempt = read.attempt or _NO_ATTEMPT
    candidate, kernel = attempt.candidate or _NO_CANDIDATE, attempt.kernel or _NO_KERNEL
    verdict, labels = attempt.verdict or _NOT_SAID, read.labels or _NO_LABELS
    stages = _stages_of(read, verdict, attempt)
    call, exe, perf = _outcome(stages.call), _outcome(stages.exe), _outcome(stages.perf)
    word, kind = _text(verdict.verdict), _text(verdict.kind)
    dtypes = _dtypes(attempt)
    timed = stages.perf or _NO_PERF
    if exe == PASSED and perf == WRONG:
        exe, kind, verdict = "fail", WHEN_TIMED, timed
        word = word and "fail"
        dtypes = _failed_when_timed(dtypes, timed)
    return Result(
        run=run,
        key=read.key,
        task=_task(read, attempt),
        category=_text(read.category),
        origin=str(read.origin or read.name or read.key),
        sha256=str(read.sha256 or candidate.sha256 or ""),
        language=TORCH_ONLY if attempt.torch_only else _text(candidate.language),
        method=_text(labels.method),
        model=_text(labels.model),
        sample=_number(labels.sample),
        round=_number(labels.round),
        call=call,
        exe=exe,
        perf=perf,
        verdict=word or (call if exe in (NOT_RUN, NOT_TRIED) else exe),
        kind=kind,
        quantization=_text(attempt.quantization.rule) if attempt.quantization else None,
        detail=_detail(verdict, stages),
        cases=_number(attempt.cases) or 0,
        failed=_number(attempt.failed) or 0,
        dtypes=dtypes,
        tags=_words(read.tags),
        finding=_file(read.finding),
        checks=_checks(read),
        timing=_timing(timed),
        same_as=_text(read.same_as),
        profile=_profile(attempt),
        contract=_text(attempt.contract) or "",
        score=_measured(attempt.score),
        own=_measured(kernel.own),
        launches=_number(kernel.launches),
        role=_text(read.role),
        spent=_spent(read.spent),
    )


def _spent(said: SpentPart | None) -> Spent:
    if said is None:
        return UNKNOWN_SPENT
    prompt, completion = _number(said.prompt_tokens), _number(said.completion_tokens)
    return Spent(
        tokens=None if prompt is None or completion is None else prompt + completion,
        seconds=_measured(said.seconds),
        cost=_measured(said.cost),
        judge_seconds=_measured(said.judge_seconds),
    )


def _text(value: Leaf) -> str | None:
    return intern(value) if isinstance(value, str) and value else None


def _words(values: Leaves | None) -> tuple[str, ...]:
    return tuple(intern(str(value)) for value in values) if values else ()


def _number(value: Leaf) -> int | None:
    return value if type(value) is int else None


def _file(finding: Leaf) -> str | None:
    return finding.rpartition("/")[2] if isinstance(finding, str) and finding else None


def _outcome(stage: SaidPart | None) -> str:
    if stage is None:
        return NOT_TRIED
    return intern(stage.outcome) if isinstance(stage.outcome, str) else NOT_RUN


def _task(line: LinePart, attempt: AttemptPart) -> str:
    task = attempt.task if line.task is None else line.task
    if not isinstance(task, str):
        raise UserError("it names no task")
    return intern(task)


def _stages_of(line: LinePart, verdict: SaidPart, attempt: AttemptPart) -> StagesPart:
    """Return the stages; those of `check` and `audit`, which store none, by the verdict."""
    if line.stages is not None and line.stages != _NO_STAGES:
        return line.stages
    word = verdict.verdict
    if not isinstance(word, str):
        raise UserError("it has neither stages nor a verdict")
    failed, cases = _number(attempt.failed) or 0, _number(attempt.cases) or 0
    if word in NOT_JUDGED - {"unrefereeable"} or (word in _NEVER_RETURNED and failed >= cases):
        return StagesPart(call=SaidPart(outcome=word), exe=SaidPart(outcome=NOT_RUN))
    return StagesPart(call=SaidPart(outcome=PASSED), exe=SaidPart(outcome=word))


def _detail(verdict: SaidPart, stages: StagesPart) -> str:
    details = (s.detail for s in (stages.exe, stages.call) if s is not None)
    for said in (verdict.detail, verdict.reason, verdict.error, *details):
        if said:
            return str(said).partition("\n")[0][:300]
    return ""


def _dtypes(attempt: AttemptPart) -> dict[str, DtypeCount]:
    """Read counts by dtype; without them, count the dtype of the failing case alone."""
    if attempt.dtypes:
        return {
            intern(dtype): _count(said.cases, said.returned, said.failed)
            for dtype, said in attempt.dtypes.items()
        }
    failure = attempt.failure
    dtype = None if failure is None else _dtype(failure.case)
    if failure is None or dtype is None:
        return {}
    word = (failure.verdict or _NOT_SAID).verdict
    return {dtype: _count(1, int(word == "fail"), 1)}


def _profile(attempt: AttemptPart) -> dict[str, Obliged]:
    return {
        intern(name): _obliged(
            said.status, bool(said.promised), bool(said.decisive), _number(said.cases) or 0
        )
        for name, said in (attempt.profile or {}).items()
    }


@lru_cache(maxsize=1024)
def _obliged(status: Status, promised: bool, decisive: bool, cases: int) -> Obliged:
    """Return how an obligation ended; equal ones are one object, as in `_count`."""
    return Obliged(status, promised, decisive, cases)


def _failed_when_timed(dtypes: dict[str, DtypeCount], perf: PerfPart) -> dict[str, DtypeCount]:
    """Add the shape that was found wrong while it was timed."""
    wrong = [s for s in perf.shapes or () if s.graded is not None and s.graded.wrong]
    dtype = _dtype(wrong[0].case) if wrong else None
    if dtype is None:
        return dtypes
    had = dtypes.get(dtype, DtypeCount())
    return {**dtypes, dtype: _count(had.cases + 1, had.returned + 1, had.failed + 1)}


def _dtype(case: CasePart | None) -> str | None:
    return None if case is None else _text(case.dtype)


@lru_cache(maxsize=4096)
def _count(cases: int, returned: int, failed: int) -> DtypeCount:
    """Return counts; equal ones are one object, since most attempts have the same."""
    return DtypeCount(cases=cases, returned=returned, failed=failed)


def _checks(line: LinePart) -> dict[str, str]:
    checks = line.peer_checks or line.baselines or {}
    said = {intern(name): intern(str((s or _NOT_SAID).verdict)) for name, s in checks.items()}
    peer = line.peer
    if peer is not None and isinstance(peer.correct, bool):
        name = intern(f"{PUBLISHED}{peer.check or 'unnamed'}")
        said[name] = PASSED if peer.correct else "fail"
    return said


def _timing(perf: PerfPart) -> Timing | None:
    if perf.outcome != TIMED:
        return None
    if perf.shapes is None:
        shapes = [_one_shape(perf)]
    else:
        shapes = [_shape(s) for s in perf.shapes if s.is_sure]
    return timing(
        [s for s in shapes if s is not None],
        noise_floor=_measured(perf.noise_floor),
        compile_s=_measured(perf.compile_s),
        own_time=None if perf.kernel is None else _measured(perf.kernel.own),
        uses=_uses(perf),
    )


def _uses(perf: PerfPart) -> frozenset[str]:
    """Return what the candidate's compiled kernels use."""
    found: set[str] = set()
    for shape in perf.shapes or ():
        for binary in (shape.kernels and shape.kernels.candidate) or ():
            found.update(map(str, binary.uses or ()))
            if binary.tensor_cores:
                found.add("tensor_cores")
    return _known_uses(frozenset(found))


@lru_cache(maxsize=256)
def _known_uses(found: frozenset[str]) -> frozenset[str]:
    """Return the same object for equal sets."""
    return found


def _one_shape(perf: PerfPart) -> TimedShape | None:
    """Read the perf stage of earlier runs: one shape, without intervals."""
    us, ratio = _measured(perf.candidate_us), _measured(perf.times_eager)
    if not us:
        return None
    eager = Ratio(
        us=_measured(perf.eager_us), ratio=ratio or 0.0, low=None, high=None, outcome=None
    )
    case = str(perf.case or "")
    return TimedShape(
        case=case,
        dtype=next((intern(w) for w in case.split() if w in _DTYPE_WORDS), None),
        candidate_us=us,
        low=None,
        high=None,
        baselines={"eager": eager} if ratio else {},
    )


_OUTCOMES: Mapping[Leaf, Outcome] = {"faster": "faster", "tie": "tie", "slower": "slower"}
_DTYPE_WORDS = frozenset(
    {"float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8"}
    | {"bool", "complex64", "complex128"}
)


def _shape(read: ShapePart) -> TimedShape | None:
    us = _measured(read.candidate_us)
    if not us:
        return None
    baselines = {}
    for name, said in (read.baselines or {}).items():
        ratio = None if said is None else _measured(said.ratio)
        if said is not None and ratio:
            baselines[intern(name)] = Ratio(
                _measured(said.us),
                ratio,
                _measured(said.low),
                _measured(said.high),
                _OUTCOMES.get(said.outcome),
            )
    return TimedShape(
        intern(str(read.summary or "")),
        _dtype(read.case),
        us,
        _measured(read.candidate_low),
        _measured(read.candidate_high),
        baselines,
        _measured(read.efficiency),
        _text(read.bound_by),
        _words(read.flags),
        None if read.advice is None else Rates(*map(_measured, astuple(read.advice))),
    )


def _measured(value: Leaf) -> float | None:
    """Return a measured number; None for null, and for what is negative or not finite."""
    if type(value) is not float and type(value) is not int:
        return None
    # NaN compares false with everything.
    return float(value) if 0 <= value <= sys.float_info.max else None
