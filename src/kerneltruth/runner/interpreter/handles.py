"""Reading and making the interpreter's tensor handles."""

from __future__ import annotations

from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime.interpreter import TensorHandle

from kerneltruth.runner.interpreter.numbers import NARROW, STORAGE, Array, decode, encode

# Triton's interpreter classes carry no types.
Handle = Any
Type = Any


def values(handle: Handle) -> Array:
    """Return the numbers of a handle: bf16 and fp8 as float32, all else as stored."""
    name = handle.dtype.scalar.name
    data: Array = handle.data
    return decode(data, name) if name in NARROW else data


def make(numbers: Array, ty: Type) -> Handle:
    """Make a handle of scalar type `ty` holding `numbers`, rounded to it."""
    name = ty.name
    if name in NARROW:
        return TensorHandle(encode(numbers, name), ty)
    return TensorHandle(numbers.astype(STORAGE[name], copy=False), ty)


def truth(numbers: Array) -> Handle:
    """Make a handle of type `int1`."""
    return TensorHandle(numbers, tl.int1)


def storage(ty: Type) -> np.dtype[Any]:
    """Return the NumPy type that holds one element of `ty`."""
    return np.dtype(np.uint64) if ty.scalar.is_ptr() else STORAGE[ty.scalar.name]
