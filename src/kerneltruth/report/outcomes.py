"""Derive outcomes for other tools, one per candidate, from a check's document or a run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from kerneltruth.analysis.reading import read_study
from kerneltruth.analysis.results import TORCH_ONLY, Result
from kerneltruth.documents.model import Json
from kerneltruth.documents.verdicts import CheckDocument
from kerneltruth.runs.store import RunStore

Status = Literal["passed", "failed", "error", "skipped"]

_SKIPPED = ("unsupported_here", "unrefereeable")
_LINE = re.compile(r"(.+):(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one candidate.

    Attributes:
        name: the candidate's name; `group` is its suite or task.
        status: `failed` is the candidate's fault, `error` this machine's; `skipped` is neither.
        kind: the verdict's word, and the kind of a failure.
        message: one line that says why; empty for a pass.
        text: the full explanation.
        file: where the candidate's source is, and `line` in it, where known.
        torch_only: whether it has no kernel of its own.
    """

    name: str
    group: str
    status: Status
    kind: str
    message: str
    text: str
    seconds: float | None
    file: str | None
    line: int | None = None
    torch_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """The outcomes of one command, and the properties that they may depend on."""

    name: str
    device: str
    properties: Mapping[str, str]
    started: str
    outcomes: tuple[Outcome, ...]


def of_check(document: CheckDocument, file: Path, *, device: str) -> Suite:
    """Return the outcome of `check`."""
    verdict, kind = document.verdict, document.kind
    reason = document.explanation or document.detail or ""
    parts = [
        document.detail,
        document.explanation,
        document.minimal_summary
        and f"smallest failing case: {document.minimal_summary}: {document.minimal_shown}",
        document.finding and f"finding: {document.finding}",
    ]
    outcome = Outcome(
        name=file.name,
        group=document.task,
        status=status_of(verdict),
        kind=verdict if kind is None else f"{verdict} {kind}",
        message=_line(reason),
        text="\n".join(dict.fromkeys(str(p).strip() for p in parts if p)),
        seconds=document.seconds,
        file=str(file),
        torch_only=document.torch_only,
    )
    return Suite(
        name="kerneltruth check", device=device, properties={}, started="", outcomes=(outcome,)
    )


def of_run(run: Path, candidates: Path) -> Suite:
    """Return the outcomes of a run, one per attempt.

    Args:
        run: its directory.
        candidates: where its submissions were read from.
    """
    study = read_study([run])
    about = study.runs[0]
    lines = _said(run)
    return Suite(
        name="kerneltruth run",
        device=about.device,
        properties={"version": about.version, "seed": str(about.seed), "run": about.path},
        started=about.started,
        outcomes=tuple(
            _outcome(result, lines.get(result.same_as or result.key), run, candidates)
            for result in study.attempts
        ),
    )


@dataclass(frozen=True, slots=True)
class _Said:
    """The part of an attempt's line that a `Result` lacks."""

    key: str
    explanation: str = ""
    seconds: float | None = None


def _said(run: Path) -> dict[str, _Said]:
    return {said.key: said for said in RunStore.open(run, keep=_kept).results()}


def _kept(line: dict[str, Json]) -> _Said:
    key, attempt = str(line["key"]), line.get("attempt")
    if not isinstance(attempt, dict):
        return _Said(key)
    explanation, seconds = attempt.get("explanation"), attempt.get("seconds")
    return _Said(key, str(explanation or ""), seconds if isinstance(seconds, float) else None)


def _outcome(result: Result, said: _Said | None, run: Path, candidates: Path) -> Outcome:
    explanation, seconds = (said.explanation, said.seconds) if said else ("", None)
    labels = (f"{n} {v}" for n, v in (("method", result.method), ("model", result.model)) if v)
    finding = result.finding and f"finding: {run / 'findings' / result.finding}"
    parts = [result.detail, explanation, finding, *labels]
    file, line = _place(result.origin, candidates)
    return Outcome(
        name=result.key,
        group=result.task,
        status=status_of(result.verdict),
        kind=result.verdict if result.kind is None else f"{result.verdict} {result.kind}",
        message="" if result.correct else _line(explanation or result.detail),
        text="\n".join(dict.fromkeys(p.strip() for p in parts if p)),
        # A repeated source cost nothing.
        seconds=0.0 if result.same_as else seconds,
        file=file,
        line=line,
        torch_only=result.language == TORCH_ONLY,
    )


def status_of(verdict: str) -> Status:
    """Map a verdict to one of a tool's four outcomes."""
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
