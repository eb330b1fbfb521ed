"""Tensors across the wall, on the child's side: arguments into memory, results and inputs out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
import torch

from kerneltruth.runner import facade
from kerneltruth.runner.protocol import (
    ITEMSIZE,
    OtherResult,
    Result,
    TensorArgument,
    TensorResult,
    UnsupportedHere,
)

_ALIGNMENT = 512
_MOST_RESULTS = 64
_REPR = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """An input in the child's memory: the view that the candidate gets, and the whole buffer.

    `shown`: whether the judge wants to see the buffer after the call.
    """

    name: str
    view: torch.Tensor
    buffer: torch.Tensor
    shown: bool = True


def place(argument: TensorArgument, device: torch.device) -> Placed:
    """Copy an input into fresh memory on the device, its buffer aligned to 512 bytes."""
    dtype = dtype_of(argument.dtype)
    data = torch.frombuffer(bytearray(argument.buffer), dtype=torch.uint8)
    memory = torch.empty(data.numel() + _ALIGNMENT, dtype=torch.uint8, device=device)
    start = -memory.data_ptr() % _ALIGNMENT
    buffer = memory[start : start + data.numel()]
    buffer.copy_(data)
    elements = buffer[: data.numel() - data.numel() % dtype.itemsize].view(dtype)
    offset = start // dtype.itemsize + argument.offset
    return Placed(
        name=argument.name,
        view=elements.as_strided(argument.shape, argument.strides, offset),
        buffer=buffer,
        shown=argument.shown,
    )


def dtype_of(name: str) -> torch.dtype:
    """The torch dtype of that name, if this torch has it."""
    dtype = getattr(torch, name, None) if name in ITEMSIZE else None
    if not isinstance(dtype, torch.dtype):
        raise UnsupportedHere(f"torch {torch.__version__} has no dtype {name}")
    return dtype


def as_numpy(view: torch.Tensor) -> Any:
    """The same memory as a NumPy array."""
    try:
        return view.numpy()
    except TypeError as error:
        name = str(view.dtype).removeprefix("torch.")
        raise UnsupportedHere(f"NumPy has no dtype {name}") from error


def raw_bytes(tensor: torch.Tensor) -> bytes | memoryview:
    """A tensor's logical elements in row-major order, in memory of their own."""
    if tensor.numel() == 0:
        return b""
    flat = tensor.resolve_conj().resolve_neg().contiguous().reshape(-1).view(torch.uint8)
    here = flat.cpu().numpy()
    # What came from a device is a copy already.
    return bytes(here.tobytes()) if flat.device.type == "cpu" else here.data


def collect(returned: Any, inputs: Sequence[Placed], *, arrays: bool) -> tuple[Result, ...]:
    """What the entry returned, flattened; None alone is no result.

    NumPy arrays count as tensors if `arrays`: from a NumPy candidate. Called without the facade,
    though a result lies where the candidate was made to believe.
    """
    return tuple(_result(value, inputs, arrays=arrays) for value in leaves(returned))


def aliases(returned: Any, inputs: Sequence[Placed]) -> tuple[str | None, ...]:
    """Which input each of a call's results shares memory with; one item per result of `collect`."""
    return tuple(
        _alias(value.data_ptr(), _steps(value), inputs)
        if isinstance(value, torch.Tensor) and value.layout == torch.strided
        else None
        for value in leaves(returned)
    )


def with_alias(result: Result, alias: str | None) -> Result:
    """The result, said to share memory with an input."""
    return replace(result, alias=alias) if isinstance(result, TensorResult) else result


def leaves(returned: Any) -> list[Any]:
    """What the entry returned, flattened; None alone is nothing."""
    return [] if returned is None else list(islice(_flattened(returned), _MOST_RESULTS))


def is_array(value: Any) -> bool:
    """Whether it is NumPy's, and a dtype that PyTorch has, too."""
    return isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "fiubc"


def _flattened(value: Any, depth: int = 0) -> Iterator[Any]:
    if isinstance(value, tuple | list) and depth < 4:
        for item in value:
            yield from _flattened(item, depth + 1)
    elif isinstance(value, Mapping) and depth < 4:
        for item in value.values():
            yield from _flattened(item, depth + 1)
    else:
        yield value


def _result(value: Any, inputs: Sequence[Placed], *, arrays: bool) -> Result:
    if arrays and is_array(value):
        return _array_result(np.asarray(value), inputs)
    if not isinstance(value, torch.Tensor):
        return _other(value)
    tensor = torch.Tensor.detach(value)
    if type(tensor) is not torch.Tensor:
        tensor = tensor.as_subclass(torch.Tensor)
    if tensor.layout != torch.strided or tensor.is_meta or tensor.is_quantized:
        return _other(value)
    name = str(tensor.dtype).removeprefix("torch.")
    return TensorResult(
        dtype=name,
        shape=tuple(tensor.shape),
        strides=tuple(tensor.stride()),
        device=str(facade.claimed_device(value)),
        data=raw_bytes(tensor) if name in ITEMSIZE else b"",
        alias=_alias(tensor.data_ptr(), _steps(tensor), inputs),
    )


def _array_result(array: Any, inputs: Sequence[Placed]) -> TensorResult:
    name = array.dtype.name
    steps = list(zip(array.shape, array.strides, strict=True))
    return TensorResult(
        dtype=name,
        shape=tuple(array.shape),
        strides=tuple(s // array.itemsize for s in array.strides),
        device="cpu",
        data=array.astype(array.dtype.newbyteorder("=")).tobytes() if name in ITEMSIZE else b"",
        alias=_alias(array.ctypes.data, [*steps, (2, array.itemsize)], inputs),
    )


def _other(value: Any) -> OtherResult:
    try:
        text = repr(value)
    except Exception as error:
        text = f"<repr raised {type(error).__name__}>"
    name = type(value).__name__
    return OtherResult(type=name if isinstance(name, str) else "?", text=str(text)[:_REPR])


def _steps(tensor: torch.Tensor) -> list[tuple[int, int]]:
    """Sizes and byte strides, the element itself last."""
    size = tensor.element_size()
    pairs = zip(tensor.shape, tensor.stride(), strict=True)
    return [*((n, s * size) for n, s in pairs), (2, size)]


def _alias(start: int, steps: Sequence[tuple[int, int]], inputs: Sequence[Placed]) -> str | None:
    """The input whose buffer overlaps the memory from the first to the last element."""
    if any(n == 0 for n, _ in steps):
        return None
    low = start + sum(min(0, (n - 1) * s) for n, s in steps)
    high = start + sum(max(0, (n - 1) * s) for n, s in steps)
    for placed in inputs:
        begin = placed.buffer.data_ptr()
        if low < begin + placed.buffer.numel() and begin < high:
            return placed.name
    return None
