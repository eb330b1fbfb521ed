"""Call a problem's own files: this text begins the source of each problem, in a child process.

The judge appends `FILES`, `WRITTEN`, `HELD`, `IS_TUPLE`, `TEST`, `OTHERS`, the constants, two
functions and `structure.py`; nothing here may import kerneltruth.
"""

from __future__ import annotations

import sys
import types
from functools import cache
from typing import Any

import torch

FILES: dict[str, str] = {}
WRITTEN: tuple[bool, ...] = ()
HELD: tuple[bool, ...] = ()
IS_TUPLE = True
TEST: dict[str, object] = {}
# What is no size in tests of the same sizes.
OTHERS: tuple[dict[str, object], ...] = ()
_whole: Any = None


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
    """Return what the problem generates for a test: a tensor, or those of a dict or list as a list.

    Where there are dicts or lists, the text of their form comes last.

    Raises:
        TypeError: its data hold something else.
    """
    given: list[Any] = []
    forms = []
    parts = _generated({**test, **_telling()}, _seed())
    for place, (part, written, held) in enumerate(zip(parts, WRITTEN, HELD, strict=True), 1):
        tensors: list[torch.Tensor] = []
        forms.append(_form(part, tensors, place))
        if held:
            given.append(tensors or None)
        elif isinstance(part, torch.Tensor):
            given.append(torch.zeros_like(part) if written else part)
        else:
            said = f"element {place} of data is a {type(part).__name__}"
            raise TypeError(f"{said}, and a tensor by input_t in task.py")
    return [*given, f"({', '.join(forms)},)"] if any(HELD) else given


def _generated(test: dict[str, object], seed: int) -> list[Any]:
    kept = torch.Generator
    torch.Generator = _Generators()  # type: ignore[misc,assignment]
    try:
        data = _module("reference").generate_input(**test, seed=seed)
    finally:
        torch.Generator = kept  # type: ignore[misc]
    parts = list(data) if IS_TUPLE else [data]
    if len(parts) != len(WRITTEN):
        raise TypeError(f"its data are {len(parts)} parts; its reference takes {len(WRITTEN)}")
    return parts


@cache
def _telling() -> dict[str, object]:
    """Return what makes the first test one that tells which values its tensors have.

    A mask of ones looks like any real numbers; one of another test shows that it is a mask.
    """
    with torch.random.fork_rng(devices=[]), torch.device("cpu"):
        for other in ({}, *OTHERS) if OTHERS else ():
            pairs = zip(_generated({**TEST, **other}, 0), WRITTEN, strict=True)
            if not any(_holds_one_number(part) for part, written in pairs if not written):
                return other
    return {}


def _holds_one_number(part: Any) -> bool:
    several = isinstance(part, torch.Tensor) and part.numel() > 1
    return several and bool((part == part.flatten()[0]).all())


def _form(value: Any, tensors: list[torch.Tensor], place: int) -> str:
    """Return Python text of a value with `...` for each tensor, which is added to those."""
    if isinstance(value, torch.Tensor):
        tensors.append(value)
        return "..."
    if type(value) is dict and all(isinstance(key, str) for key in value):
        return f"{{{', '.join(f'{k!r}: {_form(v, tensors, place)}' for k, v in value.items())}}}"
    if type(value) in (list, tuple):
        members = "".join(f"{_form(v, tensors, place)}, " for v in value)
        return f"[{members}]" if type(value) is list else f"({members})"
    if value is None or type(value) in (bool, int, str) or _is_number(value):
        return repr(value)
    raise TypeError(
        f"element {place} of data holds a {type(value).__name__}, not only tensors, numbers, "
        "strings, and dicts and lists of them"
    )


def _is_number(value: Any) -> bool:
    return type(value) is float and abs(value) < float("inf")


def _seed() -> int:
    return int(torch.randint(2**31 - 1, (), device="cpu"))


def _computed(given: list[Any]) -> Any:
    """Return the reference's result; what only it has wider than its inputs is narrowed."""
    made = _module("reference").ref_kernel(_as_data(given))
    parts = list(made) if isinstance(made, tuple | list) else [made]
    tensors = [t for part in given for t in (part if isinstance(part, list) else [part])]
    floats = [t.dtype for t in tensors if torch.is_tensor(t) and t.is_floating_point()]
    if floats and torch.float64 not in floats:
        parts = [p.to(floats[0]) if p.dtype == torch.float64 else p for p in parts]
    return tuple(parts) if isinstance(made, tuple | list) else parts[0]


def _as_data(given: list[Any]) -> Any:
    parts = _whole(given[-1], given[:-1]) if any(HELD) else given
    pairs = zip(parts, WRITTEN, strict=True)
    data = [torch.zeros_like(value) if written else value for value, written in pairs]
    return tuple(data) if IS_TUPLE else data[0]
