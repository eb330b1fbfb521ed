"""An append-only file of JSON lines with a key each, on disk before anyone relies on them."""

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
from kerneltruth.runs.files import write_all, writing

L = TypeVar("L")
# What of a line stays in memory.
Keep = Callable[[dict[str, Json]], L]


class Ledger(Generic[L]):
    """A file of lines, read when made; close it, or use it in a `with`.

    A line that was cut short, by a crash or a full disk, is dropped: what it stood for is done
    again. One process writes at a time.

    Attributes:
        path: the file; it need not exist.
        notes: what reading it had to report, one line each.
    """

    def __init__(self, path: Path, *, keep: Keep[L], lines_are: str = "attempt") -> None:
        """Read what is there.

        Args:
            path: the file.
            keep: what of each line stays in memory.
            lines_are: what a line stands for, as messages call it.

        Raises:
            UserError: it cannot be read, or a line before the last is damaged.
        """
        self.path = path
        self._keep = keep
        # Bytes that hold whole lines; what lies beyond is cut before appending.
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
        """The keys of all lines."""
        return frozenset(self._keys)

    def lines(self) -> tuple[L, ...]:
        """What was kept of the lines, in the order of writing."""
        return tuple(self._lines)

    def lock(self) -> None:
        """Keep other processes from writing, from now until `close`.

        Raises:
            EnvironmentFault: another one is writing, or it cannot be written.
        """
        with writing(self.path):
            self._opened()

    def append(self, key: str, line: object) -> None:
        """Add a line, on disk when this returns.

        Args:
            key: no other line may have it.
            line: a model, or a mapping.

        Raises:
            EnvironmentFault: no space, or another process is writing.
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
                # Half a line must not be glued to the next one.
                with contextlib.suppress(OSError):
                    os.ftruncate(file, self._size)
                raise
        self._size += len(data)
        self._keys.add(key)
        self._lines.append(self._keep(json.loads(data)))

    def _opened(self) -> int:
        if self._file is None:
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
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
    """The whole lines with their keys, how many bytes they take, and what to report.

    Raises:
        UserError: a line before the last is damaged, so that something is missing.
    """
    lines: list[tuple[str, L]] = []
    position = 0
    try:
        # Line by line: what is kept of a large file may be much less than the file.
        with path.open("rb") as file:
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
