"""Which baselines runs have timed: by task, shape, dtype, device, versions and date."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Literal, TypeAlias

from kerneltruth.analysis.exports import Columns, write_csv
from kerneltruth.documents.baselines import BaselinesDocument, TimedBaseline
from kerneltruth.documents.model import Json, Number, Stored, parse
from kerneltruth.documents.stored import Environment
from kerneltruth.errors import UserError
from kerneltruth.runs.files import read_json
from kerneltruth.runs.store import RunStore

# The file that `time --out` writes.
TIME = "time.json"
# What readings of the device may show; the other flags are about candidates.
CONDITIONS = ("throttled", "power_capped", "shared_device", "disturbed")
HINDERED = "a candidate hindered a baseline of its shape"
NOT_SURE = "the candidate beside them was not timed for sure"


class _Us(Stored, frozen=True, kw_only=True):
    us: Number


class _CaseOfShape(Stored, frozen=True, kw_only=True):
    dtype: str


class _Shape(Stored, frozen=True, kw_only=True):
    case: _CaseOfShape
    summary: str
    method: Literal["graph", "calls"]
    regime: Literal["cold", "cpu"]
    baselines: dict[str, _Us]
    flags: tuple[str, ...] = ()


class _Perf(Stored, frozen=True, kw_only=True):
    """A perf stage as far as it is read; earlier ones had no shapes."""

    outcome: str
    shapes: tuple[_Shape, ...] = ()


class _Stages(Stored, frozen=True, kw_only=True):
    perf: _Perf | None = None


class _Line(Stored, frozen=True, kw_only=True):
    task: str | None = None
    stages: _Stages | None = None


class _TimeFile(_Perf, frozen=True, kw_only=True):
    task: str
    environment: Environment
    started: str | None = None
    version: str | None = None


# Task, shape, dtype, baseline, method and regime.
_What: TypeAlias = tuple[str, str, str, str, Literal["graph", "calls"], Literal["cold", "cpu"]]


@dataclass(slots=True)
class _Times:
    us: list[float] = field(default_factory=list)
    conditions: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Timed:
    """What one run has timed, and where and when."""

    path: Path
    perfs: Sequence[tuple[str, _Perf]]
    environment: Environment
    date: str | None
    version: str | None
    notes: tuple[str, ...] = ()


def record_baselines(paths: Sequence[Path], csv: Path | None = None) -> BaselinesDocument:
    """Make the document of `baselines --json` of runs and of folders of `time --out`.

    Raises:
        UserError: no run at a path, the same one twice, or a damaged one.
        EnvironmentFault: `csv` cannot be written.
    """
    seen: set[Path] = set()
    rows: list[TimedBaseline] = []
    notes: list[str] = []
    left_out: Counter[str] = Counter()
    for path in paths:
        if path.resolve() in seen:
            raise UserError(f"{path} is named twice; name each run once")
        seen.add(path.resolve())
        timed = _read(path)
        notes += timed.notes
        rows += _rows(timed, left_out)
    rows.sort(key=lambda row: (row.task, row.dtype, row.baseline, row.device, row.date or ""))
    if csv is not None:
        write_csv(columns(rows), csv)
    return BaselinesDocument(
        baselines=tuple(rows),
        left_out=dict(left_out),
        notes=tuple(notes),
        csv=None if csv is None else str(csv),
    )


def columns(rows: Sequence[TimedBaseline]) -> Columns:
    """Put the rows into columns, by the document's keys."""
    found: Columns = {
        name: [getattr(row, name) for row in rows] for name in TimedBaseline.__struct_fields__
    }
    return {**found, "conditions": [" ".join(row.conditions) for row in rows]}


def _read(path: Path) -> _Timed:
    if (path / TIME).is_file():
        file = path / TIME
        try:
            found = parse(_TimeFile, read_json(file))
        except UserError as error:
            raise UserError(f"{file}: {error}; time the kernel again") from error
        return _Timed(
            path=path,
            perfs=((found.task, found),),
            environment=found.environment,
            date=found.started,
            version=found.version,
        )
    store = RunStore.open(path, keep=lambda line: _perf_in(line, path))
    return _Timed(
        path=path,
        perfs=[timed for timed in store.results() if timed is not None],
        environment=store.manifest.environment,
        date=store.manifest.started,
        version=store.manifest.version,
        notes=tuple(store.notes),
    )


def _perf_in(line: Mapping[str, Json], path: Path) -> tuple[str, _Perf] | None:
    """Return the task of a result line and its perf stage; None if it has none."""
    try:
        found = parse(_Line, line)
    except UserError as error:
        raise UserError(
            f"{path / 'results.jsonl'}: the attempt {line.get('key')!r:.80} is not a result "
            f"({error}); judge it again, or leave this run out"
        ) from error
    if found.task is None or found.stages is None or found.stages.perf is None:
        return None
    return found.task, found.stages.perf


def _rows(timed: _Timed, left_out: Counter[str]) -> Iterator[TimedBaseline]:
    found: dict[_What, _Times] = {}
    for task, perf in timed.perfs:
        for shape in perf.shapes:
            why = _why_not(perf, shape)
            if why is not None:
                left_out[why] += len(shape.baselines)
                continue
            for name, baseline in shape.baselines.items():
                what = (task, shape.summary, shape.case.dtype, name, shape.method, shape.regime)
                times = found.setdefault(what, _Times())
                times.us.append(baseline.us)
                times.conditions.update(shape.flags)
    about = timed.environment
    for (task, summary, dtype, name, method, regime), times in found.items():
        yield TimedBaseline(
            task=task,
            shape=summary,
            dtype=dtype,
            baseline=name,
            us=median(times.us),
            least_us=min(times.us),
            most_us=max(times.us),
            candidates=len(times.us),
            method=method,
            regime=regime,
            conditions=tuple(flag for flag in CONDITIONS if flag in times.conditions),
            device=about.get("device_name") or about.get("device") or "unknown",
            driver=about.get("driver"),
            cuda=about.get("cuda"),
            torch=about.get("torch"),
            triton=about.get("triton"),
            date=timed.date,
            version=timed.version,
            run=str(timed.path),
        )


def _why_not(perf: _Perf, shape: _Shape) -> str | None:
    """Return why a shape's times of baselines do not count: a candidate may have slowed them."""
    if "baseline_hindered" in shape.flags:
        return HINDERED
    return NOT_SURE if perf.outcome != "timed" else None
