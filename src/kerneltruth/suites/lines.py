"""Read JSON, by lines or files: a broken line is reported with its number and costs no other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from kerneltruth.documents.model import loads
from kerneltruth.errors import UserError
from kerneltruth.runner.regular_file import open_regular, read_regular
from kerneltruth.suites.submission import Broken

MAX_LINE_BYTES = 16 * 2**20
MAX_JSON_BYTES = 64 * 2**20


def json_lines(path: Path, origin: str) -> Iterator[tuple[str, dict[str, object]] | Broken]:
    """Yield the objects of a file, each with its origin `file:line`; skip blank lines.

    Raises:
        UserError: the file cannot be opened.
    """
    try:
        file = open_regular(path)
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}; name a readable file") from error
    with file:
        number = 0
        while raw := file.readline(MAX_LINE_BYTES + 1):
            number += 1
            where = f"{origin}:{number}"
            if len(raw) > MAX_LINE_BYTES:
                while raw and not raw.endswith(b"\n"):
                    raw = file.readline(MAX_LINE_BYTES)
                yield Broken(origin=where, reason=f"longer than {MAX_LINE_BYTES} bytes")
            elif raw.strip():
                yield _object(raw, where)


def _object(raw: bytes, where: str) -> tuple[str, dict[str, object]] | Broken:
    try:
        value = _parsed(raw.decode("utf-8-sig"), where)
    except UnicodeDecodeError as error:
        return Broken(origin=where, reason=f"not UTF-8 at byte {error.start}")
    return value if isinstance(value, Broken) else (where, value)


def _parsed(text: str, origin: str) -> dict[str, object] | Broken:
    try:
        value = loads(text)
    except ValueError as error:
        return Broken(origin=origin, reason=f"not JSON: {error}")
    if not isinstance(value, dict):
        return Broken(origin=origin, reason=f"not an object but {type(value).__name__}")
    return value


def read_text(path: Path, origin: str, *, limit: int) -> str | Broken:
    """Read a text file up to a size, or return why it cannot be read."""
    try:
        return read_regular(path, most=limit).decode("utf-8-sig")
    except OSError as error:
        return Broken(origin=origin, reason=f"cannot be read: {error.strerror}")
    except UnicodeDecodeError as error:
        return Broken(origin=origin, reason=f"not UTF-8 at byte {error.start}")


def json_object(path: Path, origin: str) -> dict[str, object] | Broken:
    """Read the JSON object in a file, or return why there is none."""
    text = read_text(path, origin, limit=MAX_JSON_BYTES)
    return text if isinstance(text, Broken) else _parsed(text, origin)
