"""The versions of Triton whose interpreter is corrected, and what differs between them."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from kerneltruth.runner.unsupported import UnsupportedError

# By the first minor version of a range, which ends where the next one begins.
_MODULES = {
    (3, 6): "triton_3_6",
    (3, 8): "triton_3_8",
    (3, 9): "triton_3_9",
}
FIRST, LAST_TESTED = (3, 6), (3, 9)
WINDOW = f"{FIRST[0]}.{FIRST[1]} to {LAST_TESTED[0]}.{LAST_TESTED[1]}"


@dataclass(frozen=True, kw_only=True)
class Adapter:
    """What is particular to a range of Triton's versions.

    Attributes:
        methods: builder methods that only these versions have, or have with these parameters.
        added: methods of ours that the language calls and this interpreter's builder lacks.
        handles: names of the classes that hold values in this interpreter.
        kept: builder methods that are right as these versions have them, beside those that are
            right in all.
        chained_comparisons: whether the compiler accepts `a < b < c`.
    """

    methods: Mapping[str, Callable[..., Any]]
    added: frozenset[str]
    handles: tuple[str, ...] = ("TensorHandle", "TensorDescHandle")
    kept: frozenset[str] = frozenset()
    chained_comparisons: bool = False


def number(version: str) -> tuple[int, int]:
    """Parse the major and minor version: (3, 9) for "3.9.0"; (0, 0) for any other text."""
    found = re.match(r"(\d+)\.(\d+)", version)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def range_of(version: tuple[int, int]) -> str:
    """Return the name of the module that corrects a version; the newest one for still newer ones.

    Raises:
        UnsupportedError: a version before the first.
    """
    fitting = [first for first in _MODULES if first <= version]
    if not fitting:
        raise UnsupportedError("it is too old")
    return _MODULES[max(fitting)]


@cache
def adapter() -> Adapter:
    """Return the adapter for the installed Triton.

    Raises:
        UnsupportedError: a version before the first.
    """
    import triton

    name = range_of(number(triton.__version__))
    module = importlib.import_module(f"kerneltruth.runner.interpreter.{name}")
    return module.ADAPTER  # type: ignore[no-any-return]
