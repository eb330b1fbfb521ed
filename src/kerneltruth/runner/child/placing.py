"""Move tensors across the wall on the child's side: arguments in, results and inputs out."""

from __future__ import annotations

import collections
import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from math import prod
from typing import Any

import numpy as np
import torch

from kerneltruth.runner import emulation
from kerneltruth.runner.arguments import Data, KeptArgument, RepeatedArgument, TensorArgument
from kerneltruth.runner.child.guards import fill
from kerneltruth.runner.child.shared_memory import SharedMemory
from kerneltruth.runner.observation import ITEMSIZE, OtherResult, ReturnedResult, TensorResult
from kerneltruth.runner.protocol import Rows
from kerneltruth.runner.unsupported import UnsupportedError

_ALIGNMENT = 512
# A reference's results may include the state of a large model; more would be a flood.
_MOST_RESULTS = 1024
_REPR = _NAME = 200
# NumPy, with which the judge reads results, knew but one more until its second version.
_MOST_DIMS = 31
# Reading these runs no code of the candidate's. A subclass could run code after the guards were
# checked and the clock stopped.
_TENSORS = (torch.Tensor, torch.nn.Parameter)
_NUMPY = frozenset((np.ndarray, *np.sctypeDict.values()))
_SHOWN = frozenset((*_TENSORS, *_NUMPY, type(None), bool, int, float, complex, str, bytes))
_DICTS = (dict, collections.OrderedDict, collections.defaultdict)
_DEPTH = 4
# How a tuple is read; a named tuple inherits all of these.
_READING = ("__iter__", "__getitem__", "__len__", "__getattribute__")
_base = torch._C.TensorBase
# Looked up before a candidate could replace them.
_as_subclass, _detach, _layout = _base.as_subclass, _base.detach, _base.layout.__get__  # type: ignore[attr-defined]
_is_functional, _is_functorch = (
    torch._is_functional_tensor,
    torch._C._functorch.is_functorch_wrapped_tensor,
)
_set_data = _base.data.__set__  # type: ignore[attr-defined]
_mro, _dict, _name = (type.__dict__[n].__get__ for n in ("__mro__", "__dict__", "__name__"))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Where:
    """What results may share memory with; see `collect`."""

    inputs: Sequence[PlacedInput] = ()
    memory: SharedMemory | None = None
    copied: bool = True

    def place(self, address: int, dtype: str, dims: int) -> int | None:
        """Return where in the judge's memory a plain tensor begins, if the judge can read it."""
        if self.memory is None or dtype not in ITEMSIZE or dims > _MOST_DIMS:
            return None
        return self.memory.place_of(address)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedInput:
    """An input in the child's memory: the candidate's view, and the whole buffer.

    `shown`: whether the judge needs the buffer after the call.
    """

    name: str
    view: torch.Tensor
    buffer: torch.Tensor
    shown: bool = True


def place(argument: TensorArgument, device: torch.device) -> PlacedInput:
    """Copy an input into fresh memory on the device, its buffer aligned to 512 bytes."""
    dtype = dtype_of(argument.dtype)
    data = torch.frombuffer(bytearray(argument.buffer), dtype=torch.uint8)
    memory = torch.empty(data.numel() + _ALIGNMENT, dtype=torch.uint8, device=device)
    start = -memory.data_ptr() % _ALIGNMENT
    buffer = memory[start : start + data.numel()]
    buffer.copy_(data)
    elements = buffer[: data.numel() - data.numel() % dtype.itemsize].view(dtype)
    offset = start // dtype.itemsize + argument.offset
    return PlacedInput(
        name=argument.name,
        view=elements.as_strided(argument.shape, argument.strides, offset),
        buffer=buffer,
        shown=argument.shown,
    )


def place_kept(argument: KeptArgument, memory: SharedMemory) -> PlacedInput:
    """Return an input where it lies in the judge's memory."""
    dtype = dtype_of(argument.dtype)
    buffer = memory.at(argument.start, argument.size)
    elements = buffer[: argument.size - argument.size % dtype.itemsize].view(dtype)
    return PlacedInput(
        name=argument.name,
        view=elements.as_strided(argument.shape, argument.strides, argument.offset),
        buffer=buffer,
        shown=argument.shown,
    )


def place_repeated(argument: RepeatedArgument, device: torch.device) -> PlacedInput:
    """Fill fresh memory on the device with the argument's block, again and again."""
    block = torch.frombuffer(bytearray(argument.block), dtype=dtype_of(argument.dtype)).to(device)
    flat = torch.empty(prod(argument.shape), dtype=block.dtype, device=device)
    fill(flat, block)
    return PlacedInput(
        name=argument.name,
        view=flat.view(argument.shape),
        buffer=flat.view(torch.uint8),
        shown=False,
    )


def rewrite(inputs: Sequence[PlacedInput], buffers: Mapping[str, Data], *, in_sight: bool) -> None:
    """Overwrite inputs in their own memory; out of sight, their tensors' versions stay."""
    for placed in inputs:
        if placed.name in buffers:
            data = torch.frombuffer(bytearray(buffers[placed.name]), dtype=torch.uint8)
            (placed.buffer if in_sight else placed.buffer.data).copy_(data)


def dtype_of(name: str) -> torch.dtype:
    """Return the torch dtype of that name, if this torch has it."""
    dtype = getattr(torch, name, None) if name in ITEMSIZE else None
    if not isinstance(dtype, torch.dtype):
        raise UnsupportedError(f"torch {torch.__version__} has no dtype {name}")
    return dtype


def as_numpy(view: torch.Tensor) -> Any:
    """Return the same memory as a NumPy array."""
    try:
        return view.numpy()
    except TypeError as error:
        name = str(view.dtype).removeprefix("torch.")
        raise UnsupportedError(f"NumPy has no dtype {name}") from error


def raw_bytes(tensor: torch.Tensor) -> bytes | memoryview:
    """Return a tensor's logical elements in row-major order, in their own memory."""
    if tensor.numel() == 0:
        return b""
    flat = tensor.resolve_conj().resolve_neg().contiguous().reshape(-1)
    # A single element counts as contiguous with any stride, which permits no view.
    here = flat.as_strided((flat.numel(),), (1,)).view(torch.uint8).cpu().numpy()
    # A result from a device is already a copy.
    return bytes(here.tobytes()) if flat.device.type == "cpu" else here.data


def move(values: Sequence[Any], memory: SharedMemory) -> None:
    """Move results that lie elsewhere to the judge's memory, where they fit.

    The tensor that a candidate keeps of a result moves with it, other tensors of the same memory
    do not.
    """
    for value in values:
        tensor = plain(value)
        name = "" if tensor is None else str(tensor.dtype).removeprefix("torch.")
        if tensor is None or name not in ITEMSIZE or not memory.is_of(tensor.device):
            continue
        odd = tensor.is_conj() or tensor.is_neg() or not tensor.numel()
        if odd or memory.place_of(tensor.data_ptr()) is not None:
            continue
        sizes, strides = tensor.size(), tensor.stride()
        last = sum((n - 1) * step for n, step in zip(sizes, strides, strict=True))
        size = (last + 1) * tensor.itemsize
        # One whose elements overlap could not be copied as it is.
        start = None if 0 in strides else memory.take(size)
        if start is not None:
            there = memory.at(start, size).view(tensor.dtype).as_strided(sizes, strides)
            with contextlib.suppress(RuntimeError):
                _set_data(value, there.copy_(tensor))


def collect(
    values: Sequence[Any],
    inputs: Sequence[PlacedInput],
    *,
    arrays: bool,
    memory: SharedMemory | None = None,
    copied: bool = True,
) -> tuple[ReturnedResult, ...]:
    """Return the `leaves` of what the entry returned, as results.

    NumPy arrays count as tensors if `arrays`: from a NumPy candidate. Runs without the facade, but
    a result has the device that the candidate was shown. Unless `copied`, results that lie in the
    judge's memory come without data.
    """
    where = _Where(inputs=inputs, memory=memory, copied=copied)
    return tuple(_result(value, where, arrays=arrays) for value in values)


def collect_rows(values: Sequence[Any], rows: Rows) -> tuple[ReturnedResult, ...]:
    """Return these rows of each of the `leaves`; of one with other rows, only its shape."""
    return tuple(_rows_of(value, rows) for value in values)


def _rows_of(value: Any, rows: Rows) -> ReturnedResult:
    tensor = plain(value)
    if tensor is None:
        return _other(value)
    if tensor.ndim == 0 or tensor.shape[0] != rows.total:
        return OtherResult(type="Tensor", text=f"a tensor of the shape {list(tensor.shape)}")
    ranges = zip(rows.starts, rows.counts, strict=True)
    kept = torch.cat([tensor.narrow(0, start, count) for start, count in ranges])
    return _result(kept, _Where(), arrays=False)


def aliases(values: Sequence[Any], inputs: Sequence[PlacedInput]) -> tuple[str | None, ...]:
    """Return which input each of the `leaves` shares memory with, if any."""
    tensors = [plain(value) for value in values]
    return tuple(
        None if tensor is None else _alias(tensor.data_ptr(), steps_of(tensor), inputs)
        for tensor in tensors
    )


def with_alias(result: ReturnedResult, alias: str | None) -> ReturnedResult:
    """Mark the result as sharing memory with an input."""
    return replace(result, alias=alias) if isinstance(result, TensorResult) else result


def leaves(returned: Any) -> list[Any]:
    """Flatten what the entry returned; None alone is nothing.

    Exact tuples, lists and dicts are flattened, and named tuples as their base holds them: no code
    of the candidate's runs. Any other container is a single result, of the wrong type.
    """
    return [] if returned is None else list(islice(_flattened(returned), _MOST_RESULTS))


def plain(value: Any) -> torch.Tensor | None:
    """Return a tensor's memory without a graph, if it is exactly a tensor or a parameter.

    One that a transform of functions has wrapped, and that escaped it, has no memory of its own.
    """
    if type(value) not in _TENSORS or _layout(value) != torch.strided or _is_wrapped(value):
        return None
    return _detach(value if type(value) is torch.Tensor else _as_subclass(value, torch.Tensor))


def is_array(value: Any) -> bool:
    """Return whether it is NumPy's own, with a dtype that PyTorch also has."""
    return type(value) in _NUMPY and value.dtype.kind in "fiubc"


def _flattened(value: Any, depth: int = 0) -> Iterator[Any]:
    kind = type(value)
    items: Iterator[Any] | None = None
    if kind is list:
        items = iter(value)
    elif kind in _DICTS:
        items = iter(value.values())
    elif kind is tuple or _is_named_tuple(kind):
        items = tuple.__iter__(value)
    if items is None or depth >= _DEPTH:
        yield value
        return
    for item in items:
        yield from _flattened(item, depth + 1)


def _is_named_tuple(kind: type) -> bool:
    """Return whether such a value always reads as its base `tuple`."""
    above = _mro(kind)
    if tuple not in above:
        return False
    own = [_dict(k) for k in above[: above.index(tuple)]]
    return not any(name in names for names in own for name in _READING)


def _result(value: Any, where: _Where, *, arrays: bool) -> ReturnedResult:
    if arrays and is_array(value):
        return _array_result(np.asarray(value), where)
    tensor = plain(value)
    if tensor is None or tensor.is_meta or tensor.is_quantized:
        return _other(value)
    name = str(tensor.dtype).removeprefix("torch.")
    place = None
    if not (tensor.is_conj() or tensor.is_neg()):
        place = where.place(tensor.data_ptr(), name, tensor.ndim)
    copied = name in ITEMSIZE and (place is None or where.copied)
    return TensorResult(
        dtype=name,
        shape=tuple(tensor.shape),
        strides=tuple(tensor.stride()),
        device=str(emulation.claimed_device(value)),
        data=raw_bytes(tensor) if copied else b"",
        alias=_alias(tensor.data_ptr(), steps_of(tensor), where.inputs) if place is None else None,
        place=place,
    )


def _array_result(array: Any, where: _Where) -> TensorResult:
    name = array.dtype.name
    place = None
    if array.dtype.isnative and not any(s % array.itemsize for s in array.strides):
        place = where.place(array.ctypes.data, name, array.ndim)
    copied = name in ITEMSIZE and (place is None or where.copied)
    return TensorResult(
        dtype=name,
        shape=tuple(array.shape),
        strides=tuple(s // array.itemsize for s in array.strides),
        device="cpu",
        data=array.astype(array.dtype.newbyteorder("=")).tobytes() if copied else b"",
        alias=_alias(array.ctypes.data, steps_of_array(array), where.inputs)
        if place is None
        else None,
        place=place,
    )


def _other(value: Any) -> OtherResult:
    name = _name(type(value))[:_NAME]
    if name == "NoneType" and value is not None:
        name = "NoneType of its own"
    if type(value) in _TENSORS:
        name = f"{_kind(value)} tensor"
    return OtherResult(type=name, text=_shown(value)[:_REPR])


def _kind(tensor: torch.Tensor) -> str:
    """Return what keeps a tensor from being read as others are."""
    if _is_wrapped(tensor):
        return "wrapped"
    if tensor.is_meta:
        return "meta"
    return "quantized" if tensor.is_quantized else str(_layout(tensor)).removeprefix("torch.")


def _is_wrapped(tensor: torch.Tensor) -> bool:
    return _is_functional(tensor) or _is_functorch(tensor)


def _shown(value: Any) -> str:
    if type(value) not in _SHOWN:
        return object.__repr__(value)
    if type(value) in (str, bytes):
        value = value[:_REPR]
    try:
        return repr(value)
    except ValueError:
        # Python writes no int of thousands of digits.
        return object.__repr__(value)


def steps_of(tensor: torch.Tensor) -> list[tuple[int, int]]:
    """Return sizes and byte strides, the element itself last."""
    size = tensor.element_size()
    pairs = zip(tensor.shape, tensor.stride(), strict=True)
    return [*((n, s * size) for n, s in pairs), (2, size)]


def steps_of_array(array: Any) -> list[tuple[int, int]]:
    """Return sizes and byte strides, the element itself last."""
    return [*zip(array.shape, array.strides, strict=True), (2, array.itemsize)]


def span(start: int, steps: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """Return the first byte and the end of memory with an element at `start`."""
    low = start + sum(min(0, (n - 1) * s) for n, s in steps)
    return low, start + sum(max(0, (n - 1) * s) for n, s in steps)


def _alias(
    start: int, steps: Sequence[tuple[int, int]], inputs: Sequence[PlacedInput]
) -> str | None:
    """Return the input whose buffer overlaps the memory from the first to the last element."""
    if any(n == 0 for n, _ in steps):
        return None
    low, high = span(start, steps)
    for placed in inputs:
        begin = placed.buffer.data_ptr()
        if low < begin + placed.buffer.numel() and begin < high:
            return placed.name
    return None
