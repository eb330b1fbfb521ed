"""Render `baselines`: what was timed where and when."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from kerneltruth.documents.baselines import BaselinesDocument
from kerneltruth.report.figures import UNKNOWN, table
from kerneltruth.report.time_view import duration

_COLUMNS = ("task", "shape", "baseline", "time", "range", "device", "torch", "date")
# The clock's own rule, since a stored time invites to skip the measurement.
RECORD = "a record: a kernel is timed beside baselines of its own run, and never against these"


def baselines_view(document: BaselinesDocument) -> RenderableType:
    """Show a row for each baseline, and what does not count."""
    shown = table(None, *_COLUMNS, words=("task", "shape", "baseline", "device", "torch", "date"))
    for row in document.baselines:
        ends = f"{duration(row.least_us)} to {duration(row.most_us)}"
        shown.add_row(
            row.task,
            row.shape,
            row.baseline,
            duration(row.us),
            ends if row.candidates > 1 else "",
            row.device,
            row.torch or UNKNOWN,
            (row.date or UNKNOWN).partition("T")[0],
        )
    parts: list[RenderableType] = [shown] if document.baselines else []
    parts += [Text(f"{count} times left out: {why}") for why, count in document.left_out.items()]
    parts += [Text(note) for note in document.notes]
    if document.csv is not None:
        parts.append(Text(f"written: {document.csv}"))
    parts.append(Text(RECORD if document.baselines else "the runs have timed no baseline"))
    return Group(*parts)
