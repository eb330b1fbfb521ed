"""Read KernelBench's problems from a checkout or a data file."""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from kerneltruth.errors import UserError
from kerneltruth.runner.child.pretrained import NEEDED
from kerneltruth.suites.kernelbench.problem import Problem, broken_problem, problem_of
from kerneltruth.suites.submission import MAX_SOURCE_BYTES

_FILE = re.compile(r"^(\d+)_(.+)\.py$")
_FOLDER = re.compile(r"^level(\d+)$")
_COLUMNS = ("code", "level", "problem_id")


def read_problems(path: Path) -> dict[str, Problem]:
    """The problems at a path, by name in the order of their numbers.

    Args:
        path: a problem file, a folder `levelN`, a checkout with such folders, or a data file
            (`.parquet`, `.jsonl`) with the columns `code`, `level` and `problem_id`. A file outside
            of a level's folder has level 0.

    Raises:
        UserError: nothing is there, or nothing that is a problem.
    """
    if path.is_dir():
        found = list(_folder(path))
    elif not path.is_file():
        raise UserError(
            f"--suite kernelbench:{path}: there is no such file or folder; name a checkout"
        )
    elif path.suffix == ".parquet":
        found = [_row(row, i, path) for i, row in enumerate(_parquet(path), 1)]
    elif path.suffix in (".jsonl", ".json"):
        found = [_row(row, i, path) for i, row in _json_rows(path)]
    else:
        found = [p for p in (_file(path, level=0),) if p is not None]
    if not found:
        raise UserError(
            f"--suite kernelbench:{path}: no problems there: neither folders level1, level2, ... "
            "with files like 12_Name.py, nor one such file, nor a .parquet or .jsonl file of them"
        )
    found = [_with_library(p) for p in found]
    return {p.name: p for p in sorted(found, key=lambda p: (p.level, p.number))}


def _with_library(problem: Problem) -> Problem:
    """Return a problem that says so if it needs a library that is not installed."""
    if not problem.pretrained or importlib.util.find_spec("transformers") is not None:
        return problem
    return replace(problem, trouble=problem.trouble or NEEDED)


def _folder(path: Path) -> Iterator[Problem]:
    """Return the problems of a folder: a level, or one with levels in it or in `KernelBench/`."""
    for folder in (path, *sorted(path.glob("level*")), *sorted(path.glob("KernelBench/level*"))):
        if folder.is_dir() and _FOLDER.match(folder.name):
            for file in folder.iterdir():
                problem = _file(file)
                if problem is not None:
                    yield problem


def _file(path: Path, *, level: int | None = None) -> Problem | None:
    """Return the problem of a file; `level` is for a file outside of a level's folder."""
    named, folder = _FILE.match(path.name), _FOLDER.match(path.parent.name)
    level = level if folder is None else int(folder[1])
    if named is None or level is None:
        return None
    try:
        source = path.read_bytes()[: MAX_SOURCE_BYTES + 1].decode("utf-8-sig")
    except OSError as error:
        raise UserError(_unreadable(path, error)) from error
    except UnicodeDecodeError as error:
        return broken_problem(level, int(named[1]), named[2], f"not UTF-8 at byte {error.start}")
    return problem_of(level, int(named[1]), named[2], source)


def _unreadable(path: Path, error: OSError) -> str:
    return f"cannot read {path}: {error.strerror}; make it readable"


def _row(row: Mapping[str, object], line: int, path: Path) -> Problem:
    missing = [c for c in _COLUMNS if c not in row]
    if missing:
        raise UserError(
            f"--suite kernelbench:{path}: row {line} has no {', '.join(missing)}; "
            f"a KernelBench data file has {', '.join(_COLUMNS)} and name"
        )
    try:
        level, number = _whole(row["level"]), _whole(row["problem_id"])
    except (TypeError, ValueError) as error:
        raise UserError(f"--suite kernelbench:{path}: row {line}: {error}") from error
    title = re.sub(r"^\d+_|\.py$", "", str(row.get("name") or number))
    return problem_of(level, number, title, str(row["code"]))


def _whole(value: object) -> int:
    if isinstance(value, int | float | str):
        return int(value)
    raise TypeError(f"{value!r:.40} is no number; give a whole one")


def _parquet(path: Path) -> list[dict[str, object]]:
    try:
        from pyarrow import ArrowInvalid, parquet
    except ImportError as error:
        raise UserError(
            f"--suite kernelbench:{path}: reading .parquet needs pyarrow; pip install pyarrow, "
            "or name a checkout or a .jsonl file"
        ) from error
    try:
        rows: list[dict[str, object]] = parquet.read_table(path).to_pylist()
    except (ArrowInvalid, OSError) as error:
        said = str(error).splitlines()[0]
        raise UserError(f"--suite kernelbench:{path}: not a parquet file: {said}") from error
    return rows


def _json_rows(path: Path) -> Iterator[tuple[int, dict[str, object]]]:
    try:
        text = path.read_text("utf-8-sig", errors="replace")
    except OSError as error:
        raise UserError(_unreadable(path, error)) from error
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            said = f"line {number} is not JSON: {error}"
            raise UserError(f"--suite kernelbench:{path}: {said}") from error
        if not isinstance(row, dict):
            raise UserError(
                f"--suite kernelbench:{path}: line {number} is not a JSON object; correct that line"
            )
        yield number, row
