"""Call a problem's own files: this text begins the source of each problem, in a child process.

The judge appends `FILES`, `WRITTEN`, `IS_TUPLE`, the constants and two functions; nothing here may
import kerneltruth.
"""

from __future__ import annotations

import sys
import types
from functools import cache
from typing import Any

import torch

FILES: dict[str, str] = {}
WRITTEN: tuple[bool, ...] = ()
IS_TUPLE = True


@cache
def _module(name: str) -> types.ModuleType:
    """Return a file of the problem as a module; the others are imported by it."""
    for file, text in FILES.items():
        if file != f"{name}.py" and file.removesuffix(".py") not in sys.modules:
            _run(file.removesuffix(".py"), text)
    return _run(name, FILES[f"{name}.py"])


def _run(name: str, text: str) -> types.ModuleType:
    module = types.ModuleType(name)
    sys.modules[name] = module
    exec(compile(text, f"{name}.py", "exec"), module.__dict__)
    return module


class _Generators:
    """In place of `torch.Generator`: the judge has the problem draw on the CPU."""

    plain = torch.Generator

    def __call__(self, device: Any = None) -> torch.Generator:
        return self.plain()


def _drawn(**test: Any) -> list[Any]:
    """Return the tensors that the problem generates for a test.

    Raises:
        TypeError: its data hold something else.
    """
    kept = torch.Generator
    torch.Generator = _Generators()  # type: ignore[misc,assignment]
    try:
        data = _module("reference").generate_input(**test, seed=_seed())
    finally:
        torch.Generator = kept  # type: ignore[misc]
    tensors = list(data) if IS_TUPLE else [data]
    for place, value in enumerate(tensors):
        if not isinstance(value, torch.Tensor):
            raise TypeError(f"element {place + 1} of data is no tensor: {type(value).__name__}")
    if len(tensors) != len(WRITTEN):
        raise TypeError(f"its data are {len(tensors)} tensors; its reference takes {len(WRITTEN)}")
    pairs = zip(tensors, WRITTEN, strict=True)
    return [torch.zeros_like(value) if written else value for value, written in pairs]


def _seed() -> int:
    return int(torch.randint(2**31 - 1, ()))


def _computed(given: list[Any]) -> Any:
    """Return the reference's result; what only it has wider than its inputs is narrowed."""
    made = _module("reference").ref_kernel(_as_data(given))
    parts = list(made) if isinstance(made, tuple | list) else [made]
    floats = [t.dtype for t in given if t.is_floating_point()]
    if floats and torch.float64 not in floats:
        parts = [p.to(floats[0]) if p.dtype == torch.float64 else p for p in parts]
    return tuple(parts) if isinstance(made, tuple | list) else parts[0]


def _as_data(given: list[Any]) -> Any:
    pairs = zip(given, WRITTEN, strict=True)
    data = [torch.zeros_like(value) if written else value for value, written in pairs]
    return tuple(data) if IS_TUPLE else data[0]
