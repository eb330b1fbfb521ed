"""Derive entries of JUnit and annotations, one per candidate, from a check's document or a run."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from kerneltruth.analysis.reading import read_study
from kerneltruth.analysis.results import TORCH_ONLY, Result
from kerneltruth.documents.checks import CheckDocument, ChecksDocument
from kerneltruth.documents.lines import read_line
from kerneltruth.documents.model import Json
from kerneltruth.documents.profiles import FAILING, failing_with, said_of_document, said_of_entry
from kerneltruth.documents.records import Attempt
from kerneltruth.runs.store import RunStore

EntryStatus = Literal["passed", "failed", "error", "skipped"]

_SKIPPED = ("unsupported_here", "unrefereeable")
_LINE = re.compile(r"(.+):(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class JUnitEntry:
    """How one candidate ended, for other tools.

    Attributes:
        name: the candidate's name; `group` is its suite or task.
        status: `failed` is the candidate's fault, `error` this machine's; `skipped` is neither.
        kind: the verdict's word, and the kind of a failure.
        message: one line that says which obligations it breaks and why, with the smallest case and
            the finding; empty for a pass.
        file: where the candidate's source is, and `line` in it, where known.
        obligations: what became of each, in a line.
        hazards: what is silently wrong beyond the contract, a line each.
    """

    name: str
    group: str
    status: EntryStatus
    kind: str
    message: str
    text: str
    seconds: float | None
    file: str | None
    line: int | None = None
    torch_only: bool = False
    obligations: Mapping[str, str] = field(default_factory=dict)
    hazards: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class JUnitSuite:
    """The entries of one command, and the properties that they may depend on."""

    name: str
    device: str
    properties: Mapping[str, str]
    started: str
    entries: tuple[JUnitEntry, ...]


def of_check(document: CheckDocument, file: Path, *, device: str) -> JUnitSuite:
    """Return the entry of `check`."""
    return _suite_of(device, _of_file(document, file))


def of_checks(document: ChecksDocument, *, device: str) -> JUnitSuite:
    """Return the entries of `check` of several files."""
    entries = [_of_file(each, Path(each.candidate.path)) for each in document.checks]
    refused = (
        JUnitEntry(
            name=Path(each.path).name,
            group="",
            status="error",
            kind="refused",
            message=each.reason,
            text=each.reason,
            seconds=None,
            file=each.path,
        )
        for each in document.refused
    )
    return _suite_of(device, *entries, *refused)


def _suite_of(device: str, *entries: JUnitEntry) -> JUnitSuite:
    return JUnitSuite(
        name="kerneltruth check", device=device, properties={}, started="", entries=entries
    )


def _of_file(document: CheckDocument, file: Path) -> JUnitEntry:
    verdict, kind = document.verdict, document.kind
    reason = document.explanation or document.detail or ""
    parts = [
        document.detail,
        document.explanation,
        document.minimal_summary
        and f"smallest failing case: {document.minimal_summary}: {document.minimal_shown}",
        document.finding and f"finding: {document.finding}",
    ]
    return JUnitEntry(
        name=file.name,
        group=document.task,
        status=status_of(verdict),
        kind=verdict if kind is None else f"{verdict} {kind}",
        message=_message(_failing_in(document), reason, document.minimal_summary, document.finding),
        text="\n".join(dict.fromkeys(str(p).strip() for p in parts if p)),
        seconds=document.seconds,
        file=str(file),
        torch_only=document.torch_only,
        obligations={key: said_of_document(e) for key, e in document.profile.items()},
        hazards=document.hazards,
    )


def _failing_in(document: CheckDocument) -> tuple[str, ...]:
    failing = ((key, e) for key, e in document.profile.items() if e.status in FAILING)
    return tuple(key for key, e in failing if e.case is not None and e.case == document.failing)


def _message(failing: Sequence[str], reason: str, smallest: str | None, finding: str | None) -> str:
    """Return `shapes, memory: why (smallest case N=1, finding F)`, as far as it is known."""
    evidence = [f"smallest case {smallest}"] if smallest else []
    evidence += [f"finding {finding}"] if finding else []
    parts = [f"{', '.join(failing)}:"] if failing else []
    parts += [_line(reason)] if reason else []
    parts += [f"({', '.join(evidence)})"] if evidence else []
    return " ".join(parts)


def of_run(run: Path, candidates: Path) -> JUnitSuite:
    """Return the entries of a run, one per attempt.

    `candidates` is where its submissions were read from.
    """
    study = read_study([run])
    about = study.runs[0]
    lines = {said.key: said for said in RunStore.open(run, keep=_kept).results()}
    return JUnitSuite(
        name="kerneltruth run",
        device=about.device,
        properties={"version": about.version, "seed": str(about.seed), "run": about.path},
        started=about.started,
        entries=tuple(
            _entry(result, lines.get(result.same_as or result.key), run, candidates)
            for result in study.attempts
        ),
    )


@dataclass(frozen=True, slots=True)
class _Said:
    """The part of an attempt's line that a `Result` lacks."""

    key: str
    explanation: str = ""
    seconds: float | None = None
    failing: tuple[str, ...] = ()
    smallest: str | None = None
    obligations: Mapping[str, str] = field(default_factory=dict)
    hazards: tuple[str, ...] = ()


def _kept(data: dict[str, Json]) -> _Said:
    line = read_line(data)
    return _of_attempt(line.key, line.attempt) if line.attempt else _Said(line.key)


def _of_attempt(key: str, attempt: Attempt) -> _Said:
    return _Said(
        key,
        explanation=attempt.explanation,
        seconds=attempt.seconds,
        failing=failing_with(attempt.profile, attempt.failure),
        smallest=None if attempt.minimal is None else attempt.minimal.summary(),
        obligations={name: said_of_entry(e) for name, e in attempt.profile.items()},
        hazards=tuple(attempt.hazards.values()),
    )


def _entry(result: Result, said: _Said | None, run: Path, candidates: Path) -> JUnitEntry:
    said = said or _Said(result.key)
    labels = (f"{n} {v}" for n, v in (("method", result.method), ("model", result.model)) if v)
    finding = result.finding and str(run / "findings" / result.finding)
    parts = [result.detail, said.explanation, finding and f"finding: {finding}", *labels]
    file, line = _place(result.origin, candidates)
    reason = said.explanation or result.detail
    return JUnitEntry(
        name=result.key,
        group=result.task,
        status=status_of(result.verdict),
        kind=result.verdict if result.kind is None else f"{result.verdict} {result.kind}",
        message="" if result.correct else _message(said.failing, reason, said.smallest, finding),
        text="\n".join(dict.fromkeys(p.strip() for p in parts if p)),
        # A repeated source cost nothing.
        seconds=0.0 if result.same_as else said.seconds,
        file=file,
        line=line,
        torch_only=result.language == TORCH_ONLY,
        obligations=said.obligations,
        hazards=said.hazards,
    )


def status_of(verdict: str) -> EntryStatus:
    """Map a verdict to one of the four words of other tools."""
    if verdict == "pass":
        return "passed"
    if verdict == "infra":
        return "error"
    return "skipped" if verdict in _SKIPPED else "failed"


def _place(origin: str, candidates: Path) -> tuple[str, int | None]:
    """Return file and line of a submission, relative to the current directory."""
    match = _LINE.fullmatch(origin)
    name, line = (match[1], int(match[2])) if match else (origin, None)
    path = candidates / name if candidates.is_dir() else candidates
    return str(path), line


def _line(text: str) -> str:
    return text.strip().partition("\n")[0]
