"""Render outcomes as GitHub workflow commands, shown beside the candidates' lines. Pure.

A candidate's text is data: it is escaped, so that it cannot end a command or begin another.
"""

from __future__ import annotations

from collections.abc import Iterator

from kerneltruth.report.figures import PLAIN_TORCH
from kerneltruth.report.harmless import visible
from kerneltruth.report.outcomes import JUnitSuite, Outcome

_COMMANDS = {"failed": "error", "error": "error", "skipped": "warning"}


def annotate(suite: JUnitSuite) -> Iterator[str]:
    """Return a line for each outcome that is not a pass, and a notice for each hazard."""
    for outcome in suite.outcomes:
        plain = f"\n{PLAIN_TORCH}" if outcome.torch_only else ""
        if outcome.status != "passed":
            message = (outcome.message or outcome.kind) + plain
            yield _command(_COMMANDS[outcome.status], outcome, outcome.kind, message)
        for hazard in outcome.hazards:
            yield _command("notice", outcome, "hazard", hazard + plain)


def _command(command: str, outcome: Outcome, kind: str, message: str) -> str:
    about = {
        "file": outcome.file,
        "line": None if outcome.line is None else str(outcome.line),
        "title": f"{outcome.group}: {kind}",
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
