"""Render `report`: where the page is, and what it holds."""

from __future__ import annotations

from dataclasses import asdict

from rich.text import Text

from kerneltruth.documents.analysis import ReportDocument
from kerneltruth.report.page.document import Page


def summary(page: Page, *, out: str, size: int) -> ReportDocument:
    """Derive the document of `report --json` from the page's document."""
    return ReportDocument(
        out=out,
        bytes=size,
        kind=page.kind,
        title=page.title,
        corpus=page.corpus,
        notes=tuple(page.notes),
        **asdict(page.counts),
    )


def page_view(document: ReportDocument) -> Text:
    """Return a few lines."""
    lines = [f"note: {note}" for note in document.notes]
    answers = (
        f"{document.answers:,} answers to {document.tasks:,} tasks by {document.methods:,} methods"
    )
    what = "kernels of the built-in corpus" if document.corpus else f"attempts, {answers}"
    lines.append(f"{document.attempts:,} {what}; {document.findings:,} with a finding")
    lines.append(f"{document.kind}: {document.out} ({document.bytes / 1e6:.1f} MB)")
    return Text("\n".join(lines))
