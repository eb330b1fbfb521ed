"""What the page tells of one attempt: its timings, and its finding with how to see it again. Pure.

Everything is text for a reader; the page's script sets it as text and computes nothing but places.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping
from typing import Any

from kerneltruth.analysis.results import Result, TimedShape
from kerneltruth.documents.case import Case
from kerneltruth.documents.records import ErrorMap, ErrorStats, Finding
from kerneltruth.report.page.wording import (
    DASH,
    between,
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


def attempt_detail(result: Result, run_path: str, finding: Finding | None) -> dict[str, Any]:
    """Everything about an attempt that its row does not say; absent keys have nothing to say."""
    known = {
        "detail": _text(result.detail),
        "language": result.language,
        "sha256": result.sha256,
        "tags": [label(tag) for tag in result.tags],
        "checks": {label(name): label(says) for name, says in sorted(result.checks.items())},
        "same_as": None if result.same_as is None else label(result.same_as),
        "stages": [[stage, visible(getattr(result, stage))] for stage in ("call", "exe", "perf")],
        "shapes": [_shape(s) for s in result.timing.shapes] if result.timing else [],
        "source_path": visible(f"{run_path}/candidates/{result.sha256}.py"),
        "finding": None if finding is None else _finding(result, run_path, finding),
    }
    return {name: value for name, value in known.items() if value}


def _text(text: str) -> str:
    return shortened(visible(text), MOST_TEXT)


def _shape(shape: TimedShape) -> dict[str, Any]:
    return {
        "case": label(shape.case),
        "time": microseconds(shape.candidate_us),
        "against": [
            {
                "name": visible(name),
                "time": microseconds(ratio.us),
                "ratio": times(ratio.ratio),
                "interval": between(figures(ratio.low), times(ratio.high))
                if ratio.low is not None and ratio.high is not None
                else "",
                "outcome": ratio.outcome or "",
            }
            for name, ratio in shape.baselines.items()
        ],
        "light": percent(shape.efficiency) if shape.efficiency is not None else DASH,
        "bound_by": shape.bound_by or DASH,
        "flags": [visible(flag) for flag in shape.flags],
    }


def _finding(result: Result, run_path: str, finding: Finding) -> dict[str, Any]:
    path = shlex.quote(visible(f"{run_path}/findings/{result.finding}"))
    where = finding.environment
    stats = finding.stats
    return {
        "id": label(finding.id),
        "explanation": _text(_told(finding)),
        "case": _case_rows(finding.case, finding.minimal),
        "picture": None if finding.error_map is None else _picture(finding.error_map, stats),
        "errors": None if stats is None else _errors(stats),
        "commands": [
            ["run it again", f"kerneltruth replay {path}"],
            ["write a script that shows it", f"kerneltruth minimize {path}"],
        ],
        "where": visible(
            ", ".join(
                f"{name} {where[key]}"
                for key, name in (
                    ("device_name", "on"),
                    ("torch", "torch"),
                    ("triton", "triton"),
                    ("python", "Python"),
                )
                if where.get(key)
            )
        ),
        "bounds": f"{visible(finding.bounds)}{', TF32 admitted' if finding.tf32 else ''}",
    }


def _told(finding: Finding) -> str:
    if not finding.shown:
        return finding.explanation
    return f"{finding.explanation} In the smallest case: {finding.shown}.".strip()


def _case_rows(found: Case, minimal: Case | None) -> list[list[str]]:
    """Rows of a table: what, as found, and in the smallest failing case."""
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


def _picture(picture: ErrorMap, stats: ErrorStats | None) -> dict[str, Any]:
    """The error map with its words, and the cell of the worst element."""
    lines = picture.lines
    across = len(lines[0]) if lines else 0
    rows, columns = folded(picture.shape)
    return {
        "lines": list(lines),
        "output": visible(picture.output),
        "shape": list(picture.shape),
        "rows": rows,
        "columns": columns,
        "worst": _worst_cell(picture, stats),
        "said": f"{visible(picture.output)} has the shape {list(picture.shape)}, shown as "
        f"{len(lines)} rows of {across} cells",
    }


def folded(shape: tuple[int, ...]) -> tuple[int, int]:
    """Rows and columns of an output with all dims but the last folded."""
    return math.prod(shape[:-1]), shape[-1] if shape else 1


def _worst_cell(picture: ErrorMap, stats: ErrorStats | None) -> list[int] | None:
    """Where in the map the worst element lies: row and column of its cell."""
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
    return [((row + 1) * down - 1) // rows, ((column + 1) * across - 1) // columns]


def _errors(stats: ErrorStats) -> dict[str, Any]:
    """The spread of the error: how many elements, and quantiles of its size."""
    named: Mapping[str, float | None] = {
        "half of all elements": stats.p50_abs,
        "90%": stats.p90_abs,
        "99%": stats.p99_abs,
        "the largest": stats.max_abs,
    }
    return {
        "wrong": stats.num_exceeding,
        "count": stats.count,
        "share": percent(stats.num_exceeding / stats.count) if stats.count else "",
        "worst": None if stats.worst_index is None else list(stats.worst_index),
        "quantiles": [[name, _number(value)] for name, value in named.items() if value is not None],
        "ratio": _number(stats.max_bound_ratio),
        "relative": _number(stats.max_rel),
        "ulp": _number(stats.max_ulp),
    }


def _number(value: float | None) -> str | None:
    return None if value is None else f"{value:.3g}"
