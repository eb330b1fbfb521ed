"""Append-only JSON lines, each with a key and on disk before `append` returns."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar, cast

from kerneltruth.documents.model import Json, dumps, plain
from kerneltruth.errors import EnvironmentFault, InternalError, UserError
from kerneltruth.runner.regular_file import open_regular
from kerneltruth.runs.files import write_all, writing

L = TypeVar("L")
# The part of a line that stays in memory.
Keep = Callable[[dict[str, Json]], L]


class Ledger(Generic[L]):
    """A file of lines, read when made; close it, or use it in a `with`.

    A line that a crash or a full disk cut short is dropped, and its work is done again. One process
    writes at a time.

    Attributes:
        notes: what reading it reported, one line each.
    """

    def __init__(self, path: Path, *, keep: Keep[L], lines_are: str = "attempt") -> None:
        """Read the existing lines.

        `keep` returns the part of a line that stays in memory; `lines_are` is the noun for its
        content in messages.

        Raises:
            UserError: the file cannot be read, or a line before the last is damaged.
        """
        self.path = path
        self._keep = keep
        # Length of the whole lines; whatever follows is cut before appending.
        found, self._size, self.notes = _read(path, keep, lines_are)
        self._keys = {key for key, _ in found}
        self._lines = [line for _, line in found]
        self._file: int | None = None

    def __enter__(self) -> Ledger[L]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def keys(self) -> frozenset[str]:
        """Return the keys of all lines."""
        return frozenset(self._keys)

    def lines(self) -> tuple[L, ...]:
        """Return what was kept of the lines, in the order of writing."""
        return tuple(self._lines)

    def lock(self) -> None:
        """Lock the file against other processes until `close`.

        Raises:
            EnvironmentFault: another process is writing, or the file cannot be written.
        """
        with writing(self.path):
            self._opened()

    def append(self, key: str, line: object) -> None:
        """Append a line; it is on disk when this returns.

        The key must be new to the file.

        Raises:
            EnvironmentFault: the disk is full, or another process is writing.
        """
        if key in self._keys:
            raise InternalError(f"{self.path.name} has a line {key!r} already")
        record = {"key": key, **cast(dict[str, Json], plain(line))}
        data = dumps(record).encode() + b"\n"
        with writing(self.path):
            file = self._opened()
            try:
                write_all(file, data)
                os.fsync(file)
            except BaseException:
                # Never append to half a line.
                with contextlib.suppress(OSError):
                    os.ftruncate(file, self._size)
                raise
        self._size += len(data)
        self._keys.add(key)
        self._lines.append(self._keep(json.loads(data)))

    def _opened(self) -> int:
        if self._file is None:
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
            file = os.open(self.path, flags, 0o644)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self._cut(file)
            except BlockingIOError as error:
                os.close(file)
                raise EnvironmentFault(
                    f"{self.path.parent} is being written by another process; wait for it, or "
                    "name another directory with --out"
                ) from error
            except BaseException:
                os.close(file)
                raise
            self._file = file
        return self._file

    def _cut(self, file: int) -> None:
        """Drop what follows the last whole line, and end that line."""
        os.ftruncate(file, self._size)
        if self._size and os.pread(file, 1, self._size - 1) != b"\n":
            write_all(file, b"\n")
            self._size += 1


def _read(
    path: Path, keep: Keep[L], lines_are: str
) -> tuple[list[tuple[str, L]], int, tuple[str, ...]]:
    """Return the whole lines by key, how many bytes they take, and what to report.

    Raises:
        UserError: a line before the last is damaged, so results are missing.
    """
    lines: list[tuple[str, L]] = []
    position = 0
    try:
        # Line by line: the kept parts may be much smaller than the file.
        with open_regular(path) as file:
            size = os.fstat(file.fileno()).st_size
            for number, raw in enumerate(file, start=1):
                line = _parsed(raw)
                if line is None and position + len(raw) < size:
                    raise UserError(
                        f"{path}: line {number} is damaged; restore it, or delete it to make that "
                        f"{lines_are} again"
                    )
                if line is None:
                    note = (
                        f"{path}: line {number} was cut short and is dropped; its {lines_are} is "
                        "made again"
                    )
                    return lines, position, (note,)
                lines.append((cast(str, line["key"]), keep(line)))
                position += len(raw)
    except FileNotFoundError:
        return [], 0, ()
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}; check its permissions") from error
    return lines, position, ()


def _parsed(raw: bytes) -> dict[str, Json] | None:
    try:
        line = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return line if isinstance(line, dict) and isinstance(line.get("key"), str) else None
