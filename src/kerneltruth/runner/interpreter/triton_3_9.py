"""Triton 3.9: one cache policy instead of a modifier and an eviction, and new operations.

Block pointers are gone from the language.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from triton._C.libtriton import ir
from triton.runtime.interpreter import TensorHandle

from kerneltruth.runner.interpreter import arithmetic, memory
from kerneltruth.runner.interpreter.handles import Handle, truth
from kerneltruth.runner.interpreter.numbers import Array
from kerneltruth.runner.interpreter.versions import Adapter
from kerneltruth.runner.unsupported import UnsupportedError

_LOAD = memory.METHODS["create_load"]
_STORE = memory.METHODS["create_store"]
_MASKED_LOAD = memory.METHODS["create_masked_load"]
_MASKED_STORE = memory.METHODS["create_masked_store"]
_DESCRIPTOR_LOAD = memory.METHODS["create_descriptor_load"]

_SIGN_AND_EXPONENT = np.uint32(0xFFFFE000)
_INFINITE = np.uint32(0x7F800000)


def _cache_policy(self: Any, modifier: str, eviction: str) -> str:
    # Only "cv", fetch again each time, says anything here.
    return modifier


def _modifier(policy: str | None) -> Any:
    return ir.CACHE_MODIFIER.CV if policy == "cv" else None


def _load(self: Any, ptr: Handle, policy: str | None, volatile: Any) -> Any:
    return _LOAD(self, ptr, _modifier(policy), None, volatile)


def _masked_load(
    self: Any, ptrs: Handle, mask: Handle, other: Handle | None, policy: str | None, volatile: Any
) -> Any:
    return _MASKED_LOAD(self, ptrs, mask, other, _modifier(policy), None, volatile)


def _store(self: Any, ptr: Handle, value: Handle, policy: str | None) -> None:
    _STORE(self, ptr, value, None, None)


def _masked_store(self: Any, ptrs: Handle, value: Handle, mask: Handle, policy: str | None) -> None:
    _MASKED_STORE(self, ptrs, value, mask, None, None)


def _to_tf32(single: Array) -> Array:
    """To nearest even at 10 bits of mantissa, as loads through a TF32 tensor map round."""
    bits = single.view(np.uint32)
    bias = ((bits >> np.uint32(13)) & np.uint32(1)) + np.uint32(0xFFF)
    rounded = (bits + bias) & _SIGN_AND_EXPONENT
    return np.where((bits & _INFINITE) == _INFINITE, bits, rounded).view(np.float32)


def _descriptor_load(self: Any, desc: Any, indices: Any, policy: str | None) -> Any:
    loaded = _DESCRIPTOR_LOAD(self, desc, indices, _modifier(policy), None)
    if desc.round_f32_to_tf32 and loaded.dtype.scalar.is_fp32():
        return TensorHandle(_to_tf32(loaded.data), loaded.dtype)
    return loaded


def _atomic_load(self: Any, ptr: Handle, mask: Handle, sem: Any, scope: Any) -> Any:
    return _MASKED_LOAD(self, ptr, mask, None, None, None, True)


def _atomic_store(
    self: Any, ptr: Handle, value: Handle, mask: Handle, sem: Any, scope: Any
) -> None:
    _MASKED_STORE(self, ptr, value, mask, None, None)


def _atomic_poll(
    self: Any, ptr: Handle, expected: Handle, timeout: Any, sem: Any, scope: Any
) -> Handle:
    # No other program runs during this wait: what is not there at the first look never comes.
    seen = _LOAD(self, ptr, None, None, False)
    matched = seen.data == expected.data
    if not isinstance(timeout, TensorHandle) and not matched.all():
        raise UnsupportedError(
            "a program waits for another one; the interpreter runs programs one after another"
        )
    return truth(matched)


ADAPTER = Adapter(
    methods={
        "get_cache_policy": _cache_policy,
        "create_load": _load,
        "create_store": _store,
        "create_masked_load": _masked_load,
        "create_masked_store": _masked_store,
        "create_descriptor_load": _descriptor_load,
        "create_atomic_load": _atomic_load,
        "create_atomic_store": _atomic_store,
        "create_atomic_poll": _atomic_poll,
        "create_approx_divf": arithmetic.METHODS["create_fdiv"],
    },
    added=frozenset({"create_descriptor_reduce", "__getattr__"}),
    chained_comparisons=True,
)
