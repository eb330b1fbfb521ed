"""The verdict map: tasks against methods, each cell with its counts. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kerneltruth.analysis.groups import methods_of
from kerneltruth.analysis.results import Result
from kerneltruth.documents.verdict import NOT_JUDGED
from kerneltruth.report.page.wording import NO_CATEGORY, label, method_label

# One attempt in a cell: a mark of its own for each outcome, so that colour is never alone.
MARKS = {
    "pass": "\N{CHECK MARK}",
    "fail": "\N{MULTIPLICATION X}",
    "hack": "H",
    "compile_error": "C",
    "runtime_error": "E",
    "crash": "S",
    "timeout": "T",
    "declined": "D",
}
NOT_KNOWN = "\N{EN DASH}"
# The marks that the page explains.
LEGEND = {
    "pass": "right",
    "fail": "wrong result",
    "hack": "cheats",
    "compile_error": "does not load or compile",
    "runtime_error": "raises an error",
    "crash": "crashes",
    "timeout": "times out",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class MapCell:
    """A mark or a count, its shade, and the whole of it in words."""

    mark: str
    shade: str
    said: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MapTask:
    """A row: a task with a cell for each method; None where the method has no answer."""

    name: str
    short: str
    cells: Sequence[MapCell | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class MapCategory:
    """A category with its tasks, and the cells of all of them together."""

    name: str
    cells: Sequence[MapCell | None]
    tasks: Sequence[MapTask]


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictMap:
    """Tasks by category against methods."""

    methods: Sequence[str]
    categories: Sequence[MapCategory]
    legend: Mapping[str, str]


def verdict_map(answers: Sequence[Result]) -> VerdictMap:
    """Make the map: a row for each task, a column for each method."""
    methods = methods_of(answers)
    by_category: dict[str, dict[str, list[Result]]] = {}
    for r in answers:
        tasks = by_category.setdefault(r.category or NO_CATEGORY, {})
        tasks.setdefault(r.task, []).append(r)
    return VerdictMap(
        methods=[method_label(*pair) for pair in methods],
        legend=LEGEND,
        categories=[
            MapCategory(
                name=label(category),
                cells=_cells([r for own in tasks.values() for r in own], methods),
                tasks=[
                    MapTask(name=label(task), short=_short(task), cells=_cells(own, methods))
                    for task, own in sorted(tasks.items())
                ],
            )
            for category, tasks in sorted(by_category.items())
        ],
    )


def _short(task: str) -> str:
    """Return the task without its suite, which the page names once."""
    return label(task.partition("/")[2] or task)


def _cells(
    results: Sequence[Result], methods: Sequence[tuple[str | None, str | None]]
) -> list[MapCell | None]:
    by_method: dict[tuple[str | None, str | None], list[Result]] = {}
    for r in results:
        by_method.setdefault((r.method, r.model), []).append(r)
    return [cell(by_method[m]) if m in by_method else None for m in methods]


def cell(results: Sequence[Result]) -> MapCell:
    """Make the cell of some answers.

    The page's script does the same for the attempts that a filter leaves; see `counts.js`.
    """
    ended = Counter(r.verdict for r in results)
    total, right = len(results), sum(r.correct for r in results)
    judged = total - sum(ended[word] for word in NOT_JUDGED)
    returned = sum(r.called for r in results)
    mark = f"{right}/{total}"
    if total == 1:
        mark = MARKS.get(results[0].verdict, NOT_KNOWN)
    said = ", ".join(f"{n} {label(word)}" for word, n in ended.most_common())
    return MapCell(
        mark=mark,
        shade=shade(right=right, total=total, judged=judged, returned=returned),
        said=said,
    )


def shade(*, right: int, total: int, judged: int, returned: int) -> str:
    """Return a cell's class: `open` if none was judged, `broke` if none ran, s0 to s4."""
    if judged == 0:
        return "open"
    if returned == 0:
        return "broke"
    if right == total:
        return "s4"
    return "s0" if right == 0 else f"s{min(3, 1 + 3 * right // total)}"
