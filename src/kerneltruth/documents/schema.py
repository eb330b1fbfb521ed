"""The models as JSON Schema, one file for each document and each file of a run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from kerneltruth.documents.analysis import AnalyzeDocument, ReportDocument
from kerneltruth.documents.baselines import BaselinesDocument
from kerneltruth.documents.checks import (
    CheckDocument,
    ChecksDocument,
    MinimizeDocument,
    ReplayDocument,
)
from kerneltruth.documents.exploits import ExploitsDocument
from kerneltruth.documents.exports import ExportDocument, ExportedFinding
from kerneltruth.documents.facts import DoctorDocument, RunTasks, TasksDocument
from kerneltruth.documents.generations import GenerateDocument, GenerationManifest
from kerneltruth.documents.lines import ResultLine
from kerneltruth.documents.model import Json, Number
from kerneltruth.documents.records import Attempt
from kerneltruth.documents.runs import AuditDocument, CompareDocument, RunDocument
from kerneltruth.documents.stored import Finding, Manifest
from kerneltruth.documents.suites import SuiteDocument, TimedSuiteDocument
from kerneltruth.documents.timing import TimeDocument

DOCUMENTS: dict[str, type[msgspec.Struct]] = {
    "manifest": Manifest,
    "finding": Finding,
    "exported-finding": ExportedFinding,
    "result": ResultLine,
    "run-tasks": RunTasks,
    "attempt": Attempt,
    "check": CheckDocument,
    "check-several": ChecksDocument,
    "run": RunDocument,
    "time": TimeDocument,
    "audit": AuditDocument,
    "audit-suite": SuiteDocument,
    "audit-exploits": ExploitsDocument,
    "audit-timed": TimedSuiteDocument,
    "replay": ReplayDocument,
    "minimize": MinimizeDocument,
    "generate": GenerateDocument,
    "generation": GenerationManifest,
    "analyze": AnalyzeDocument,
    "report": ReportDocument,
    "export": ExportDocument,
    "baselines": BaselinesDocument,
    "compare": CompareDocument,
    "tasks": TasksDocument,
    "doctor": DoctorDocument,
}
_NUMBER = {"anyOf": [{"type": "number"}, {"enum": ["NaN", "Infinity", "-Infinity"]}]}
_JSON_REF = {"$ref": "#/$defs/Json"}
_JSON = {
    "title": "Json",
    "description": "Any of JSON's own types, to any depth.",
    "anyOf": [
        {"type": ["null", "boolean", "number", "string"]},
        {"type": "array", "items": _JSON_REF},
        {"type": "object", "additionalProperties": _JSON_REF},
    ],
}


def schema(name: str) -> str:
    """Return the JSON Schema of a document, as its file holds it."""
    found = msgspec.json.schema(DOCUMENTS[name], schema_hook=_of_special)
    if _JSON_REF in _parts(found):
        found["$defs"]["Json"] = _JSON
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return json.dumps({**head, **_in_order(found)}, indent=1) + "\n"


def file_of(folder: Path, name: str) -> Path:
    """Return the path of a document's schema."""
    return folder / f"{name}.schema.json"


def write(folder: Path) -> None:
    """Write every schema into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in DOCUMENTS:
        file_of(folder, name).write_text(schema(name), "utf-8")


def _of_special(kind: type) -> dict[str, object]:
    if kind not in (Number, Json):
        raise NotImplementedError(kind)
    return dict(_NUMBER if kind is Number else _JSON_REF)


def _parts(schema: object) -> Iterator[object]:
    yield schema
    if isinstance(schema, dict | list):
        for part in schema.values() if isinstance(schema, dict) else schema:
            yield from _parts(part)


def _in_order(part: object) -> Any:
    """Sort the alternatives of a schema, since versions of msgspec order them differently."""
    if isinstance(part, list):
        return [_in_order(each) for each in part]
    if not isinstance(part, dict):
        return part
    found = {name: _in_order(each) for name, each in part.items()}
    if "anyOf" in found:
        found["anyOf"].sort(key=json.dumps)
    return found
