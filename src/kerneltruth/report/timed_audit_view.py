"""Render `audit --suite --timed`: how many shapes tie, and what the others are."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from kerneltruth.documents.suites import TimedSuiteDocument
from kerneltruth.report.figures import visible


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
        parts.append(Text(f"{len(left)} not timed, because {ended}: {', '.join(left)}"))
    spent = ", ".join(f"{part} {seconds:.1f}" for part, seconds in document.spent.items())
    parts.append(Text(f"seconds: {spent}", style="dim"))
    parts.append(Text(count, style="green" if summary.good else "bold red"))
    return Group(*parts)
