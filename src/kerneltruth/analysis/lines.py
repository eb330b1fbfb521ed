"""A result line read: JSON's own types in, a `Result` out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from sys import intern
from typing import Any

from kerneltruth.analysis.results import (
    NOT_JUDGED,
    NOT_RUN,
    NOT_TRIED,
    PASSED,
    TIMED,
    TORCH_ONLY,
    WHEN_TIMED,
    WRONG,
    Ratio,
    Result,
    Standing,
    TimedShape,
    Timing,
    timing,
)
from kerneltruth.documents.records import DtypeCount

# Verdicts after which, if no case came to more, the call was never made.
_NEVER_RETURNED = ("compile_error", "runtime_error", "crash", "timeout")
SUSPECT = "timing_suspect"
PUBLISHED = "published:"


def result_of(line: Mapping[str, Any], run: int) -> Result:
    """The result that a line of `results.jsonl` holds, without what `same_as` refers to.

    Raises:
        ValueError: it is no result line; says what is missing or of a wrong form.
    """
    key = line["key"]
    attempt = _object(line, "attempt")
    candidate = _object(attempt, "candidate")
    verdict = _object(attempt, "verdict")
    labels = _object(line, "labels")
    stages = _object(line, "stages") or _stages_of(verdict, attempt)
    task = line.get("task", attempt.get("task"))
    if not isinstance(task, str):
        raise ValueError("it names no task")
    outcomes = {s: _outcome(stages, s) for s in ("call", "exe", "perf")}
    word, kind = _text(verdict, "verdict"), _text(verdict, "kind")
    dtypes = _dtypes(attempt)
    perf = _object(stages, "perf")
    if outcomes["exe"] == PASSED and outcomes["perf"] == WRONG:
        outcomes["exe"], kind, verdict = "fail", WHEN_TIMED, perf
        word = word and "fail"
        dtypes = _failed_when_timed(dtypes, perf)
    return Result(
        run=run,
        key=key,
        task=intern(task),
        category=_text(line, "category"),
        origin=str(line.get("origin") or line.get("name") or key),
        sha256=str(line.get("sha256") or candidate.get("sha256") or ""),
        language=TORCH_ONLY if attempt.get("torch_only") else _text(candidate, "language"),
        method=_text(labels, "method"),
        model=_text(labels, "model"),
        sample=_number(labels, "sample"),
        round=_number(labels, "round"),
        **outcomes,
        verdict=word or _verdict_by(outcomes),
        kind=kind,
        detail=_detail(verdict, stages),
        cases=_number(attempt, "cases") or 0,
        failed=_number(attempt, "failed") or 0,
        dtypes=dtypes,
        tags=tuple(intern(str(t)) for t in line.get("tags") or ()),
        finding=_file(line.get("finding")),
        checks=_checks(line),
        timing=_timing(perf),
        same_as=line.get("same_as"),
        role=_text(line, "role"),
    )


def _object(of: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = of.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ValueError(f"its {name!r} is no object")
    return value


def _text(of: Mapping[str, Any], name: str) -> str | None:
    value = of.get(name)
    return intern(value) if isinstance(value, str) and value else None


def _number(of: Mapping[str, Any], name: str) -> int | None:
    value = of.get(name)
    return value if type(value) is int else None


def _file(finding: Any) -> str | None:
    return finding.rpartition("/")[2] if isinstance(finding, str) and finding else None


def _outcome(stages: Mapping[str, Any], stage: str) -> str:
    if stages.get(stage) is None:
        return NOT_TRIED
    outcome = _object(stages, stage).get("outcome", NOT_RUN)
    return intern(outcome) if isinstance(outcome, str) else NOT_RUN


def _verdict_by(outcomes: Mapping[str, str]) -> str:
    """The verdict of a line without an attempt, which repeats another's source."""
    return outcomes["call"] if outcomes["exe"] in (NOT_RUN, NOT_TRIED) else outcomes["exe"]


def _stages_of(verdict: Mapping[str, Any], attempt: Mapping[str, Any]) -> dict[str, Any]:
    """The stages of an attempt that `check` or `audit` made, which store none."""
    word = verdict.get("verdict")
    if not isinstance(word, str):
        raise ValueError("it has neither stages nor a verdict")
    failed, cases = _number(attempt, "failed") or 0, _number(attempt, "cases") or 0
    if word in NOT_JUDGED - {"unrefereeable"} or (word in _NEVER_RETURNED and failed >= cases):
        return {"call": {"outcome": word}, "exe": {"outcome": NOT_RUN}}
    return {"call": {"outcome": PASSED}, "exe": {"outcome": word}}


def _detail(verdict: Mapping[str, Any], stages: Mapping[str, Any]) -> str:
    for name in ("detail", "reason", "error"):
        if verdict.get(name):
            return str(verdict[name]).partition("\n")[0][:300]
    for stage in ("exe", "call"):
        said = _object(stages, stage).get("detail")
        if said:
            return str(said).partition("\n")[0][:300]
    return ""


def _dtypes(attempt: Mapping[str, Any]) -> dict[str, DtypeCount]:
    """Counts by dtype; of a run that has none, the dtype of the failing case alone."""
    counted = _object(attempt, "dtypes")
    if counted:
        return {
            intern(dtype): _count(int(c["cases"]), int(c["returned"]), int(c["failed"]))
            for dtype, c in counted.items()
        }
    failure = _object(attempt, "failure")
    dtype = _text(_object(failure, "case"), "dtype")
    if dtype is None:
        return {}
    word = _object(failure, "verdict").get("verdict")
    return {dtype: _count(1, int(word == "fail"), 1)}


def _failed_when_timed(
    dtypes: dict[str, DtypeCount], perf: Mapping[str, Any]
) -> dict[str, DtypeCount]:
    """Counts by dtype with the shape that was found wrong while it was timed."""
    wrong = [s for s in perf.get("shapes") or () if (s.get("graded") or {}).get("wrong")]
    dtype = _text(wrong[0].get("case") or {}, "dtype") if wrong else None
    if dtype is None:
        return dtypes
    had = dtypes.get(dtype, DtypeCount())
    return {**dtypes, intern(dtype): _count(had.cases + 1, had.returned + 1, had.failed + 1)}


@lru_cache(maxsize=4096)
def _count(cases: int, returned: int, failed: int) -> DtypeCount:
    """Most attempts have the counts of others: one object serves them all."""
    return DtypeCount(cases=cases, returned=returned, failed=failed)


def _checks(line: Mapping[str, Any]) -> dict[str, str]:
    said = {
        intern(name): intern(str(_object(_object(line, "baselines"), name).get("verdict")))
        for name in _object(line, "baselines")
    }
    peer = _object(line, "peer")
    if isinstance(peer.get("correct"), bool):
        name = intern(f"{PUBLISHED}{peer.get('check') or 'unnamed'}")
        said[name] = PASSED if peer["correct"] else "fail"
    return said


def _timing(perf: Mapping[str, Any]) -> Timing | None:
    if perf.get("outcome") != TIMED:
        return None
    if "shapes" not in perf:
        shapes = [_one_shape(perf)]
    else:
        shapes = [_shape(s) for s in perf["shapes"] if is_sure(s)]
    return timing(
        [s for s in shapes if s is not None],
        noise_floor=_measured(perf.get("noise_floor")),
        compile_s=_measured(perf.get("compile_s")),
    )


def is_sure(shape: Mapping[str, Any]) -> bool:
    """Whether the times of a shape are neither suspect nor of results that could not be graded."""
    graded = shape.get("graded") or {}
    return SUSPECT not in (shape.get("flags") or ()) and not graded.get("not_graded")


def _one_shape(perf: Mapping[str, Any]) -> TimedShape | None:
    """The one shape, without intervals, of the perf stage of earlier runs."""
    us, ratio = _measured(perf.get("candidate_us")), _measured(perf.get("times_eager"))
    if not us:
        return None
    eager = Ratio(
        us=_measured(perf.get("eager_us")), ratio=ratio or 0.0, low=None, high=None, outcome=None
    )
    case = str(perf.get("case") or "")
    return TimedShape(
        case=case,
        dtype=next((intern(w) for w in case.split() if w in _DTYPE_WORDS), None),
        candidate_us=us,
        low=None,
        high=None,
        baselines={"eager": eager} if ratio else {},
    )


_STANDINGS: Mapping[Any, Standing] = {"faster": "faster", "tie": "tie", "slower": "slower"}
_DTYPE_WORDS = frozenset(
    {"float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8"}
    | {"bool", "complex64", "complex128"}
)


def _shape(data: Mapping[str, Any]) -> TimedShape | None:
    us = _measured(data.get("candidate_us"))
    if not us:
        return None
    case = data.get("case") or {}
    baselines = {}
    for name, said in (data.get("baselines") or {}).items():
        # A baseline that could not be timed is null.
        ratio = said and _measured(said.get("ratio"))
        if ratio:
            baselines[intern(name)] = Ratio(
                _measured(said.get("us")),
                ratio,
                _measured(said.get("low")),
                _measured(said.get("high")),
                _STANDINGS.get(said.get("outcome")),
            )
    flags = data.get("flags")
    return TimedShape(
        intern(str(data.get("summary") or "")),
        _text(case, "dtype"),
        us,
        _measured(data.get("candidate_low")),
        _measured(data.get("candidate_high")),
        baselines,
        _measured(data.get("efficiency")),
        _text(data, "bound_by"),
        tuple(intern(str(f)) for f in flags) if flags else (),
    )


def _measured(value: Any) -> float | None:
    """A number that was measured; null, and what is not finite or negative, is none."""
    if type(value) is not float and type(value) is not int:
        return None
    # NaN compares false with everything.
    return float(value) if 0 <= value < math.inf else None
