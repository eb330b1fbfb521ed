"""The top-level statements of a source, and which of them a name needs."""

from __future__ import annotations

import ast
import builtins
import symtable
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Self

from kerneltruth.errors import UserError


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A statement: its lines from 1, the global names that it binds, and those that it uses."""

    first: int
    last: int
    binds: frozenset[str]
    uses: frozenset[str]
    text: str


@dataclass(slots=True)
class SourceFile:
    """A source, of which some statements are kept."""

    lines: list[str]
    statements: list[Statement]
    kept: set[int] = field(default_factory=set)
    # Names that a star import may bind.
    has_star: bool = False

    @classmethod
    def of(cls, text: str, filename: str) -> Self:
        """Read a source.

        Raises:
            UserError: it is not Python.
        """
        try:
            body = ast.parse(text).body
        except SyntaxError as error:
            raise UserError(f"{filename} is not Python: {error.msg}; correct it") from error
        statements = [_statement(node) for node in body if not _runs_only_as_program(node)]
        found = cls(text.splitlines(), statements)
        for place, each in enumerate(statements):
            if each.text.startswith("from ") and each.text.endswith("import *"):
                found.kept.add(place)
                found.has_star = True
        return found

    @property
    def futures(self) -> list[str]:
        """The imports from `__future__`, which must come first."""
        return [s.text for s in self.statements if s.text.startswith("from __future__")]

    def binds(self, name: str) -> bool:
        """Tell whether a statement binds the name."""
        return any(name in statement.binds for statement in self.statements)

    def keep(self, name: str) -> list[str]:
        """Keep the statements that a name needs; return names from elsewhere."""
        todo, seen, missing = [name], set[str](), list[str]()
        while todo:
            wanted = todo.pop()
            if wanted in seen:
                continue
            seen.add(wanted)
            binding = [n for n, s in enumerate(self.statements) if wanted in s.binds]
            if not (binding or self.has_star or hasattr(builtins, wanted)):
                missing.append(wanted)
            self.kept.update(binding)
            todo += sorted(use for n in binding for use in self.statements[n].uses)
        return missing

    def text(self, *, without_futures: bool = False) -> str:
        """Return the kept statements, each in its own line; other lines are empty."""
        shown: set[int] = set()
        for place, each in enumerate(self.statements):
            future = each.text.startswith("from __future__")
            if (place in self.kept or future) and not (future and without_futures):
                shown.update(range(each.first, each.last + 1))
        lines = (line if n in shown else "" for n, line in enumerate(self.lines, start=1))
        return "\n".join(lines).rstrip() + "\n"


def _statement(node: ast.stmt) -> Statement:
    text = ast.unparse(node)
    decorators = getattr(node, "decorator_list", [])
    table = symtable.symtable(text, "<statement>", "exec")
    assert node.end_lineno is not None
    return Statement(
        first=min(n.lineno for n in (node, *decorators)),
        last=node.end_lineno,
        binds=frozenset(
            s.get_name() for s in table.get_symbols() if s.is_assigned() or s.is_imported()
        ),
        uses=frozenset(_used(table)),
        text=text,
    )


def _used(table: symtable.SymbolTable) -> Iterator[str]:
    """Return the global names that a statement uses, in itself and in its functions."""
    for symbol in table.get_symbols():
        if symbol.is_global() or (table.get_type() == "module" and symbol.is_referenced()):
            yield symbol.get_name()
    for child in table.get_children():
        yield from _used(child)


def _runs_only_as_program(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and "__name__" in ast.unparse(node.test)
