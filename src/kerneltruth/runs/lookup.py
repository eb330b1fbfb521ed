"""Find a stored finding by its ID, in the runs at hand."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from kerneltruth.errors import UserError
from kerneltruth.runs.files import run_parents

_MOST_NAMED = 4


def located(given: Path, run: Path | None = None) -> Path:
    """Return the path that an argument means: itself if it is there, else the finding of that ID.

    The beginning of an ID is enough if it is unique. The same finding of several
    runs is taken from the newest.

    Args:
        given: a path, or an ID.
        run: the run, or the folder of runs, to search; None means those of `run_parents`.

    Raises:
        UserError: no finding has that ID, or several begin so; or there is no folder `run`.
    """
    if run is not None and not run.is_dir():
        raise UserError(f"--run {run}: there is no such folder; name a run, or a folder of runs")
    if given.name != str(given) or given.exists():
        return given
    beginning = given.name.removesuffix(".json")
    searched = run_parents() if run is None else (run,)
    known = _findings(searched)
    exact = known.get(beginning)
    if exact is not None:
        return exact
    found = [name for name in known if name.startswith(beginning)]
    if not found:
        where = " and ".join(map(str, searched))
        raise UserError(
            f"{given}: neither a file nor the ID of one of the {len(known)} findings in {where}; "
            "name its run with --run, or give its path"
        )
    if len(found) > 1:
        named = ", ".join(sorted(found)[:_MOST_NAMED])
        more = f" and {len(found) - _MOST_NAMED} more" if len(found) > _MOST_NAMED else ""
        raise UserError(
            f"{given}: {len(found)} findings match ({named}{more}); give more of the ID"
        )
    return known[found[0]]


def _findings(searched: Sequence[Path]) -> dict[str, Path]:
    """Return the files of findings by ID, each of the newest run that holds it."""
    files = [file for run in _runs(searched) for file in (run / "findings").glob("*.json")]
    return {file.stem: file for file in sorted(files, key=lambda file: file.stat().st_mtime_ns)}


def _runs(searched: Sequence[Path]) -> Iterator[Path]:
    """Yield the user's own runs: a folder of temporary files may hold those of anybody."""
    for folder in searched:
        below = sorted(folder.iterdir()) if folder.is_dir() else []
        for run in (folder, *below):
            if (run / "findings").is_dir() and run.stat().st_uid == os.getuid():
                yield run
