"""Dataclasses to JSON and back. NaN and infinities are kept; null means "not measured" only.

Non-finite floats become the strings "NaN", "Infinity" and "-Infinity", since JSON has no other
place for them. Reading is driven by the dataclass's annotations, so a float field turns them back.
Tuples of (name, value) pairs stay lists of pairs: their order matters.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import types
import typing
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, TypeVar, Union

from kerneltruth.errors import InternalError, UserError

T = TypeVar("T")

_NON_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def plain(value: Any) -> Any:
    """Turn a value into JSON's own types."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(v) for v in (sorted(value) if isinstance(value, set | frozenset) else value)]
    raise TypeError(f"{type(value).__name__} has no JSON form")


def dumps(value: Any, *, indent: int | None = None) -> str:
    """One JSON document, with sorted keys left as declared and no bare NaN."""
    separators = (",", ":") if indent is None else None
    return json.dumps(plain(value), indent=indent, separators=separators, allow_nan=False)


def build(kind: type[T], data: Any, parse: Mapping[str, Callable[[Any], Any]] | None = None) -> T:
    """Rebuild a dataclass from what `plain` made.

    Args:
        kind: the dataclass.
        data: its JSON form.
        parse: for fields whose JSON form is not that of `plain`, how to read them.

    Raises:
        UserError: a key is missing or unknown, or a value has the wrong type.
    """
    try:
        return typing.cast(T, _build_dataclass(kind, data, parse or {}))
    except (TypeError, ValueError, KeyError, InternalError) as error:
        raise UserError(f"not a {kind.__name__}: {error}") from error


@cache
def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _build(hint: Any, data: Any) -> Any:
    origin = typing.get_origin(hint)
    if hint is Any or hint is None:
        return data
    if hint is float:
        return _NON_FINITE[data] if isinstance(data, str) else float(data)
    if origin is tuple:
        return _build_tuple(typing.get_args(hint), data)
    if origin in (dict, Mapping, typing.get_origin(Mapping[str, int])):
        inner = typing.get_args(hint)[1]
        if not isinstance(data, Mapping):
            raise TypeError(f"expected an object, got {data!r:.80}")
        return {k: _build(inner, v) for k, v in data.items()}
    if origin in (Union, types.UnionType):
        return _build_union(typing.get_args(hint), data)
    if dataclasses.is_dataclass(hint):
        return _build_dataclass(typing.cast(type, hint), data, {})
    if isinstance(hint, type) and not isinstance(data, hint):
        raise TypeError(f"expected {hint.__name__}, got {data!r:.80}")
    return data


def _build_dataclass(kind: type, data: Any, parse: Mapping[str, Callable[[Any], Any]]) -> Any:
    known = {f.name for f in dataclasses.fields(kind)}
    if not isinstance(data, Mapping) or set(data) - known:
        raise TypeError(f"expected the keys {sorted(known)}, got {data!r:.80}")
    hints = _hints(kind)
    return kind(**{k: parse[k](v) if k in parse else _build(hints[k], v) for k, v in data.items()})


def _build_tuple(inner: tuple[Any, ...], data: Any) -> tuple[Any, ...]:
    if not isinstance(data, list | tuple):
        raise TypeError(f"expected a list, got {data!r:.80}")
    if len(inner) == 2 and inner[1] is Ellipsis:
        return tuple(_build(inner[0], v) for v in data)
    return tuple(_build(h, v) for h, v in zip(inner, data, strict=True))


def _build_union(choices: tuple[Any, ...], data: Any) -> Any:
    if data is None and types.NoneType in choices:
        return None
    plain_types = [c for c in choices if isinstance(c, type) and c is not types.NoneType]
    for choice in plain_types:
        if type(data) is choice:
            return data
    if float in plain_types and isinstance(data, str) and data in _NON_FINITE:
        return _NON_FINITE[data]
    for choice in choices:
        if choice is types.NoneType:
            continue
        try:
            return _build(choice, data)
        except (TypeError, ValueError, KeyError):
            continue
    raise TypeError(f"{data!r:.80} fits none of {choices}")


def content_hash(value: Any) -> str:
    """Sha256 of the canonical JSON of a value."""
    text = json.dumps(plain(value), sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()
