"""Read submissions from any path; `read_submissions` recognizes the form."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from kerneltruth.errors import UserError
from kerneltruth.suites import generations, kernelbench_runs
from kerneltruth.suites.flashinfer import solution as flashinfer
from kerneltruth.suites.flashinfer.definition import Definition
from kerneltruth.suites.flashinfer.surroundings import ReferenceSurroundings
from kerneltruth.suites.lines import json_object, read_text
from kerneltruth.suites.predictions import read_predictions
from kerneltruth.suites.replies import code_of
from kerneltruth.suites.submission import MAX_SOURCE_BYTES, Broken, Read, Submission

_PASSED_OVER = {"__init__.py", "conftest.py", "setup.py"}


def read_submissions(
    path: Path, *, definitions: Mapping[str, Definition] | None = None
) -> Iterator[Read]:
    """Yield every submission at a path: a file, a peer's run or data set, or a folder of these.

    Files of a folder come in the order of their names, below folders of model or method names too.
    Solutions of FlashInfer-Bench need their definitions: the given ones, else those of the data set
    around them, which also provides the peer's verdicts.

    Raises:
        UserError: nothing is there, or nothing of a known form.
    """
    reader = _Reader(ReferenceSurroundings(path, definitions))
    if path.is_dir():
        yield from reader.folder(path, "")
    elif path.is_file():
        yield from reader.file(path, path.name)
    else:
        raise UserError(f"--candidates {path}: there is no such file or folder; name one")
    yield from reader.around.broken


def is_passed_over(name: str) -> bool:
    """Return whether a file or folder of this name holds no candidates."""
    return name.startswith((".", "__pycache__")) or name in _PASSED_OVER


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads by form; `around` is what solutions of FlashInfer-Bench need in addition."""

    around: ReferenceSurroundings

    def folder(self, folder: Path, origin: str) -> Iterator[Read]:
        if generations.is_generation(folder):
            yield from generations.read_generation(folder, origin)
            return
        if kernelbench_runs.is_run(folder):
            yield from kernelbench_runs.read_run(folder, origin)
            return
        if flashinfer.is_data_set(folder):
            yield from self.folder(folder / flashinfer.FOLDER, f"{origin}{flashinfer.FOLDER}/")
            return
        for path in sorted(folder.iterdir(), key=lambda p: p.name):
            if is_passed_over(path.name):
                continue
            if path.is_dir():
                # A link within the folder may lead back to it.
                if not path.is_symlink():
                    yield from self.folder(path, f"{origin}{path.name}/")
            elif path.is_file() and path.suffix in (".py", ".jsonl", ".json"):
                yield from self.file(path, f"{origin}{path.name}")

    def file(self, path: Path, origin: str) -> Iterator[Read]:
        match path.suffix:
            case ".py" if kernelbench_runs.names_problem(path):
                folder = origin.removesuffix(path.name)
                yield from kernelbench_runs.read_files([path], path.parent, folder)
            case ".py":
                yield _source_file(path, origin)
            case ".jsonl":
                yield from read_predictions(path, origin)
            case ".json":
                yield from self._object(path, origin)
            case suffix:
                reason = f"{suffix or 'no suffix'}: must be .py, .jsonl or .json"
                yield Broken(origin=origin, reason=reason)

    def _object(self, path: Path, origin: str) -> Iterator[Read]:
        data = json_object(path, origin)
        if isinstance(data, Broken):
            yield data
        elif flashinfer.is_solution(data):
            yield flashinfer.read_solution(
                data, origin, self.around.definitions, self.around.verdicts
            )
        else:
            yield from kernelbench_runs.read_submission(data, origin)


def _source_file(path: Path, origin: str) -> Read:
    text = read_text(path, origin, limit=MAX_SOURCE_BYTES)
    if isinstance(text, Broken):
        return text
    return Submission(origin=origin, name=path.stem, source=code_of(text))
