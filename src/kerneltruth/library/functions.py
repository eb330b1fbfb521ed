"""The source of a function: its definition, and what of its file or notebook it needs."""

from __future__ import annotations

import inspect
import linecache
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any

from kerneltruth.errors import UserError


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionSource:
    """A function as source text: where it stands, the text, and its name there."""

    file: str
    text: str
    entry: str


def source_of(function: Callable[..., Any]) -> FunctionSource:
    """Return the source of a function's file or notebook cell.

    Raises:
        UserError: it has no source, or needs values that a source does not hold.
    """
    plain = inspect.unwrap(function)
    if not isinstance(plain, FunctionType):
        raise UserError(
            f"cannot judge {_name(function)}: it is a {type(plain).__name__}, not a function; "
            "give the Python function that launches the kernel, or a file"
        )
    _require_top_level(plain)
    code: CodeType = plain.__code__
    lines = linecache.getlines(code.co_filename, plain.__globals__)
    if not lines:
        raise UserError(
            f"cannot judge {plain.__name__}: the source of {code.co_filename} is not kept; "
            "write the function to a file, or give its source text"
        )
    return FunctionSource(file=code.co_filename, text="".join(lines), entry=plain.__name__)


def _require_top_level(function: FunctionType) -> None:
    name = function.__name__
    captured = function.__code__.co_freevars
    if captured:
        cells = zip(captured, function.__closure__ or (), strict=False)
        held = ", ".join(f"{n} ({type(c.cell_contents).__name__})" for n, c in cells)
        raise UserError(
            f"cannot judge {name}: it is a closure over {held}, which its source does not hold; "
            "pass them as arguments, or define the function at the top level"
        )
    if name == "<lambda>" or "<locals>" in function.__qualname__ or "." in function.__qualname__:
        raise UserError(
            f"cannot judge {function.__qualname__}: only functions at the top level of a file or a "
            "notebook cell can be taken from their source; define it there"
        )


def _name(thing: object) -> str:
    return str(getattr(thing, "__name__", None) or type(thing).__name__)
