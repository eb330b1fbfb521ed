"""Modes that change how wide a plain function computes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from kerneltruth.suites.kernelbench.inside.modes import Narrowing

WIDENED = (torch.float32, torch.float16, torch.bfloat16)


class Widening(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Make every narrower float that a function asks for as wide as its arguments.

    A function for several dtypes converts to float32 before a sum. In float64 that would lose what
    the exact result needs. One that converts to float16 takes no float32 arguments otherwise.
    """

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.dtype = dtype


def _widened(
    mode: Widening, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
) -> Any:
    given = dict(kwargs or {})
    if given.get("dtype") in WIDENED:
        given["dtype"] = mode.dtype
    return func(*args, **given)


# In a class body, torch would wrap it so that its first call imports all of torch._dynamo.
Widening.__torch_dispatch__ = _widened  # type: ignore[assignment,method-assign]


class RoundingByChance(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Compute in float32 what a function computes in a narrow dtype, and round it by chance.

    Results that the function asks for in float32 keep it.
    """

    def __init__(self, dtype: torch.dtype, salt: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.dtype = dtype
        self.narrowing = Narrowing(str(dtype).removeprefix("torch."), salt)

    def recomputed(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Return the result in float32, rounded up or down by chance to the dtype."""
        wide = {k: torch.float32 if v == self.dtype else v for k, v in kwargs.items()}
        made = func(*map(self._wide, args), **{k: self._wide(v) for k, v in wide.items()})
        return self.narrowing.narrow(made).to(self.dtype)

    def _wide(self, value: Any) -> Any:
        if isinstance(value, tuple | list):
            return type(value)(map(self._wide, value))
        narrow = isinstance(value, torch.Tensor) and value.dtype == self.dtype
        return value.to(torch.float32) if narrow else value


def _rounded_by_chance(
    mode: RoundingByChance, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
) -> Any:
    result = func(*args, **(kwargs or {}))
    name = str(func.overloadpacket.__name__)
    plain = isinstance(result, torch.Tensor) and result.dtype == mode.dtype
    if not plain or getattr(func, "is_view", False) or name.endswith("_"):
        return result
    return mode.recomputed(func, args, kwargs or {}) if name not in _EMPTY else result


_EMPTY = ("empty", "empty_like", "new_empty", "empty_strided", "clone", "detach")
RoundingByChance.__torch_dispatch__ = _rounded_by_chance  # type: ignore[assignment,method-assign]
