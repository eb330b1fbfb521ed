"""Define what all models share: strict reading, exact writing, and updates by schema.

NaN and infinities are kept; null means "not measured" only. JSON has no place for non-finite
numbers, so a `Number` is written as "NaN", "Infinity" or "-Infinity" where it is one.
"""

from __future__ import annotations

import hashlib
import json
import math
import typing
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import TYPE_CHECKING, TypeVar

import msgspec

from kerneltruth import __version__
from kerneltruth.errors import InternalError, UserError

SCHEMA = 2
# What reading a document may take beside its text; one of a run, whose seal takes a copy of it.
VALUES, VALUES_OF_RUN = 200 * 2**20, 80 * 2**20
# What a value takes at most: a dict of one key, with its place in what holds it; a short text.
CONTAINER, ITEM = 200, 64
NON_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}

T = TypeVar("T")
# Turns a document of one schema into one of the next.
Update = Callable[[dict[str, object]], dict[str, object]]
UPDATES: dict[int, Update] = {
    # Documents of schema 1 lack what schema 2 adds; it is shown as missing.
    1: dict,
}

if TYPE_CHECKING:
    Number = float
    Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
else:

    class _AnyNumber(type):
        def __instancecheck__(cls, value: object) -> bool:
            return isinstance(value, int | float) and not isinstance(value, bool)

    class Number(metaclass=_AnyNumber):
        """A float that may be NaN or infinite. Values are plain floats: this only names them."""

    class _AnyJson(type):
        def __instancecheck__(cls, value: object) -> bool:
            waiting = [value]
            while waiting:
                match waiting.pop():
                    case list(items):
                        waiting += items
                    case dict(fields) if all(isinstance(name, str) for name in fields):
                        waiting += fields.values()
                    case None | str() | int() | float():
                        pass
                    case _:
                        return False
            return True

    class Json(metaclass=_AnyJson):
        """Any of JSON's own types, to any depth: msgspec has no type that contains itself."""


class Model(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of a document: it refuses unknown keys."""


class Stored(msgspec.Struct, frozen=True, kw_only=True):
    """A file of a run: keys that a later release of the same schema added are ignored."""


def model_of(kind: type[T], value: object, /, **fields: object) -> T:
    """Make a model from an object with attributes of the same names, such as a dataclass.

    `fields` are those that the object lacks, or has in another form.

    Raises:
        ValueError: an attribute is missing or of the wrong type, which is our mistake.
    """
    if fields:
        # Fifty times as fast as `msgspec.structs.fields`, which evaluates annotations.
        names = kind.__struct_fields__  # type: ignore[attr-defined]
        own = {name: getattr(value, name) for name in names if hasattr(value, name)}
        value = SimpleNamespace(**own | fields)
    return msgspec.convert(value, kind, from_attributes=True, dec_hook=_read_special)


def parse(kind: type[T], data: object) -> T:
    """Read a model from JSON's own types.

    Raises:
        UserError: a key is missing or unknown, or a value has the wrong type; the message says
            where.
    """
    try:
        return msgspec.convert(data, kind, dec_hook=_read_special)
    except (msgspec.ValidationError, ValueError, InternalError) as error:
        # The name of a key may hold line breaks.
        reason = " ".join(str(error).split())
        raise UserError(f"no valid {_name(kind)}: {reason}") from error


def loads(
    text: str | bytes | bytearray, *, most: int = VALUES, form: typing.Any = typing.Any
) -> typing.Any:
    """Read the JSON that anyone may have written.

    `most` is how many bytes its values may take. With a `form`, text of it is read as a model,
    which leaves out what the model does not name; other text is read as JSON's own types.

    Raises:
        ValueError: it is none, or takes far more memory than its text.
    """
    signs = ("[", "{", ",") if isinstance(text, str) else (b"[", b"{", b",")
    lists, objects, items = (text.count(sign) for sign in signs)  # type: ignore[arg-type]
    if (lists + objects) * CONTAINER + items * ITEM > most:
        raise ValueError(f"it holds over {most >> 20} MiB of values")
    try:
        try:
            # It takes a third of the time, and refuses what only Python's JSON has, such as NaN.
            # What it leaves out, it does not check to be UTF-8.
            return msgspec.json.decode(text, type=form if text.isascii() else typing.Any)
        except (msgspec.MsgspecError, UnicodeError):
            return json.loads(text)
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error


def plain(value: object) -> Json:
    """Turn a model, a dataclass or a container into JSON's own types."""
    return _finite(msgspec.to_builtins(value, enc_hook=_as_builtin))


def dumps(value: object, *, indent: int | None = None) -> str:
    """Return one JSON document, with keys as declared and no bare NaN."""
    separators = (",", ":") if indent is None else None
    return json.dumps(plain(value), indent=indent, separators=separators, allow_nan=False)


def content_hash(value: object) -> str:
    """Return the sha256 of a value's canonical JSON."""
    text = json.dumps(plain(value), sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def updated(
    data: Mapping[str, object],
    what: str,
    *,
    newest: int = SCHEMA,
    updates: Mapping[int, Update] = UPDATES,
) -> dict[str, object]:
    """Update a document of an older schema to the newest one, step by step.

    Raises:
        UserError: no schema number, or a newer one; the message names the next step.
    """
    schema = data.get("schema")
    if type(schema) is not int or schema < 1:
        raise UserError(
            f"{what} has no schema number, a whole number from 1 (found {schema!r:.40}); give the "
            "file as kerneltruth wrote it"
        )
    if schema > newest:
        writer = data.get("version")
        by = f" by kerneltruth {' '.join(writer.split()):.40}" if isinstance(writer, str) else ""
        raise UserError(
            f"{what} was written{by} with schema {schema!r:.40}, and kerneltruth {__version__} "
            f"reads up to {newest}; upgrade kerneltruth"
        )
    document = dict(data)
    for step in range(schema, newest):
        document = {**updates[step](document), "schema": step + 1}
    return document


def _finite(value: object) -> Json:
    match value:
        case float() if not math.isfinite(value):
            return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
        case dict():
            return {str(name): _finite(each) for name, each in value.items()}
        case list() | tuple():
            return [_finite(each) for each in value]
    return typing.cast(Json, value)


def _as_builtin(value: object) -> object:
    """Convert types that msgspec refuses: other mappings, subclasses of str, int and float."""
    match value:
        case Mapping():
            return dict(value)
        case str():
            return str.__str__(value)
        case int():
            return int(value)
        case float():
            return float(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


def _read_special(kind: type, value: object) -> object:
    if kind is Number and isinstance(value, str):
        if value not in NON_FINITE:
            raise ValueError(f"Expected a number, got {value!r:.40}")
        return NON_FINITE[value]
    return value


def _name(kind: object) -> str:
    name = str(getattr(kind, "__name__", kind))
    for suffix in ("Record", "Document", "Part"):
        name = name.removesuffix(suffix)
    return name.lower()
