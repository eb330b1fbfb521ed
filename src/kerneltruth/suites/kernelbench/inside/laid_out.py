"""Cache shapes of results on the meta device, so that torch computes each only once.

Many of torch's shape functions are Python and take a millisecond each. A network calls the same
operator on the same shapes over and over, and so do tries of other constants.
"""

from __future__ import annotations

import contextlib
import sys
import types
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

_DYNAMO = "torch._dynamo"
_MOST_KNOWN = 2**14
# Marks an operator that writes to its first argument and returns it.
_FIRST = "first"


class RecordedLayouts(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Cached results of operators on the meta device."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._known: dict[Any, Any] = {}

    def result(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Return the operator's result; one that may alias its arguments runs each time."""
        key = func, _key(args), _key(sorted(kwargs.items()))
        try:
            known = self._known.get(key)
        except TypeError:
            # Some argument cannot be hashed.
            return func(*args, **kwargs)
        if known is not None:
            return args[0] if known == _FIRST else _remade(known)
        made = func(*args, **kwargs)
        known = _facts(func, args, made) if key[1] == _key(args) else None
        if known is not None and len(self._known) < _MOST_KNOWN:
            self._known[key] = known
        return made


def _laid_out(
    mode: RecordedLayouts, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
) -> Any:
    return mode.result(func, args, kwargs or {})


# In a class body, torch would wrap it so that its first call imports all of torch._dynamo.
RecordedLayouts.__torch_dispatch__ = _laid_out  # type: ignore[assignment,method-assign]


def _key(value: Any) -> Any:
    """The key of an operator's result on the meta device; a list if it depends on values."""
    if isinstance(value, torch.Tensor):
        return (value.dtype, value.shape, value.stride()) if value.is_meta else []
    if isinstance(value, tuple | list):
        return tuple(map(_key, value))
    # 1, 1.0 and True are equal, and give results of different dtypes.
    return type(value), value


def _facts(func: Any, args: Sequence[Any], made: Any) -> Any:
    """Return a function that recreates the result; None if nothing simple does."""
    schema = func._schema
    if schema.is_mutable:
        written = [
            i for i, a in enumerate(schema.arguments) if a.alias_info and a.alias_info.is_write
        ]
        return _FIRST if written == [0] and args and made is args[0] and made.is_meta else None
    if any(r.alias_info for r in schema.returns):
        return None
    parts = made if isinstance(made, tuple) else (made,)
    if not all(isinstance(p, torch.Tensor) and p.is_meta for p in parts):
        return None
    facts = tuple((p.shape, p.stride(), p.dtype) for p in parts)
    return facts if isinstance(made, tuple) else facts[0]


def _remade(known: Any) -> Any:
    if isinstance(known[0], torch.Size):
        shape, stride, dtype = known
        return torch.empty_strided(shape, stride, dtype=dtype, device="meta")
    return tuple(map(_remade, known))


@contextlib.contextmanager
def without_dynamo() -> Iterator[None]:
    """Let shape functions run as they are: preparing to compile them imports torch._dynamo.

    That import takes longer than all shapes of a problem.
    """
    if _DYNAMO in sys.modules:
        yield
        return
    stand_in = types.ModuleType(_DYNAMO)
    stand_in.disable = lambda function, *_, **__: function  # type: ignore[attr-defined]
    sys.modules[_DYNAMO] = stand_in
    try:
        yield
    finally:
        del sys.modules[_DYNAMO]
