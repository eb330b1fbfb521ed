"""Write outcomes as JUnit XML, which most continuous-integration systems show."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree as ET

from kerneltruth.report.figures import PLAIN_TORCH
from kerneltruth.report.outcomes import JUnitSuite, Outcome
from kerneltruth.runs.files import write_whole, writing

# Characters that XML 1.0 cannot hold, even escaped.
_FORBIDDEN = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ELEMENTS = {"failed": "failure", "error": "error", "skipped": "skipped"}


def junit(suite: JUnitSuite) -> str:
    """Return one document: a suite with a case for each outcome."""
    counts = _counts(suite)
    root = ET.Element("testsuites", {"name": "kerneltruth", **counts})
    about = {"name": suite.name, **counts, "hostname": suite.device}
    if suite.started:
        about["timestamp"] = suite.started.partition("+")[0]
    group = ET.SubElement(root, "testsuite", _attributes(about))
    _add_properties(group, suite.properties)
    for outcome in suite.outcomes:
        _add(group, outcome)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=False).join(
        ('<?xml version="1.0" encoding="UTF-8"?>\n', "\n")
    )


def write_junit(suite: JUnitSuite, path: Path) -> None:
    """Write the document to a file, whole or not at all.

    Raises:
        EnvironmentFault: it cannot be written.
    """
    with writing(path):
        write_whole(path, junit(suite).encode())


def _counts(suite: JUnitSuite) -> dict[str, str]:
    statuses = [o.status for o in suite.outcomes]
    return {
        "tests": str(len(statuses)),
        "failures": str(statuses.count("failed")),
        "errors": str(statuses.count("error")),
        "skipped": str(statuses.count("skipped")),
        "time": f"{sum(o.seconds or 0.0 for o in suite.outcomes):.3f}",
    }


def _add(group: ET.Element, outcome: Outcome) -> None:
    about = {"classname": outcome.group.replace("/", "."), "name": outcome.name}
    if outcome.seconds is not None:
        about["time"] = f"{outcome.seconds:.3f}"
    if outcome.file is not None:
        about["file"] = outcome.file
    if outcome.line is not None:
        about["line"] = str(outcome.line)
    case = ET.SubElement(group, "testcase", _attributes(about))
    _add_properties(case, outcome.obligations)
    if outcome.status != "passed":
        said = {"message": outcome.message or outcome.kind}
        if outcome.status != "skipped":
            said["type"] = outcome.kind
        element = ET.SubElement(case, _ELEMENTS[outcome.status], _attributes(said))
        element.text = printable(outcome.text)
    notes = [PLAIN_TORCH] if outcome.torch_only else []
    notes += [f"hazard: {hazard}" for hazard in outcome.hazards]
    if notes:
        ET.SubElement(case, "system-out").text = printable("\n".join(notes))


def _add_properties(element: ET.Element, values: Mapping[str, str]) -> None:
    if values:
        properties = ET.SubElement(element, "properties")
        for name, value in values.items():
            ET.SubElement(properties, "property", _attributes({"name": name, "value": value}))


def _attributes(values: dict[str, str]) -> dict[str, str]:
    return {name: printable(value) for name, value in values.items()}


def printable(text: str) -> str:
    r"""Replace each character that XML forbids by its escape, such as `\x1b`."""
    return _FORBIDDEN.sub(lambda m: m[0].encode("unicode_escape").decode("ascii"), text)
