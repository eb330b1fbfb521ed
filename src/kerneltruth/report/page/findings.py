"""Details of one attempt: its times, its finding and how to reproduce it. Pure.

Everything is text for a reader; the page's script sets it as text and computes nothing but places.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct, field

from kerneltruth.analysis.results import Obliged, Rates, Ratio, Result, TimedShape
from kerneltruth.documents.case import Case
from kerneltruth.documents.records import ErrorMap, ErrorStats
from kerneltruth.documents.stored import Finding
from kerneltruth.report.page.wording import (
    DASH,
    between,
    count,
    figures,
    label,
    microseconds,
    percent,
    shortened,
    times,
    visible,
)

MOST_TEXT = 4000
MOST_LITERALS = 64
ERRORS = "write the error of each element, as arrays and a picture"
STAGES = ("call", "exe", "perf")
WHERE = (("device_name", "on"), ("torch", "torch"), ("triton", "triton"), ("python", "Python"))


class TimedAgainst(Struct, frozen=True, kw_only=True):
    """A shape's time against one baseline, in words."""

    name: str
    time: str
    ratio: str
    interval: str
    outcome: str


class ShapeDetail(Struct, frozen=True, kw_only=True):
    """What was measured at one shape, in words; `rates` is empty where they are not known."""

    case: str
    time: str
    against: Sequence[TimedAgainst]
    efficiency: str
    bound_by: str
    flags: Sequence[str]
    rates: str


class ErrorPicture(Struct, frozen=True, kw_only=True):
    """The error map with its words, and the cell of the worst element."""

    lines: Sequence[str]
    output: str
    shape: Sequence[int]
    rows: int
    columns: int
    worst: tuple[int, int] | None
    said: str


class ErrorSpread(Struct, frozen=True, kw_only=True):
    """The spread of the error: how many elements, and quantiles of its size."""

    wrong: int
    count: int
    share: str
    worst: Sequence[int] | None
    quantiles: Sequence[tuple[str, str]]
    ratio: str | None
    relative: str | None
    ulp: str | None


class FindingDetail(Struct, frozen=True, kw_only=True):
    """A finding, and the commands that show it again."""

    id: str
    explanation: str
    case: Sequence[Sequence[str]]
    picture: ErrorPicture | None
    errors: ErrorSpread | None
    commands: Sequence[tuple[str, str]]
    where: str
    bounds: str
    script: str | None


class ObligationDetail(Struct, frozen=True, kw_only=True, array_like=True):
    """How an obligation ended, in words; `held` is empty where no case held."""

    name: str
    status: str
    held: str
    asker: str


class AttemptDetail(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Everything about an attempt that its row does not say; absent if empty."""

    detail: str = ""
    language: str | None = None
    sha256: str = ""
    tags: tuple[str, ...] = ()
    checks: Mapping[str, str] = field(default_factory=dict)
    same_as: str | None = None
    stages: tuple[tuple[str, str], ...] = ()
    profile: tuple[ObligationDetail, ...] = ()
    not_applicable: tuple[str, ...] = ()
    shapes: tuple[ShapeDetail, ...] = ()
    source_path: str = ""
    finding: FindingDetail | None = None


def attempt_detail(
    result: Result, run_path: str, finding: Finding | None, *, script: str | None = None
) -> AttemptDetail:
    """Say everything about an attempt that its row does not.

    `script` is the finding's, where `minimize` has written one.
    """
    ended = result.profile.items()
    return AttemptDetail(
        detail=_text(result.detail),
        language=result.language or None,
        sha256=result.sha256,
        tags=tuple(label(tag) for tag in result.tags),
        checks={label(name): label(says) for name, says in sorted(result.checks.items())},
        same_as=label(result.same_as) if result.same_as else None,
        stages=tuple((stage, visible(getattr(result, stage))) for stage in STAGES),
        profile=tuple(_obliged(n, o) for n, o in ended if o.status != "not_applicable"),
        not_applicable=tuple(label(n) for n, o in ended if o.status == "not_applicable"),
        shapes=tuple(map(_shape, result.timing.shapes)) if result.timing else (),
        source_path=visible(f"{run_path}/candidates/{result.sha256}.py"),
        finding=None if finding is None else _finding(result, run_path, finding, script),
    )


def _obliged(name: str, found: Obliged) -> ObligationDetail:
    return ObligationDetail(
        name=label(name),
        status=found.status.replace("_", " "),
        held=f"{count(found.cases)} held" if found.cases else "",
        asker="the contract" if found.decisive else "the prompt" if found.promised else "",
    )


def _text(text: str) -> str:
    return shortened(visible(text), MOST_TEXT)


def _shape(shape: TimedShape) -> ShapeDetail:
    return ShapeDetail(
        case=label(shape.case),
        time=microseconds(shape.candidate_us),
        against=[_against(name, ratio) for name, ratio in shape.baselines.items()],
        efficiency=percent(shape.efficiency),
        bound_by=shape.bound_by or DASH,
        flags=[visible(flag) for flag in shape.flags],
        rates=", ".join(_rates(shape.rates)),
    )


def _rates(rates: Rates | None) -> Iterator[str]:
    if rates is not None and rates.bytes_per_s:
        yield f"{rates.bytes_per_s / 1e9:,.0f} GB/s"
    if rates is not None and rates.flops_per_s:
        yield f"{rates.flops_per_s / 1e12:,.3g} TFLOP/s"


def _against(name: str, ratio: Ratio) -> TimedAgainst:
    known = ratio.low is not None and ratio.high is not None
    return TimedAgainst(
        name=visible(name),
        time=microseconds(ratio.us),
        ratio=times(ratio.ratio),
        interval=between(figures(ratio.low or 0.0), times(ratio.high)) if known else "",
        outcome=ratio.outcome or "",
    )


def _finding(result: Result, run_path: str, finding: Finding, script: str | None) -> FindingDetail:
    path = shlex.quote(visible(f"{run_path}/findings/{result.finding}"))
    where, stats = finding.environment, finding.stats
    return FindingDetail(
        id=label(finding.id),
        explanation=_text(_explained(finding)),
        case=_case_rows(finding.case, finding.minimal),
        picture=None if finding.error_map is None else _picture(finding.error_map, stats),
        errors=None if stats is None else _errors(stats),
        commands=[
            ("run it again", f"kerneltruth replay {path}"),
            ("write a script that shows it", f"kerneltruth minimize {path}"),
            *([] if stats is None else [(ERRORS, f"kerneltruth replay {path} --errors errors")]),
        ],
        where=visible(", ".join(f"{name} {where[key]}" for key, name in WHERE if where.get(key))),
        bounds=f"{visible(finding.bounds)}{', TF32 admitted' if finding.tf32 else ''}",
        script=script,
    )


def _explained(finding: Finding) -> str:
    if not finding.shown:
        return finding.explanation
    return f"{finding.explanation} In the smallest case: {finding.shown}.".strip()


def _case_rows(found: Case, minimal: Case | None) -> list[list[str]]:
    """Return rows of a table: what, as found, and in the smallest failing case."""
    sides = [found] if minimal is None else [found, minimal]
    rows: dict[str, list[str]] = {}
    for number, case in enumerate(sides):
        for name, value in _facts(case).items():
            rows.setdefault(name, [""] * len(sides))[number] = _text(value)
    return [[label(name), *values] for name, values in rows.items()]


def _facts(case: Case) -> dict[str, str]:
    facts = {name: str(size) for name, size in case.dims}
    facts |= {name: str(value) for name, value in case.attributes}
    facts |= {name: "absent" for name in case.absent}
    facts |= {"dtype": case.dtype, "layout": case.layout, "values": case.recipe}
    for name, values in case.literals:
        facts["values"] = "written out"
        facts[name] = _literals(values)
    return {**facts, "domain": case.domain, "seed": str(case.seed)}


def _literals(values: tuple[float, ...]) -> str:
    shown = ", ".join(f"{v:.9g}" for v in values[:MOST_LITERALS])
    left = len(values) - MOST_LITERALS
    return f"[{shown}{f', and {left} more' if left > 0 else ''}]"


def _picture(picture: ErrorMap, stats: ErrorStats | None) -> ErrorPicture:
    lines = picture.lines
    across = len(lines[0]) if lines else 0
    rows, columns = folded(picture.shape)
    output = visible(picture.output)
    return ErrorPicture(
        lines=lines,
        output=output,
        shape=picture.shape,
        rows=rows,
        columns=columns,
        worst=_worst_cell(picture, stats),
        said=f"{output} has the shape {list(picture.shape)}, shown as "
        f"{len(lines)} rows of {across} cells",
    )


def folded(shape: tuple[int, ...]) -> tuple[int, int]:
    """Return rows and columns of an output with all dims but the last folded."""
    return math.prod(shape[:-1]), shape[-1] if shape else 1


def _worst_cell(picture: ErrorMap, stats: ErrorStats | None) -> tuple[int, int] | None:
    index = None if stats is None else stats.worst_index
    if index is None or len(index) != len(picture.shape) or not picture.lines:
        return None
    if not all(0 <= i < n for i, n in zip(index, picture.shape, strict=True)):
        return None
    row = 0
    for i, n in zip(index[:-1], picture.shape[:-1], strict=True):
        row = row * n + i
    rows, columns = folded(picture.shape)
    column = index[-1] if index else 0
    down, across = len(picture.lines), len(picture.lines[0])
    # Cell k begins at element size * k // cells, so this is the last that begins no later.
    return ((row + 1) * down - 1) // rows, ((column + 1) * across - 1) // columns


def _errors(stats: ErrorStats) -> ErrorSpread:
    named = (
        ("error of half of all elements, at most", _number(stats.p50_abs)),
        ("error of 90%, at most", _number(stats.p90_abs)),
        ("error of 99%, at most", _number(stats.p99_abs)),
        ("largest error", _number(stats.max_abs)),
    )
    return ErrorSpread(
        wrong=stats.num_exceeding,
        count=stats.count,
        share=percent(stats.num_exceeding / stats.count) if stats.count else "",
        worst=stats.worst_index,
        quantiles=[(name, said) for name, said in named if said is not None],
        ratio=_number(stats.max_bound_ratio),
        relative=_number(stats.max_rel),
        ulp=_number(stats.max_ulp),
    )


def _number(value: float | None) -> str | None:
    return None if value is None else f"{value:.3g}"
