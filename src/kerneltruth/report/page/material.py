"""`report`: read what a page is made of from runs, and write the page."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast, get_args

from kerneltruth.analysis.reading import KeptAnswer, Study, read_study
from kerneltruth.analysis.results import Result
from kerneltruth.analysis.selection import ALL, Selection
from kerneltruth.documents.stored import Finding
from kerneltruth.errors import UserError
from kerneltruth.runs.files import write_whole, writing
from kerneltruth.runs.findings import load_finding

# Sources beyond this are not read: the page would not hold them, compressed as they are.
MOST_SOURCE_BYTES = 256 * 2**20
MOST_SCRIPT_BYTES = 2**17
MOST_NOTES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class PageMaterial:
    """What lies in runs: their results, findings and sources.

    Attributes:
        findings: by run number and file name; likewise `scripts`, which `minimize` wrote.
        sources: by hash; those of findings, and of the rounds before them, come first.
    """

    study: Study
    findings: dict[tuple[int, str], Finding]
    sources: dict[str, str]
    notes: tuple[str, ...]
    scripts: dict[tuple[int, str], str] = field(default_factory=dict)


def check_out(out: Path) -> None:
    """Refuse a place for the page before any work is done.

    Raises:
        UserError: it is a folder, or lies in one that is not there.
    """
    if out.is_dir():
        raise UserError(f"--out {out}: it is a folder; name a file, such as {out}/report.html")
    if not out.absolute().parent.is_dir():
        raise UserError(f"--out {out}: there is no folder {out.parent}; make it first")


def collect(paths: Iterable[Path], *, kept: str = "best", only: Selection = ALL) -> PageMaterial:
    """Read runs, with the findings and sources of the attempts that `only` selects.

    Raises:
        UserError: no run at a path, a damaged one, or no such choice of rounds or obligation.
    """
    study = read_study(tuple(paths), kept=_kept(kept), only=only)
    findings, unread = _findings(study)
    sources, missing = _sources(study)
    if (more := len(unread) - MOST_NOTES) > 0:
        unread[MOST_NOTES:] = [f"{more} more findings cannot be read"]
    return PageMaterial(
        study=study,
        findings=findings,
        sources=sources,
        scripts=_scripts(study, findings),
        notes=(*unread, *missing),
    )


def _kept(said: str) -> KeptAnswer:
    for known in get_args(KeptAnswer):
        if said == known:
            return cast(KeptAnswer, known)
    raise UserError(f"--keep {said}: must be {' or '.join(get_args(KeptAnswer))}")


def _findings(study: Study) -> tuple[dict[tuple[int, str], Finding], list[str]]:
    """Read the findings that results name; return also why others cannot be read."""
    found: dict[tuple[int, str], Finding] = {}
    unread: list[str] = []
    for run, name in dict.fromkeys((r.run, r.finding) for r in study.attempts if r.finding):
        assert name is not None
        # A name with a folder in it would lead out of the run.
        path = Path(study.runs[run].path) / "findings" / Path(name).name
        try:
            found[run, name] = load_finding(path)
        except UserError as error:
            unread.append(str(error))
    return found, unread


def _scripts(study: Study, findings: Iterable[tuple[int, str]]) -> dict[tuple[int, str], str]:
    """Read the scripts that lie beside findings."""
    found: dict[tuple[int, str], str] = {}
    for run, name in findings:
        path = (Path(study.runs[run].path) / "findings" / Path(name).name).with_suffix(".py")
        if path.is_file() and path.stat().st_size <= MOST_SCRIPT_BYTES:
            found[run, name] = path.read_bytes().decode("utf-8", "replace")
    return found


def _sources(study: Study) -> tuple[dict[str, str], list[str]]:
    """Read the sources, those of findings first; return also notes on the others."""
    found: dict[str, str] = {}
    missing = unread = size = 0
    for result in sorted(study.attempts, key=_least_wanted(study)):
        if result.sha256 in found or not result.sha256:
            continue
        if size > MOST_SOURCE_BYTES:
            unread += 1
            continue
        name = f"{Path(result.sha256).name}.py"
        try:
            data = (Path(study.runs[result.run].path) / "candidates" / name).read_bytes()
        except OSError:
            missing += 1
            continue
        size += len(data)
        found[result.sha256] = data.decode("utf-8", "replace")
    notes = [f"{missing} sources are not in their runs' folders `candidates`"] if missing else []
    if unread:
        notes.append(f"{unread} sources are not read: the page would not hold them")
    return found, notes


def _least_wanted(study: Study) -> Callable[[Result], tuple[bool, str, str, int, int]]:
    """Return a sort key: sources of findings, then rounds of answers, then others.

    Sources of one task lie together, since they compress best beside each other.
    """
    wrong = {(r.run, r.task, r.method, r.model, r.sample) for r in study.attempts if r.finding}

    def key(result: Result) -> tuple[bool, str, str, int, int]:
        answer = (result.run, result.task, result.method, result.model, result.sample)
        wanted = result.finding is not None or (result.round is not None and answer in wrong)
        who = f"{result.model} {result.method}"
        return not wanted, result.task, who, result.sample or 0, result.round or 0

    return key


def write_page(out: Path, text: str) -> int:
    """Write the page, whole or not at all; returns its bytes.

    Raises:
        EnvironmentFault: it cannot be written.
    """
    # Half characters have no bytes; everything else of a candidate's text does.
    data = text.encode("utf-8", "replace")
    with writing(out):
        write_whole(out, data)
    return len(data)
