"""Results of earlier calls that a candidate keeps in memory of its own.

The judge sees which results share memory only where that is the judge's. Here the child looks at
all others: whatever lies where a result of an earlier call still lies is no new result.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np
from torch.multiprocessing.reductions import StorageWeakRef

from kerneltruth.runner.child import placing
from kerneltruth.runner.child.shared_memory import SharedMemory

# First byte, end, and whether the memory was freed since.
_Kept = tuple[int, int, Callable[[], bool]]


class KeptResults:
    """Where results of earlier calls lie that have not been freed."""

    def __init__(self) -> None:
        self._kept: list[_Kept] = []

    def returned_before(self, values: Iterable[Any], memory: SharedMemory) -> tuple[int, ...]:
        """Return which of a call's results lie where an earlier one lies, and note where all do."""
        self._kept = [each for each in self._kept if not each[2]()]
        results = {index: _place(value, memory) for index, value in enumerate(values)}
        there = {index: place for index, place in results.items() if place is not None}
        found = [i for i, (start, end, _) in there.items() if self._is_kept(start, end)]
        self._kept += there.values()
        return tuple(found)

    def _is_kept(self, start: int, end: int) -> bool:
        return any(first < end and start < last for first, last, _ in self._kept)


def _place(value: Any, memory: SharedMemory) -> _Kept | None:
    """Return where a result lies, unless that is the judge's memory or nowhere."""
    tensor = placing.plain(value)
    if tensor is not None:
        if not memory.is_of(tensor.device) or not tensor.numel():
            return None
        first, steps = tensor.data_ptr(), placing.steps_of(tensor)
        gone = StorageWeakRef(tensor.untyped_storage()).expired  # type: ignore[no-untyped-call]
    elif type(value) is np.ndarray and value.size:
        owner = value
        while type(owner.base) is np.ndarray:
            owner = owner.base
        first, steps = value.ctypes.data, placing.steps_of_array(value)
        gone = partial(_is_gone, weakref.ref(owner))
    else:
        return None
    if memory.place_of(first) is not None:
        return None
    return (*placing.span(first, steps), gone)


def _is_gone(array: weakref.ref[Any]) -> bool:
    return array() is None
