"""Render `report`: where the page is, and what it holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.text import Text

from kerneltruth.documents.analysis import ReportDocument
from kerneltruth.documents.model import parse


def summary(page: Mapping[str, Any], *, out: str, size: int) -> ReportDocument:
    """Derive the document of `report --json` from the page's document."""
    own = {name: page[name] for name in ("kind", "title", "corpus", "notes")}
    return parse(ReportDocument, {"out": out, "bytes": size, **own, **page["counts"]})


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
