"""Evaluate a declaration's rules on dims and attributes: expressions, and functions by name.

An expression, such as `2*M*N` or `C % groups == 0`, is arithmetic on names and comparison. What
follows from dims and attributes by any logic is a Python function whose parameters are the names
that it needs, or a table of `Variants`. A declaration gives each a name (`where`), and its
expressions use that name.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType
from typing import Any

from kerneltruth.errors import DeclarationError
from kerneltruth.tasks.brackets import split

FUNCTIONS: Mapping[str, Callable[..., Any]] = {"min": min, "max": max}
_NODES = (
    *(ast.Expression, ast.BoolOp, ast.boolop, ast.BinOp, ast.operator, ast.UnaryOp, ast.unaryop),
    *(ast.Compare, ast.cmpop, ast.Name, ast.Load, ast.Constant, ast.Tuple, ast.List, ast.Dict),
    ast.Subscript,
)


@dataclass(frozen=True, slots=True)
class Variants:
    """The dims of a shape that a hidden attribute chooses, such as a rank.

    Attributes:
        attribute: the hidden attribute's name, which begins with `_`.
        shapes: dims by its values; the first is the default.

    Examples:
        >>> shape = kt.Variants("_rank", {2: "M, N", 1: "M * N", 3: "M, 2, N"})
        >>> shape.at({"_rank": 3, "M": 4, "N": 5})
        (4, 2, 5)
    """

    attribute: str
    shapes: Mapping[Any, str]

    def __post_init__(self) -> None:
        if not self.attribute.startswith("_"):
            raise DeclarationError(
                f"variants of {self.attribute!r}: a hidden attribute chooses them; begin its name "
                "with `_`"
            )

    def __str__(self) -> str:
        forms = (f"[{dims}] at {value!r}" for value, dims in self.shapes.items())
        return f"by {self.attribute} {', '.join(forms)}"

    def at(self, scope: Mapping[str, Any]) -> tuple[Any, ...]:
        """Return the sizes of the shape that a scope's attribute chooses."""
        return tuple(evaluate(dim, scope) for dim in _split(self.shapes[scope[self.attribute]]))


_split = lru_cache(maxsize=4096)(split)

Rule = Callable[..., Any] | Variants


class Scope(dict[str, Any]):
    """Values by name; values of `where` are computed at first use."""

    def __init__(self, values: Mapping[str, Any], where: Mapping[str, Rule]) -> None:
        super().__init__(values)
        self._where = where

    def __missing__(self, name: str) -> Any:
        rule = self._where[name]
        self[name] = found = self._of(rule)
        return found

    def _of(self, rule: Rule) -> Any:
        try:
            if isinstance(rule, Variants):
                return rule.at(self)
            return rule(**{needed: self[needed] for needed in names_of(rule)})
        except KeyError as error:
            # Python would take it for an unknown name.
            raise ValueError(f"no {error} for {rule}") from error


@lru_cache(maxsize=4096)
def names_of(rule: Callable[..., Any]) -> tuple[str, ...]:
    """Return the parameters of a function."""
    return tuple(inspect.signature(rule).parameters)


def evaluate(expression: str, scope: Mapping[str, Any]) -> Any:
    """Evaluate an expression of the names in a scope."""
    if expression in scope:
        return scope[expression]
    if expression.isdigit():
        return int(expression)
    return eval(compiled(expression), {"__builtins__": FUNCTIONS}, scope)


@lru_cache(maxsize=4096)
def compiled(expression: str) -> CodeType:
    """Return an expression's code.

    Raises:
        DeclarationError: it is no expression, or more than arithmetic and comparison.
    """
    try:
        tree = ast.parse(expression, mode="eval")
    except SyntaxError as error:
        raise DeclarationError(f"{expression!r} is no expression: {error.msg}") from error
    if not all(isinstance(node, _NODES) or _is_known_call(node) for node in ast.walk(tree)):
        raise DeclarationError(
            f"{expression!r} is more than arithmetic, comparison, min and max; write a function, "
            "and give it a name in `where`"
        )
    return compile(tree, "<declaration>", "eval")


def _is_known_call(node: ast.AST) -> bool:
    called = node.func if isinstance(node, ast.Call) else None
    return isinstance(called, ast.Name) and called.id in FUNCTIONS


class Symbol:
    """A dim that is not a number yet: arithmetic with it gives longer expressions."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def _binary(sign: str, *, swapped: bool = False) -> Callable[[Symbol, Any], Symbol]:
    def combine(one: Symbol, other: Any) -> Symbol:
        left, right = (other, one) if swapped else (one, other)
        return Symbol(f"({left} {sign} {right})")

    return combine


for _name, _sign in (("add", "+"), ("sub", "-"), ("mul", "*"), ("floordiv", "//"), ("mod", "%")):
    setattr(Symbol, f"__{_name}__", _binary(_sign))
    setattr(Symbol, f"__r{_name}__", _binary(_sign, swapped=True))


def spread_out(
    dims: tuple[str, ...],
    symbols: tuple[str, ...],
    settings: Mapping[str, Any],
    where: Mapping[str, Rule],
) -> tuple[str, ...]:
    """Replace each starred name by the dims that it stands for at the settings.

    A dim that depends on a size by more than arithmetic is named `?`: it is no symbol.
    """
    found: list[str] = []
    for dim in dims:
        if not dim.startswith("*"):
            found.append(dim)
            continue
        try:
            scope = Scope({**settings, **{s: Symbol(s) for s in symbols}}, where)
            parts = [str(part) for part in evaluate(dim[1:], scope)]
        except TypeError:
            sizes = Scope({**settings, **dict.fromkeys(symbols, 2)}, where)
            parts = ["?"] * len(tuple(evaluate(dim[1:], sizes)))
        found += parts
    return tuple(found)
