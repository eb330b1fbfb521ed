"""What was not right in the last run of the same candidates, for `run --lf`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from kerneltruth.documents.model import parse, updated
from kerneltruth.documents.records import Manifest
from kerneltruth.engine.outcomes import ListedLine, listed
from kerneltruth.errors import UserError
from kerneltruth.runs.files import read_json
from kerneltruth.runs.store import RunStore

FOLDER = Path("runs")


def last_failed(candidates: Path, folder: Path = FOLDER) -> frozenset[str]:
    """Return the origins of candidates that did not pass in the newest run of these candidates.

    Raises:
        UserError: there is no such run.
    """
    found = max(_runs_of(candidates, folder), default=None)
    if found is None:
        raise UserError(f"--lf: there is no run of {candidates} in {folder}/; run without --lf")
    with RunStore.open(found[1], keep=ListedLine.of) as run:
        failed = [c.name for c in listed(run.results()) if c.verdict != "pass"]
    return frozenset(name.rpartition("@")[0] for name in failed)


def _runs_of(candidates: Path, folder: Path) -> Iterator[tuple[str, Path]]:
    wanted = candidates.resolve()
    for path in folder.glob("*/run.json"):
        manifest = _manifest(path)
        if manifest is None or manifest.arguments[:1] != ("run",):
            continue
        if any(Path(argument).resolve() == wanted for argument in manifest.arguments[2:]):
            yield manifest.started, path.parent


def _manifest(path: Path) -> Manifest | None:
    """Return a run's manifest; None for one that this version cannot read."""
    try:
        data = read_json(path)
        return parse(Manifest, updated(data, str(path))) if isinstance(data, dict) else None
    except UserError:
        return None
