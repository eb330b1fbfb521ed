"""Render `audit --suite`: tasks that do not hold; with `--timed`, shapes that are no tie."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from kerneltruth.documents.suites import ProofCounts, SuiteDocument, TimedSuiteDocument
from kerneltruth.report.figures import table
from kerneltruth.report.harmless import visible

COLUMNS = ("tasks", "hold", "cases", "flagged", "declined", "unrefereeable", "skipped")
FLAGS_SHOWN = 3


def suite_view(document: SuiteDocument) -> RenderableType:
    """Return a row for each category, the tasks that do not hold, and the count."""
    rows = table(None, "category", *COLUMNS)
    for category, row in document.categories.items():
        rows.add_row(category, *_cells(row))
    summary = document.summary
    rows.add_section()
    rows.add_row("all", *_cells(summary))
    parts: list[RenderableType] = [rows]
    for task in document.tasks:
        if task.trouble is not None:
            parts.append(Text(f"{task.task} is not judged: {task.trouble}"))
        if not task.holds:
            parts.append(Text(f"{task.task} does not hold", style="bold red"))
            parts += [
                Text(f"  {f.case}: {f.verdict} {f.detail}") for f in task.flagged[:FLAGS_SHOWN]
            ]
            if not task.flagged:
                empty = [d for d, n in task.cases.items() if not n]
                parts.append(Text(f"  no case judged in {', '.join(empty) or 'any dtype'}"))
    left = document.not_judged
    if left:
        parts.append(
            Text(f"{len(left)} tasks were not started: the budget was spent", style="yellow")
        )
    count = (
        f"{summary.hold} of {summary.tasks} tasks hold: PyTorch was flagged on "
        f"{summary.flagged} of {summary.cases:,} cases on {document.device}, "
        f"{document.seconds:.0f} s"
    )
    parts.append(Text(count, style="green" if summary.good else "bold red"))
    return Group(*parts)


def _cells(counts: ProofCounts) -> list[str]:
    return [f"{getattr(counts, column):,}" for column in COLUMNS]


def timed_audit_view(document: TimedSuiteDocument) -> RenderableType:
    """Return a line for each shape that is not a tie, and the count."""
    parts: list[RenderableType] = [
        Text(f"{o.task} {o.shape}: {o.outcome}: {visible(o.why)}", style="yellow")
        for o in document.other
    ]
    summary = document.summary
    count = (
        f"{document.tie} of {document.timed} shapes of {summary.tasks} tasks tie: PyTorch "
        f"against itself on {document.device}, {document.seconds:.0f} s"
    )
    if document.not_timed:
        ended = "Ctrl-C ended it" if document.interrupted else "the budget was spent"
        left = document.not_timed
        parts.append(Text(f"{len(left)} not timed because {ended}: {', '.join(left)}"))
    spent = ", ".join(f"{part} {seconds:.1f}" for part, seconds in document.spent.items())
    parts.append(Text(f"seconds: {spent}", style="dim"))
    parts.append(Text(count, style="green" if summary.good else "bold red"))
    return Group(*parts)
