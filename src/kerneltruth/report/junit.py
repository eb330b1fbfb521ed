"""Write how candidates ended as JUnit XML, which most continuous-integration systems show."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree as ET

from kerneltruth.report.figures import PLAIN_TORCH
from kerneltruth.report.junit_entries import JUnitEntry, JUnitSuite
from kerneltruth.runs.files import write_whole, writing

# Characters that XML 1.0 cannot hold, even escaped.
_FORBIDDEN = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ELEMENTS = {"failed": "failure", "error": "error", "skipped": "skipped"}


def junit(suite: JUnitSuite) -> str:
    """Return one document: a suite with a case for each entry."""
    counts = _counts(suite)
    root = ET.Element("testsuites", {"name": "kerneltruth", **counts})
    about = {"name": suite.name, **counts, "hostname": suite.device}
    if suite.started:
        about["timestamp"] = suite.started.partition("+")[0]
    group = ET.SubElement(root, "testsuite", _attributes(about))
    _add_properties(group, suite.properties)
    for entry in suite.entries:
        _add(group, entry)
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
    statuses = [e.status for e in suite.entries]
    return {
        "tests": str(len(statuses)),
        "failures": str(statuses.count("failed")),
        "errors": str(statuses.count("error")),
        "skipped": str(statuses.count("skipped")),
        "time": f"{sum(e.seconds or 0.0 for e in suite.entries):.3f}",
    }


def _add(group: ET.Element, entry: JUnitEntry) -> None:
    about = {"classname": entry.group.replace("/", "."), "name": entry.name}
    if entry.seconds is not None:
        about["time"] = f"{entry.seconds:.3f}"
    if entry.file is not None:
        about["file"] = entry.file
    if entry.line is not None:
        about["line"] = str(entry.line)
    case = ET.SubElement(group, "testcase", _attributes(about))
    _add_properties(case, entry.obligations)
    if entry.status != "passed":
        said = {"message": entry.message or entry.kind}
        if entry.status != "skipped":
            said["type"] = entry.kind
        element = ET.SubElement(case, _ELEMENTS[entry.status], _attributes(said))
        element.text = printable(entry.text)
    notes = [PLAIN_TORCH] if entry.torch_only else []
    notes += [f"hazard: {hazard}" for hazard in entry.hazards]
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
