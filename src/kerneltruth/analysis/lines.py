"""Turn a result line, in JSON's types, into a `Result`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import lru_cache
from sys import intern
from typing import cast, get_args

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
from kerneltruth.documents.lines import EARLIER_PEER_CHECKS, PEER_CHECKS
from kerneltruth.documents.model import Json
from kerneltruth.documents.records import DtypeCount, Status
from kerneltruth.documents.verdict import NOT_JUDGED

JsonObject = Mapping[str, Json]

# Verdicts after which, if no case came to more, the call was never made.
_NEVER_RETURNED = ("compile_error", "runtime_error", "crash", "timeout")
SUSPECT = "timing_suspect"
PUBLISHED = "published:"


def result_of(line: JsonObject, run: int) -> Result:
    """Read a line of `results.jsonl`, without what `same_as` refers to.

    Raises:
        ValueError: it is no result line; says what is missing or of a wrong form.
    """
    key = str(line["key"])
    attempt = _object(line, "attempt")
    candidate, kernel = _object(attempt, "candidate"), _object(attempt, "kernel")
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
        verdict=word
        or (outcomes["call"] if outcomes["exe"] in (NOT_RUN, NOT_TRIED) else outcomes["exe"]),
        kind=kind,
        detail=_detail(verdict, stages),
        cases=_number(attempt, "cases") or 0,
        failed=_number(attempt, "failed") or 0,
        dtypes=dtypes,
        tags=tuple(intern(str(t)) for t in _list(line, "tags")),
        finding=_file(line.get("finding")),
        checks=_checks(line),
        timing=_timing(perf),
        same_as=_text(line, "same_as"),
        profile=_profile(attempt),
        contract=_text(attempt, "contract") or "",
        score=_measured(attempt.get("score")),
        own=_measured(kernel.get("own")),
        launches=_number(kernel, "launches"),
        role=_text(line, "role"),
        spent=_spent(_object(line, "spent")),
    )


def _spent(said: JsonObject) -> Spent:
    if not said:
        return UNKNOWN_SPENT
    prompt, completion = _number(said, "prompt_tokens"), _number(said, "completion_tokens")
    return Spent(
        tokens=None if prompt is None or completion is None else prompt + completion,
        seconds=_measured(said.get("seconds")),
        cost=_measured(said.get("cost")),
        judge_seconds=_measured(said.get("judge_seconds")),
    )


def _object(of: JsonObject, name: str) -> JsonObject:
    value = of.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ValueError(f"its {name!r} is no object")
    return value


def _list(of: JsonObject, name: str) -> list[Json]:
    value = of.get(name) or []
    if not isinstance(value, list):
        raise ValueError(f"its {name!r} is no list")
    return value


def _objects(of: JsonObject, name: str) -> Iterator[JsonObject]:
    for each in _list(of, name):
        if not isinstance(each, dict):
            raise ValueError(f"its {name!r} holds something other than objects")
        yield each


def _text(of: JsonObject, name: str) -> str | None:
    value = of.get(name)
    return intern(value) if isinstance(value, str) and value else None


def _number(of: JsonObject, name: str) -> int | None:
    value = of.get(name)
    return value if type(value) is int else None


def _file(finding: Json) -> str | None:
    return finding.rpartition("/")[2] if isinstance(finding, str) and finding else None


def _outcome(stages: JsonObject, stage: str) -> str:
    if stages.get(stage) is None:
        return NOT_TRIED
    outcome = _object(stages, stage).get("outcome", NOT_RUN)
    return intern(outcome) if isinstance(outcome, str) else NOT_RUN


def _stages_of(verdict: JsonObject, attempt: JsonObject) -> JsonObject:
    """Derive the stages of an attempt of `check` or `audit`, which store none."""
    word = verdict.get("verdict")
    if not isinstance(word, str):
        raise ValueError("it has neither stages nor a verdict")
    failed, cases = _number(attempt, "failed") or 0, _number(attempt, "cases") or 0
    if word in NOT_JUDGED - {"unrefereeable"} or (word in _NEVER_RETURNED and failed >= cases):
        return {"call": {"outcome": word}, "exe": {"outcome": NOT_RUN}}
    return {"call": {"outcome": PASSED}, "exe": {"outcome": word}}


def _detail(verdict: JsonObject, stages: JsonObject) -> str:
    for name in ("detail", "reason", "error"):
        if verdict.get(name):
            return str(verdict[name]).partition("\n")[0][:300]
    for stage in ("exe", "call"):
        said = _object(stages, stage).get("detail")
        if said:
            return str(said).partition("\n")[0][:300]
    return ""


def _dtypes(attempt: JsonObject) -> dict[str, DtypeCount]:
    """Read counts by dtype; without them, count the dtype of the failing case alone."""
    counted = _object(attempt, "dtypes")
    if counted:
        return {
            intern(dtype): _count(*(_known(counts, name) for name in _COUNTS))
            for dtype, counts in ((dtype, _object(counted, dtype)) for dtype in counted)
        }
    failure = _object(attempt, "failure")
    dtype = _text(_object(failure, "case"), "dtype")
    if dtype is None:
        return {}
    word = _object(failure, "verdict").get("verdict")
    return {dtype: _count(1, int(word == "fail"), 1)}


def _profile(attempt: JsonObject) -> dict[str, Obliged]:
    profile = _object(attempt, "profile")
    return {intern(name): _obliged(_object(profile, name)) for name in profile}


def _obliged(entry: JsonObject) -> Obliged:
    status = entry.get("status")
    if status not in _STATUSES:
        raise ValueError(f"its profile holds the status {status!r}")
    promised, decisive = bool(entry.get("promised")), bool(entry.get("decisive"))
    return _ended(cast(Status, status), promised, decisive, _number(entry, "cases") or 0)


_STATUSES = get_args(Status)


@lru_cache(maxsize=1024)
def _ended(status: Status, promised: bool, decisive: bool, cases: int) -> Obliged:
    return Obliged(status, promised, decisive, cases)


def _failed_when_timed(dtypes: dict[str, DtypeCount], perf: JsonObject) -> dict[str, DtypeCount]:
    """Add the shape that was found wrong while it was timed."""
    wrong = [s for s in _objects(perf, "shapes") if _object(s, "graded").get("wrong")]
    dtype = _text(_object(wrong[0], "case"), "dtype") if wrong else None
    if dtype is None:
        return dtypes
    had = dtypes.get(dtype, DtypeCount())
    return {**dtypes, intern(dtype): _count(had.cases + 1, had.returned + 1, had.failed + 1)}


_COUNTS = ("cases", "returned", "failed")


def _known(of: JsonObject, name: str) -> int:
    value = _number(of, name)
    if value is None:
        raise ValueError(f"its {name!r} is no whole number")
    return value


@lru_cache(maxsize=4096)
def _count(cases: int, returned: int, failed: int) -> DtypeCount:
    """Return counts; equal ones are one object, since most attempts have the same."""
    return DtypeCount(cases=cases, returned=returned, failed=failed)


def _checks(line: JsonObject) -> dict[str, str]:
    checks = _object(line, PEER_CHECKS) or _object(line, EARLIER_PEER_CHECKS)
    said = {intern(name): intern(str(_object(checks, name).get("verdict"))) for name in checks}
    peer = _object(line, "peer")
    if isinstance(peer.get("correct"), bool):
        name = intern(f"{PUBLISHED}{peer.get('check') or 'unnamed'}")
        said[name] = PASSED if peer["correct"] else "fail"
    return said


def _timing(perf: JsonObject) -> Timing | None:
    if perf.get("outcome") != TIMED:
        return None
    if "shapes" not in perf:
        shapes = [_one_shape(perf)]
    else:
        shapes = [_shape(s) for s in _objects(perf, "shapes") if is_sure(s)]
    return timing(
        [s for s in shapes if s is not None],
        noise_floor=_measured(perf.get("noise_floor")),
        compile_s=_measured(perf.get("compile_s")),
        own_time=_measured(_object(perf, "kernel").get("own")),
        uses=_uses(perf),
    )


def _uses(perf: JsonObject) -> frozenset[str]:
    """Return what the candidate's compiled kernels use."""
    found: set[str] = set()
    for shape in _objects(perf, "shapes"):
        for binary in _objects(_object(shape, "kernels"), "candidate"):
            found.update(map(str, _list(binary, "uses")))
            if binary.get("tensor_cores"):
                found.add("tensor_cores")
    return _known_uses(frozenset(found))


@lru_cache(maxsize=256)
def _known_uses(found: frozenset[str]) -> frozenset[str]:
    """Return the same object for equal sets."""
    return found


def is_sure(shape: JsonObject) -> bool:
    """Return whether a shape's times are neither suspect nor of ungraded results."""
    not_graded = _object(shape, "graded").get("not_graded")
    return SUSPECT not in _list(shape, "flags") and not not_graded


def _one_shape(perf: JsonObject) -> TimedShape | None:
    """Read the perf stage of earlier runs: one shape, without intervals."""
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


_OUTCOMES: Mapping[Json, Outcome] = {"faster": "faster", "tie": "tie", "slower": "slower"}
_DTYPE_WORDS = frozenset(
    {"float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8"}
    | {"bool", "complex64", "complex128"}
)


def _shape(data: JsonObject) -> TimedShape | None:
    us = _measured(data.get("candidate_us"))
    if not us:
        return None
    baselines = {}
    against = _object(data, "baselines")
    for name in against:
        # A baseline that could not be timed is null.
        said = _object(against, name)
        ratio = _measured(said.get("ratio"))
        if ratio:
            baselines[intern(name)] = Ratio(
                _measured(said.get("us")),
                ratio,
                _measured(said.get("low")),
                _measured(said.get("high")),
                _OUTCOMES.get(said.get("outcome")),
            )
    return TimedShape(
        intern(str(data.get("summary") or "")),
        _text(_object(data, "case"), "dtype"),
        us,
        _measured(data.get("candidate_low")),
        _measured(data.get("candidate_high")),
        baselines,
        _measured(data.get("efficiency")),
        _text(data, "bound_by"),
        tuple(intern(str(flag)) for flag in _list(data, "flags")),
        _rates(_object(data, "advice")),
    )


def _rates(advice: JsonObject) -> Rates | None:
    if not advice:
        return None
    return Rates(*(_measured(advice.get(name)) for name in Rates._fields))


def _measured(value: Json) -> float | None:
    """Return a measured number; None for null, and for what is negative or not finite."""
    if type(value) is not float and type(value) is not int:
        return None
    # NaN compares false with everything.
    return float(value) if 0 <= value < math.inf else None
