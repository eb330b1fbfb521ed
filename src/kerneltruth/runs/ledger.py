"""Append-only JSON lines, each with a key and on disk before `append` returns.

Each line ends with a digest of itself and of all lines before it, which reveals later changes.
Lines of earlier versions have no digest, and may only come first.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

from kerneltruth.documents.model import Json, dumps, loads, plain
from kerneltruth.errors import EnvironmentFault, InternalError, UserError
from kerneltruth.runner.regular_file import MOST_BYTES, open_regular
from kerneltruth.runs.files import write_all, writing

L = TypeVar("L")
# The part of a line that stays in memory.
Keep = Callable[[Any], L]
_CHAIN = re.compile(rb',"chain":"([0-9a-f]{32})"\}\n?\Z')


class Ledger(Generic[L]):
    """A file of lines, read when made; close it, or use it in a `with`.

    A line that a crash or a full disk cut short is dropped, and its work is done again. One process
    writes at a time.

    Attributes:
        notes: what reading it reported, one line each.
    """

    def __init__(
        self, path: Path, *, keep: Keep[L], form: Any = Any, lines_are: str = "attempt"
    ) -> None:
        """Read the existing lines.

        `keep` returns the part of a line that stays in memory. It gets a line as `form`, a model
        with a `key`, and as a dict without a form or where the line is not of it. `lines_are` is
        the noun for the content of lines in messages.

        Raises:
            UserError: the file cannot be read, a line before the last is damaged, or one was
                changed, added or left out.
        """
        self.path = path
        self._keep = keep
        # Length of the whole lines; whatever follows is cut before appending.
        found = _read(path, keep, form, lines_are)
        self._size, self._chain, self.notes = found.size, found.chain, found.notes
        self._keys = {key for key, _ in found.lines}
        self._lines = [line for _, line in found.lines]
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
        bare = dumps(record).encode()
        chain = _digest(self._chain, bare)
        data = bare[:-1] + f',"chain":"{chain}"}}\n'.encode()
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
        self._chain = chain
        self._keys.add(key)
        self._lines.append(self._keep(json.loads(bare)))

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


def _digest(before: str, bare: bytes) -> str:
    """Return the digest of a line without its own, after that of the line before it."""
    return hashlib.sha256(before.encode() + bare).hexdigest()[:32]


@dataclass(slots=True)
class _Found(Generic[L]):
    """The whole lines by key, how many bytes they take, their digest, and what to report."""

    lines: list[tuple[str, L]] = field(default_factory=list)
    size: int = 0
    chain: str = ""
    notes: tuple[str, ...] = ()


def _read(path: Path, keep: Keep[L], form: Any, lines_are: str) -> _Found[L]:
    """Read the whole lines.

    Raises:
        UserError: a line before the last is damaged, or one is not as it was written.
    """
    found, chained = _Found[L](), False
    try:
        # Line by line: the kept parts may be much smaller than the file.
        with open_regular(path) as file:
            size = os.fstat(file.fileno()).st_size
            lines = iter(partial(file.readline, MOST_BYTES), b"")
            for number, raw in enumerate(lines, start=1):
                line = _parsed(raw, form)
                again = f"delete it and all lines after it to make each {lines_are} again"
                if line is None and found.size + len(raw) < size:
                    raise UserError(f"{path}: line {number} is damaged; restore it, or {again}")
                if line is None:
                    note = (
                        f"{path}: line {number} was cut short and is dropped; its {lines_are} is "
                        "made again"
                    )
                    found.notes = (note,)
                    return found
                end = _CHAIN.search(raw)
                bare = raw.rstrip(b"\n") if end is None else raw[: end.start()] + b"}"
                found.chain = _digest(found.chain, bare)
                if chained if end is None else end[1].decode() != found.chain:
                    raise UserError(
                        f"{path}: line {number} was changed or added after it was written, or an "
                        f"earlier line was removed; restore the file, or {again}"
                    )
                chained = chained or end is not None
                if isinstance(line, dict):
                    line.pop("chain", None)
                found.lines.append((_key(line), keep(line)))
                found.size += len(raw)
    except FileNotFoundError:
        return found
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}; check its permissions") from error
    return found


def _parsed(raw: bytes, form: Any) -> Any:
    """Return a line as `keep` gets it; None if it is damaged."""
    try:
        line = loads(raw, form=form)
    except ValueError:
        return None
    return line if isinstance(_key(line), str) else None


def _key(line: Any) -> Any:
    return line.get("key") if isinstance(line, dict) else getattr(line, "key", None)
