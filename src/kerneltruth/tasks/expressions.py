"""Evaluate expressions of dims and attributes, as task declarations write them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import CodeType
from typing import Any

_FUNCTIONS: dict[str, Any] = {
    f.__name__: f
    for f in (abs, all, any, bool, int, isinstance, len, max, min, range, reversed, sorted, sum)
} | {"tuple": tuple, "list": list, "str": str, "prod": math.prod, "ceil": math.ceil}


def evaluate(expression: str, scope: Mapping[str, Any]) -> Any:
    """Evaluate an expression of dims and attributes, as our own declarations write them."""
    if expression in scope:
        return scope[expression]
    if expression.isdigit():
        return int(expression)
    # As globals, because a comprehension does not see an expression's locals.
    return eval(_compiled(expression), {"__builtins__": _FUNCTIONS, **scope})


@lru_cache(maxsize=4096)
def _compiled(expression: str) -> CodeType:
    return compile(expression, "<declaration>", "eval")


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
    dims: tuple[str, ...], symbols: tuple[str, ...], settings: Mapping[str, Any]
) -> tuple[str, ...]:
    """Replace each starred dim expression by the dims that it gives at the settings.

    An expression that depends on a size gives dims named `?`: they are not symbols.
    """
    found: list[str] = []
    for dim in dims:
        if not dim.startswith("*"):
            found.append(dim)
            continue
        try:
            scope = {**settings, **{s: Symbol(s) for s in symbols}}
            parts = [str(part) for part in evaluate(dim[1:], scope)]
        except TypeError:
            sizes = {**settings, **dict.fromkeys(symbols, 2)}
            parts = ["?"] * len(tuple(evaluate(dim[1:], sizes)))
        found += parts
    return tuple(found)
