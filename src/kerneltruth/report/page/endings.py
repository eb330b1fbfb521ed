"""The page's table of endings: how the answers of each method end, as a stack. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from kerneltruth.analysis.groups import METHOD, grouped
from kerneltruth.analysis.results import PASSED, Result
from kerneltruth.documents.analysis import AnalyzeDocument
from kerneltruth.documents.verdict import NOT_JUDGED
from kerneltruth.report.page.cells import (
    PageTable,
    StackCell,
    StackPart,
    column,
    row,
    share,
    table,
    whole,
)
from kerneltruth.report.page.verdict_map import LEGEND, MARKS, NOT_KNOWN
from kerneltruth.report.page.wording import count, row_label

# In the order of a kernel's way: what came furthest first.
_ORDER = ("pass", "fail", "hack", "timeout", "crash", "runtime_error", "compile_error")
_SHADES = {"pass": "s4", "fail": "s0", "hack": "s0"}
_NOT_JUDGED, _OTHERWISE = "not judged here", "ends otherwise"
# A part as narrow has no room for its mark, in percent.
_LEAST_MARKED = 5.0


def endings_table(found: AnalyzeDocument, answers: Sequence[Result]) -> PageTable | None:
    """Make the table; None without an answer, and for an audit."""
    if not answers or found.audit is not None:
        return None
    members = grouped(answers, METHOD)
    rows = [
        row(
            row_label(r, METHOD),
            [
                whole(r.attempts),
                _stack(members[r.group(METHOD)]),
                share(r.exe, part="exe", unknown="not tried"),
            ],
        )
        for r in found.rates.rows(METHOD)
    ]
    seen = {_end(r) for r in answers}
    marks = ", ".join(f"{MARKS[end]} {LEGEND[end]}" for end in _ORDER if end in seen)
    columns = [
        column("method", number=False),
        column("answers"),
        column("how they end", number=False, hint=marks),
        column("is right"),
    ]
    return table("endings", "How the answers of each method end.", columns, rows)


def _stack(results: Sequence[Result]) -> StackCell:
    ends = Counter(_end(r) for r in results)
    parts, at = [], 0.0
    for end in (*_ORDER, _OTHERWISE, _NOT_JUDGED):
        if not ends[end]:
            continue
        width = 100 * ends[end] / len(results)
        mark = MARKS.get(end, NOT_KNOWN) if width >= _LEAST_MARKED else ""
        shade = "open" if end == _NOT_JUDGED else _SHADES.get(end, "broke")
        said = f"{count(ends[end])} {LEGEND.get(end, end)}"
        parts.append(
            StackPart(at=round(at, 2), width=round(width, 2), shade=shade, mark=mark, said=said)
        )
        at += width
    return StackCell(parts=parts, value=ends[PASSED] / len(results))


def _end(result: Result) -> str:
    if result.correct:
        return PASSED
    if result.verdict in NOT_JUDGED or not result.judged:
        return _NOT_JUDGED
    return result.verdict if result.verdict in _ORDER[1:] else _OTHERWISE
