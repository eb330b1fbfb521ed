"""The source of a function: its definition, and the parts of its file or notebook that it needs.

Statements that the function does not need are left out, a call of `check` in a script among them:
the candidate's process would run it again.
"""

from __future__ import annotations

import inspect
import linecache
import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import FunctionType, ModuleType
from typing import Any

from kerneltruth.errors import UserError
from kerneltruth.library.statements import SourceFile


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionSource:
    """A function as source text: where it stands, the text, and its name there."""

    file: str
    text: str
    entry: str


def source_of(function: Callable[..., Any]) -> FunctionSource:
    """Return the source of a function, with all that it needs of its file or notebook.

    Raises:
        UserError: it has no source, or needs values that no source holds.
    """
    plain = inspect.unwrap(function)
    if not isinstance(plain, FunctionType):
        raise UserError(
            f"cannot judge {_name(function)}: it is a {type(plain).__name__}, not a function; "
            "give the Python function that launches the kernel, or a file"
        )
    _require_top_level(plain)
    taken = _Taken(plain.__name__, plain.__code__.co_filename)
    taken.take(plain)
    return FunctionSource(file=plain.__code__.co_filename, text=taken.text(), entry=plain.__name__)


def source_of_statement(name: str, filename: str, line: int, names: Mapping[str, object]) -> str:
    """Return the statement of a notebook's cell that gives something a name, with all it needs.

    Args:
        name: how messages call it.
        filename: of the cell.
        line: of the statement.
        names: of the notebook.

    Raises:
        UserError: it is not kept, gives nothing a name, or needs values that no source holds.
    """
    taken = _Taken(name, filename)
    taken.take_statement(line, names)
    return taken.text()


def _require_top_level(function: FunctionType) -> None:
    name = function.__name__
    captured = function.__code__.co_freevars
    if captured:
        cells = zip(captured, function.__closure__ or (), strict=False)
        held = ", ".join(f"{n} ({_held(c)})" for n, c in cells)
        raise UserError(
            f"cannot judge {name}: it is a closure over {held}, which its source does not hold; "
            "pass them as arguments, or define the function at the top level"
        )
    if name == "<lambda>" or not function.__qualname__.isidentifier():
        raise UserError(
            f"cannot judge {function.__qualname__}: only a function at the top level of a file or "
            "a notebook cell can be taken from its source; define it there"
        )


def _held(cell: Any) -> str:
    try:
        return type(cell.cell_contents).__name__
    except ValueError:
        return "not set yet"


class _Taken:
    """The parts taken of each file; for a notebook, of each cell."""

    def __init__(self, name: str, filename: str) -> None:
        self._name = name
        self._filename = filename
        self._files: dict[str, SourceFile] = {}
        # Modules and numbers that a cell has from others.
        self._heads: dict[str, str] = {}

    def take(self, function: FunctionType) -> None:
        """Take a function, and what it needs."""
        filename = function.__code__.co_filename
        file = self._file(filename, function.__globals__)
        if not file.binds(function.__name__):
            raise UserError(
                f"cannot judge {function.__name__}: {filename} does not define it at its top "
                "level; define it there, or give its source text"
            )
        for missing in file.keep(function.__name__):
            self._from_elsewhere(missing, function.__globals__)

    def take_statement(self, line: int, names: Mapping[str, object]) -> None:
        """Take the statement at a line of the own file, and what it needs."""
        file = self._file(self._filename, names)
        bound = sorted(n for s in file.statements if s.first <= line <= s.last for n in s.binds)
        if not bound:
            raise UserError(
                f"cannot judge by {self._name}: the statement at line {line} of its cell gives it "
                "no name; assign what kt.task returns"
            )
        for missing in (m for name in bound for m in file.keep(name)):
            self._from_elsewhere(missing, names)

    def text(self) -> str:
        """Return one source: the function's own file last, with its line numbers if it is alone."""
        own = self._files.pop(self._filename)
        others = [file.text().strip("\n") for file in self._files.values()]
        parts = [*own.futures, *self._heads.values(), *reversed(others)]
        return "\n".join([*parts, own.text(without_futures=bool(parts))])

    def _file(self, filename: str, names: Mapping[str, object]) -> SourceFile:
        if filename not in self._files:
            linecache.checkcache(filename)
            lines = linecache.getlines(filename, dict(names))
            if not lines:
                raise UserError(
                    f"cannot judge {self._name}: the source of {filename} is not "
                    "kept; write the function to a file, or give its source text"
                )
            self._files[filename] = SourceFile.of("".join(lines), filename)
        return self._files[filename]

    def _from_elsewhere(self, name: str, names: Mapping[str, object]) -> None:
        """Take a name that another cell has set."""
        if name not in names or name in self._heads or name.startswith("__"):
            return
        value = names[name]
        inner = _launched(value)
        imported = _import_of(name, value)
        if imported is not None:
            self._heads[name] = imported
        elif isinstance(value, bool | int | str | None) or _is_plain_float(value):
            self._heads[name] = f"{name} = {value!r}"
        elif isinstance(inner, FunctionType):
            self.take(inner)
        else:
            raise UserError(
                f"cannot judge {self._name}: it uses {name} "
                f"({type(value).__name__}), which its file or cell does not define; define it "
                "there, or pass it as an argument"
            )


def _import_of(name: str, value: object) -> str | None:
    """Return the import that gives the name its value; None if no module has it."""
    if isinstance(value, ModuleType):
        return f"import {value.__name__} as {name}"
    module, there = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if module in (None, "__main__") or not isinstance(there, str):
        return None
    held = getattr(sys.modules.get(module), there, None)
    return f"from {module} import {there} as {name}" if held is value else None


def _launched(value: object) -> object:
    """Return the function in a kernel of Triton, which decorators may wrap one in the other."""
    while not isinstance(value, FunctionType) and hasattr(value, "fn"):
        value = value.fn
    return value


def _is_plain_float(value: object) -> bool:
    return isinstance(value, float) and math.isfinite(value)


def _name(thing: object) -> str:
    return str(getattr(thing, "__name__", None) or type(thing).__name__)
