"""The view of `report`: where the page is, and what it holds."""

from __future__ import annotations

from typing import Any

from rich.text import Text


def summary(document: dict[str, Any], *, out: str, size: int) -> dict[str, Any]:
    """The document of `report --json`."""
    return {
        "schema": 1,
        "out": out,
        "bytes": size,
        "kind": document["kind"],
        "title": document["title"],
        **document["counts"],
        "corpus": document["corpus"],
        "notes": document["notes"],
    }


def page_view(document: dict[str, Any]) -> Text:
    """A few lines."""
    lines = [f"note: {note}" for note in document["notes"]]
    answers = (
        f"{document['answers']:,} answers to {document['tasks']:,} tasks by "
        f"{document['methods']:,} methods"
    )
    what = "kernels of the built-in corpus" if document["corpus"] else f"attempts, {answers}"
    lines.append(f"{document['attempts']:,} {what}; {document['findings']:,} with a finding")
    lines.append(f"{document['kind']}: {document['out']} ({document['bytes'] / 1e6:.1f} MB)")
    return Text("\n".join(lines))
