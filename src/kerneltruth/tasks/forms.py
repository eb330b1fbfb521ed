"""Check the type of each part of a declaration, before anything is made of it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from kerneltruth.errors import DeclarationError
from kerneltruth.tasks.arguments import Benchmark, Output
from kerneltruth.tasks.expressions import Variants
from kerneltruth.tasks.promises import Promises

_Holds = Callable[[Any], bool]
_NONE = type(None)


def _is(*types: type) -> _Holds:
    return lambda value: isinstance(value, types)


def _every(holds: _Holds, container: Any = Sequence) -> _Holds:
    """Return whether it is a tuple or the like, and no text, of such members."""
    return lambda value: (
        isinstance(value, container)
        and not isinstance(value, str)
        and all(holds(member) for member in value)
    )


def _by_name(holds: _Holds) -> _Holds:
    return lambda value: (
        isinstance(value, Mapping)
        and all(isinstance(name, str) for name in value)
        and all(holds(member) for member in value.values())
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _any(*rules: _Holds) -> _Holds:
    return lambda value: any(holds(value) for holds in rules)


_NAMES = (_every(_is(str)), "a tuple of texts")
_TEXT = (_is(str), "a text")
_BOOL = (_is(bool), "True or False")
_FUNCTION = (_any(callable, _is(_NONE)), "a function")
_VALUES = (_by_name(_every(lambda _: True)), "a tuple of values by name, such as {'eps': (1e-2,)}")
# What holds for a field, and what to give in words.
_FIELDS: Mapping[str, tuple[_Holds, str]] = {
    "dims": (_by_name(lambda _: True), "a role by name, such as {'N': 'batch'}"),
    "reference": (callable, "a function of the signature's arguments"),
    "category": _TEXT,
    "description": _TEXT,
    "flops": _TEXT,
    "benchmark": (
        _any(_by_name(lambda _: True), _is(Benchmark, _NONE)),
        "a size by dim, such as {'M': 64, 'N': 64}",
    ),
    "where": (_by_name(_any(callable, _is(Variants))), "a function or Variants by name"),
    "attributes": _VALUES,
    "outputs": (_any(_every(_is(Output)), _is(_NONE)), "a tuple of Output"),
    "dtypes": _NAMES,
    "extended_dtypes": _NAMES,
    "constraints": _NAMES,
    "bytes": (_is(str, _NONE), "a text"),
    "tolerance": (_by_name(_is_number), "an error by dtype, such as {'float16': 1e-2}"),
    "mutates": (_any(_by_name(_is(str)), _every(_is(str), Collection)), "a tuple of names"),
    "may_overwrite": (_by_name(_is(str)), "a condition by name"),
    "values": (
        _any(_is(_NONE), lambda v: _every(_is_number)(v) and len(v) == 2),
        "two numbers, such as (0.0, 1.0)",
    ),
    "layouts": _BOOL,
    "admissible": (_every(callable), "a tuple of functions"),
    "claims": _FUNCTION,
    "random": _BOOL,
    "bitwise": _BOOL,
    "perf": (_every(_by_name(lambda _: True)), "a tuple of sizes by dim, such as ({'M': 1024},)"),
    "extended": _VALUES,
    "promises": (_is(Promises), "a Promises"),
    "inputs": _FUNCTION,
    "out": _BOOL,
    "backward": _BOOL,
    "entry": (_is(str, _NONE), "a text"),
}


def check_forms(given: Any) -> None:
    """Check that each field of a declaration has its type.

    Raises:
        DeclarationError: one does not.
    """
    for name, (holds, words) in _FIELDS.items():
        value = getattr(given, name)
        if not holds(value):
            raise DeclarationError(f"{name}={value!r}: give {words}")
