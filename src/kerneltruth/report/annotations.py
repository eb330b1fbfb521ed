"""Render how candidates ended as GitHub workflow commands, beside the candidates' lines. Pure.

A candidate's text is data: it is escaped, so that it cannot end a command or begin another.
"""

from __future__ import annotations

from collections.abc import Iterator

from kerneltruth.report.figures import PLAIN_TORCH
from kerneltruth.report.harmless import visible
from kerneltruth.report.junit_entries import JUnitEntry, JUnitSuite

_COMMANDS = {"failed": "error", "error": "error", "skipped": "warning"}


def annotate(suite: JUnitSuite) -> Iterator[str]:
    """Return a line for each entry that is not a pass, and a notice for each hazard."""
    for entry in suite.entries:
        plain = f"\n{PLAIN_TORCH}" if entry.torch_only else ""
        if entry.status != "passed":
            message = (entry.message or entry.kind) + plain
            yield _command(_COMMANDS[entry.status], entry, entry.kind, message)
        for hazard in entry.hazards:
            yield _command("notice", entry, "hazard", hazard + plain)


def _command(command: str, entry: JUnitEntry, kind: str, message: str) -> str:
    about = {
        "file": entry.file,
        "line": None if entry.line is None else str(entry.line),
        "title": f"{entry.group}: {kind}",
    }
    said = ",".join(f"{k}={_property(v)}" for k, v in about.items() if v is not None)
    return f"::{command} {said}::{_data(message)}"


def _data(text: str) -> str:
    """Escape a message as GitHub decodes it; make control characters visible."""
    lines = text.replace("\r\n", "\n").split("\n")
    return "%0A".join(visible(line).replace("%", "%25") for line in lines)


def _property(text: str) -> str:
    """Escape a property, which `,` ends and `::` follows."""
    return _data(text).replace(":", "%3A").replace(",", "%2C")
