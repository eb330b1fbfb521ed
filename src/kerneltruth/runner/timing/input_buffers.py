"""Input buffers in the memory of a timed child: one for each call."""

from __future__ import annotations

import os
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from kerneltruth.runner.child import placing
from kerneltruth.runner.timing.messages import Supply

# Elements are moved as integers of their size, because some operators lack some dtypes.
BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_ALIGNMENT = 512
_WORD = 8
# Looked up before a candidate could replace them.
_copy_all = torch.ops.aten._foreach_copy_.default
_multiply = torch.ops.aten.mul_.Tensor
_multiply_all = torch.ops.aten._foreach_mul_.ScalarList
_multiply_into = torch.ops.aten.mul.out
_select = torch.ops.aten.index_select.default
_put = torch.ops.aten.index_copy_.default
_xor = torch.ops.aten.bitwise_xor_.Scalar
_urandom = os.urandom


@dataclass(slots=True)
class InputBuffers:
    """A supply in the child's memory: its pool, and a row for each call, flat.

    Attributes:
        slab: all rows, side by side.
        hidden: the words of all rows that `flip` turns into noise, by a `mask`.
        together: buffers up to this many elements are filled together.
        one_by_one: buffers of this many elements are filled one by one: reading their elements
            once, not twice, pays off.
        most_hidden: bytes of all buffers; of larger ones only a part is hidden.
    """

    supply: Supply
    pool: torch.Tensor
    slab: torch.Tensor | None = None
    flat: tuple[torch.Tensor, ...] = ()
    hidden: torch.Tensor | None = None
    mask: int = 0
    together: int = 2**16
    one_by_one: int = 2**22
    most_hidden: int = 2**28

    @property
    def count(self) -> int:
        """Return the elements of a buffer."""
        return self.supply.span

    def make(self, buffers: int) -> None:
        """Allocate `count` buffers, without contents."""
        if self.supply.fixed:
            return
        step = _ALIGNMENT // self.pool.element_size()
        width = -(-max(self.count, 1) // step) * step
        self.slab, self.flat, self.hidden = None, (), None
        self.slab = torch.zeros((buffers, width), dtype=self.pool.dtype, device=self.pool.device)
        # Once: a view takes a microsecond, and a batch refills hundreds of buffers.
        self.flat = tuple(self.slab[buffer, : self.count] for buffer in range(buffers))
        if self.count:
            self._conceal(self.slab)

    def buffer(self, index: int) -> torch.Tensor:
        """Return a buffer as its call receives it."""
        return tensor_in(self.memory(index), self.supply)

    def memory(self, index: int) -> torch.Tensor:
        """Return the memory in which a buffer's tensor lies, flat."""
        return self.flat[index] if self.flat else self.pool[: self.count]

    def put(self, buffer: int, source: int) -> None:
        """Copy one buffer's contents to another, after the device's pending work."""
        if self.flat and self.count:
            _copy_all([self.flat[buffer]], [self.flat[source]])

    def refill(
        self, buffers: Sequence[int], windows: Sequence[int], scales: Sequence[float]
    ) -> None:
        """Fill buffers with windows of the pool, multiplied by scales if there are any."""
        assert self.slab is not None
        if self.count == 0:
            return
        if self.count <= self.together:
            device = self.pool.device
            starts = torch.tensor(windows, dtype=torch.int64, device=device)
            fresh = _select(_bits(self.pool).unfold(0, self.count, 1), 0, starts)
            if scales:
                factors = torch.tensor(scales, dtype=self.pool.dtype, device=device)
                _multiply(fresh.view(self.pool.dtype), factors.unsqueeze(1))
            index = torch.tensor(buffers, dtype=torch.int64, device=device)
            _put(_bits(self.slab)[:, : self.count], 0, index, fresh)
            return
        fresh = [self.flat[buffer] for buffer in buffers]
        found = [self.pool[start : start + self.count] for start in windows]
        if scales and self.count >= self.one_by_one:
            factors = torch.tensor(scales, dtype=self.pool.dtype)
            for buffer, window, factor in zip(fresh, found, factors, strict=True):
                _multiply_into(window, factor, out=buffer)
            return
        _copy_all(fresh, found)
        if scales:
            _multiply_all(fresh, list(scales))

    def flip(self) -> None:
        """Turn the buffers' contents into noise, or back: on the device, after its pending work."""
        if self.hidden is not None:
            _xor(self.hidden, self.mask)

    def _conceal(self, slab: torch.Tensor) -> None:
        """Choose how much of the buffers is hidden: all, or as much as is quick."""
        used = -(-self.count * slab.element_size() // _WORD)
        width = max(1, min(used, self.most_hidden // (_WORD * max(slab.shape[0], 1))))
        first = int.from_bytes(_urandom(7), "big") % (used - width + 1)
        self.hidden = slab.view(torch.int64)[:, first : first + width]
        self.mask = int.from_bytes(_urandom(_WORD), "big", signed=True) | 1


def tensor_in(window: torch.Tensor, supply: Supply) -> torch.Tensor:
    """Return a supply's tensor, which lies in a window of its pool."""
    if not supply.strides:
        return window.view(supply.shape)
    return window.as_strided(supply.shape, supply.strides)


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.view(BITS.get(tensor.element_size(), tensor.dtype))


# Pools that fill buffers are shared like the memory that empties caches (see `timed_worker`).
_POOLS: weakref.WeakValueDictionary[Any, torch.Tensor] = weakref.WeakValueDictionary()


def pooled(supply: Supply, device: torch.device) -> torch.Tensor:
    """Return the elements of a pool, flat, on the device."""
    dtype = placing.dtype_of(supply.dtype)
    if supply.path is not None:
        about = os.stat(supply.path)
        # A path may be reused after its file is gone, but not a file's number.
        key = (about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns, dtype, device)
        # Calls receive a fixed tensor itself, which they may write to.
        found = None if supply.fixed else _POOLS.get(key)
        if found is None:
            size = about.st_size // dtype.itemsize
            read = torch.from_file(supply.path, shared=False, size=size, dtype=dtype)
            found = read.to(device)
            if not supply.fixed:
                _POOLS[key] = found
        return found
    if supply.pool:
        return torch.frombuffer(bytearray(supply.pool), dtype=dtype).to(device)
    return torch.zeros(supply.span, dtype=dtype, device=device)
