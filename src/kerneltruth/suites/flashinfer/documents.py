"""Read fields of JSON objects, with a reason if they are not what they must be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeVar

from kerneltruth.suites.lines import json_lines
from kerneltruth.suites.submission import Broken

T = TypeVar("T")


class Malformed(Exception):
    """A document does not follow the schema; the message says where."""


def field(data: Mapping[str, object], name: str, kind: type[T]) -> T:
    """Return a required field.

    Raises:
        Malformed: it is missing, or of another type.
    """
    if name not in data:
        raise Malformed(f"`{name}` is missing")
    value = data[name]
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise Malformed(f"`{name}` must be {_called(kind)}, got {type(value).__name__}")
    return value


def optional(data: Mapping[str, object], name: str, kind: type[T], default: T) -> T:
    """Return a field that may be missing or null.

    Raises:
        Malformed: it is of another type.
    """
    return default if data.get(name) is None else field(data, name, kind)


def _called(kind: type) -> str:
    names: dict[type, str] = {dict: "an object", list: "an array", str: "text", int: "an integer"}
    return names.get(kind, kind.__name__)


def files(folder: Path, pattern: str) -> Iterator[tuple[Path, str]]:
    """Return the files below a folder by name, each with its name in messages."""
    if folder.is_dir():
        for path in sorted(folder.rglob(pattern)):
            yield path, f"{folder.name}/{path.relative_to(folder)}"


def lines_below(folder: Path) -> Iterator[tuple[str, dict[str, object]] | Broken]:
    """Yield the objects in the JSON lines below a folder, each with its origin."""
    for path, origin in files(folder, "*.jsonl"):
        yield from json_lines(path, origin)
