"""Every load and store of a launch, held against the memory that it may touch.

Only lanes that are not masked off count. What lies outside is noted with its place in the source;
it is not written, and read only where there is memory that can be read.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
import triton.runtime.interpreter as it

from kerneltruth.runner.emulation import buffers, stores
from kerneltruth.runner.emulation.buffers import Region, Table
from kerneltruth.runner.interpreter.numbers import Array
from kerneltruth.runner.observation import Access

_count = np.count_nonzero


class _State:
    table: Table | None = None
    kernel = ""
    filename = ""


class _UnknownMemory(Exception):
    """An argument is memory of a kind that is not known here."""


@contextmanager
def watching(fn: Any, arguments: Mapping[str, Any]) -> Iterator[None]:
    """Begin a launch of `fn` with these arguments, whose accesses are checked."""
    before = _State.table, _State.kernel, _State.filename
    try:
        regions = [*_regions(arguments), *buffers.exposed()]
    except _UnknownMemory:
        regions = []
    table = Table(regions) if regions else None
    _State.table, _State.kernel, _State.filename = table, fn.__name__, fn.__code__.co_filename
    try:
        yield
    finally:
        _State.table, _State.kernel, _State.filename = before


def lanes(
    addresses: Array, mask: Array | None, size: int, program: Any, *, write: bool
) -> Array | None:
    """Return which lanes to perform; None if all unmasked lanes are within bounds.

    A size is in bytes. `program` is the one of the grid that asks, to `write` by a store or an
    atomic operation.
    """
    if write and stores.is_on():
        stores.note(addresses, mask)
    table = _State.table
    if table is None:
        return None
    # Most often all lanes lie where the first does: three NumPy calls, whatever the mask.
    limits = table.limits(addresses.item(0), size)
    if limits is not None:
        wrong = addresses - limits[0] > limits[1]
        if mask is not None:
            wrong = wrong & mask
        if not _count(wrong):
            return None
    on = np.ones(addresses.shape, dtype=bool) if mask is None else mask
    right = table.inside(addresses, size)
    wrong = on & ~right
    if not _count(wrong):
        return None
    _note(table, int(addresses[wrong][0]), program, write=write)
    allowed: Array = on & (right if write else table.inside(addresses, size, readable=True))
    return allowed


def _regions(arguments: Mapping[str, Any]) -> Iterator[Region]:
    for name, value in arguments.items():
        yield from _regions_in(name, value)


def _regions_in(name: str, value: Any) -> Iterator[Region]:
    if isinstance(value, tuple | list):
        for item in value:
            yield from _regions_in(name, item)
        return
    if hasattr(value, "base") and hasattr(value, "block_shape"):
        value = value.base
    if not hasattr(value, "data_ptr"):
        return
    tensor = it._unwrap_tensor(value)
    if not isinstance(tensor, torch.Tensor):
        raise _UnknownMemory
    yield buffers.region_of(f"`{name}`", tensor)


def _note(table: Table, address: int, program: Any, *, write: bool) -> None:
    region = table.nearest(address)
    if region is None:
        return
    buffers.note(
        Access(
            kernel=_State.kernel,
            line=_line(),
            write=write,
            program=tuple(int(i) for i in program),
            buffer=region.name,
            element=(address - region.low) // region.itemsize,
            elements=(region.high - region.low) // region.itemsize,
        )
    )


def _line() -> int | None:
    """Return the line of the candidate's source: in the innermost function of its file."""
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename == _State.filename:
            return frame.f_lineno
        frame = frame.f_back  # type: ignore[assignment]
    return None
