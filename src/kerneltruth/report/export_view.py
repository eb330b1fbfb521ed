"""Render `export`: the file, and the command that replays it."""

from __future__ import annotations

import shlex

from rich.console import RenderableType

from kerneltruth.documents.exports import ExportDocument
from kerneltruth.report.figures import pairs


def export_view(document: ExportDocument) -> RenderableType:
    """Show which file was written and what a replay of it needs."""
    table = pairs()
    inputs = "with its inputs" if document.inputs else "its inputs follow from the seed"
    kib = -(-document.bytes // 1024)
    table.add_row("finding", document.finding)
    table.add_row("file", f"{document.file}, {kib} KiB, {inputs}")
    if document.needs is not None:
        table.add_row("needs", f"the suite {document.needs}, which the file does not hold")
    table.add_row("next", f"kerneltruth replay {shlex.quote(document.file)}")
    return table
