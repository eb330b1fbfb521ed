"""`read_submissions`: whatever a user points at, recognized by its form."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from kerneltruth.errors import UserError
from kerneltruth.importers import kernelbench_runs
from kerneltruth.importers.lines import read_text
from kerneltruth.importers.predictions import read_predictions
from kerneltruth.importers.replies import code_of
from kerneltruth.importers.submission import MAX_SOURCE_BYTES, Broken, Read, Submission

_PASSED_OVER = {"__init__.py", "conftest.py", "setup.py"}


def read_submissions(path: Path) -> Iterator[Read]:
    """Every submission at a path: a file, a KernelBench run directory, or a folder of either.

    Files of a folder come in the order of their names, below folders of model or method names too.

    Raises:
        UserError: there is nothing there, or nothing of a known form.
    """
    if path.is_dir():
        yield from _folder(path, "")
    elif path.is_file():
        yield from _file(path, path.name)
    else:
        raise UserError(f"--candidates {path}: there is no such file or folder")


def _folder(folder: Path, origin: str) -> Iterator[Read]:
    if kernelbench_runs.is_run(folder):
        yield from kernelbench_runs.read_run(folder, origin)
        return
    for path in sorted(folder.iterdir(), key=lambda p: p.name):
        if path.name.startswith((".", "__pycache__")) or path.name in _PASSED_OVER:
            continue
        if path.is_dir():
            yield from _folder(path, f"{origin}{path.name}/")
        elif path.suffix in (".py", ".jsonl", ".json"):
            yield from _file(path, f"{origin}{path.name}")


def _file(path: Path, origin: str) -> Iterator[Read]:
    match path.suffix:
        case ".py":
            yield _source_file(path, origin)
        case ".jsonl":
            yield from read_predictions(path, origin)
        case ".json":
            yield from kernelbench_runs.read_submission(path, origin)
        case suffix:
            reason = f"{suffix or 'no suffix'}: known are .py, .jsonl and .json"
            yield Broken(origin=origin, reason=reason)


def _source_file(path: Path, origin: str) -> Read:
    text = read_text(path, origin, limit=MAX_SOURCE_BYTES)
    if isinstance(text, Broken):
        return text
    return Submission(origin=origin, name=path.stem, source=code_of(text))
