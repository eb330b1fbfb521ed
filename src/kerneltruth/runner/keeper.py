"""The judge's memory that a child on the CPU works in: inputs, allocations, and what is left.

A candidate can patch whatever reads memory in its own process. So inputs, guard bands and results
lie in memory of the judge's, which the child maps, and the judge reads them in its own mapping.
The child says where things lie: a false word about that costs the candidate its result, or is what
it could have done openly, such as allocating more.

The file can be neither cut off nor extended, so reading it never faults. Memory that the candidate
still uses after a call is not used for another call, nor is that of the last call's results.
"""

from __future__ import annotations

import fcntl
import math
import mmap
import os
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from kerneltruth.runner.arguments import Argument, Data, KeptArgument, TensorArgument
from kerneltruth.runner.gaps import Gaps, Taken
from kerneltruth.runner.observation import (
    ITEMSIZE,
    GuardedAllocation,
    Observation,
    Result,
    TensorResult,
)
from kerneltruth.runner.poison import BAND_AFTER, BAND_BEFORE, phase_after, ribbon, side_of
from kerneltruth.runner.protocol import Call, CallMemory, ProtocolError, TooLarge

# Pages are taken as they are touched; addresses are the child's limit.
LEAST_BYTES = 128 * 2**20
# Beside large inputs there is room for this much.
_MOST_ROOM = 2**30
# From <linux/fcntl.h>: no shrinking, no growing, no further seals.
_ADD_SEALS, _SEALS = 1033, 0x2 | 0x4 | 0x1
# Elements are moved as integers, those of 16 bytes as two.
_WORD = 8
# How many are compared at once: comparing takes memory.
_AT_ONCE = 2**20

Range = tuple[int, int]


@dataclass(slots=True)
class _LastCall:
    """What the judge gave to a call, and has read after it."""

    call: Call
    inputs: dict[str, Range] = field(default_factory=dict)
    # What they held, and those that the judge looks at.
    given: dict[str, Data] = field(default_factory=dict)
    results: list[tuple[TensorResult, bytes]] = field(default_factory=list)

    def input_at(self, start: int, end: int) -> str | None:
        """Return the input in whose buffer a range has a byte."""
        there = (n for n, (s, e) in self.inputs.items() if start < e and s < end and start < end)
        return next(there, None)


@dataclass(slots=True)
class _Results:
    """Results as the judge has read them, by index; `late`: one changed while threads ran on."""

    results: list[Result] = field(default_factory=list)
    reused: list[int] = field(default_factory=list)
    late: bool = False


class Keeper:
    """Memory for the calls of one child."""

    def __init__(self, least_bytes: int = LEAST_BYTES) -> None:
        """Make no memory yet."""
        self._least = least_bytes
        self._size = 0
        self._memory: Any = np.empty(0, np.uint8)
        self._last: _LastCall | None = None
        # What the child says that the candidate uses; of that, what it returned.
        self._used: list[Range] = []
        self._returned: list[Range] = []
        self._late: tuple[tuple[str, ...], bool] = ((), False)

    def lay_out(self, call: Call) -> Call:
        """Write the inputs of a call to the memory, and return the call that names their places."""
        self._late = self.changed()
        given = [a for a in call.arguments if isinstance(a, TensorArgument)]
        gaps = Gaps.beside([*self._used, *self._returned], self._size)
        starts = [gaps.take(len(a.buffer)) for a in given]
        descriptor = None
        if None in starts or gaps.free < self._size // 4 or not self._size:
            descriptor = self._renew(sum(len(a.buffer) for a in given))
            gaps = Gaps((0, self._size))
            starts = [gaps.take(len(a.buffer)) for a in given]
        last = self._last = _LastCall(call)
        places: dict[str, KeptArgument] = {}
        for argument, start in zip(given, starts, strict=True):
            if start is None:
                raise MemoryError(f"no room for {len(argument.buffer)} bytes of {argument.name}")
            end = start + len(argument.buffer)
            self._memory[start:end] = np.frombuffer(argument.buffer, np.uint8)
            last.inputs[argument.name] = start, end
            if argument.shown:
                last.given[argument.name] = argument.buffer
            places[argument.name] = _kept(argument, start)
        arguments: tuple[Argument, ...] = tuple(places.get(a.name, a) for a in call.arguments)
        memory = CallMemory(size=self._size, room=gaps.left(), descriptor=descriptor)
        return replace(call, arguments=arguments, memory=memory)

    def read(self, answer: Observation, *, limit: int) -> Observation:
        """Return the child's answer with what the judge reads itself in place of claims.

        Results of more than `limit` bytes are not read.

        Raises:
            ProtocolError: what the child says of the memory cannot be true.
            TooLarge: the results are over the limit.
        """
        assert self._last is not None
        earlier, self._used = self._returned, list(self._ranges(answer.used))
        used = Taken(self._used)
        self._returned = [each for each in earlier if used.meet(*each)]
        if answer.ended != "returned":
            self._last.given.clear()
            return replace(answer, allocations=(), used=(), reused=())
        hits = self._hits(answer.allocations, self._last.call)
        buffers = self._read_inputs(self._last)
        changed = [n for n, data in answer.buffers.items() if buffers[n] != data]
        read = self._read_results(answer.results, Taken(earlier), limit)
        late_inputs, late_result = self._late
        return replace(
            answer,
            results=tuple(read.results),
            buffers={**buffers, **answer.buffers},
            guards_hit=(*answer.guards_hit, *hits),
            allocations=(),
            used=(),
            reused=tuple(sorted({*answer.reused, *read.reused})),
            inputs_changed=tuple(dict.fromkeys((*late_inputs, *changed))),
            results_changed=answer.results_changed or read.late or late_result,
        )

    def changed(self) -> tuple[tuple[str, ...], bool]:
        """Return which inputs have changed since they were read, and whether a result has."""
        if self._last is None:
            return (), False
        inputs, given = self._last.inputs, self._last.given
        changed = tuple(n for n, data in given.items() if not self._holds(inputs[n][0], data))
        results = self._last.results
        return changed, any(not _equal(self._elements(r), data) for r, data in results)

    def _renew(self, needed: int) -> int:
        """Make fresh memory with room for inputs of `needed` bytes; return its descriptor."""
        size = max(self._least, needed + min(3 * needed, _MOST_ROOM))
        self._size = size + -size % mmap.PAGESIZE
        descriptor = os.memfd_create("kerneltruth", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
        os.ftruncate(descriptor, self._size)
        fcntl.fcntl(descriptor, _ADD_SEALS, _SEALS)
        self._memory = np.frombuffer(mmap.mmap(descriptor, self._size), np.uint8)
        weakref.finalize(self._memory, os.close, descriptor)
        self._used, self._returned = [], []
        return descriptor

    def _read_inputs(self, last: _LastCall) -> dict[str, Data]:
        """Return what the inputs hold, those that the judge looks at."""
        for name, data in last.given.items():
            start, end = last.inputs[name]
            if not self._holds(start, data):
                last.given[name] = self._memory[start:end].tobytes()
        return dict(last.given)

    def _hits(self, allocations: Sequence[GuardedAllocation], call: Call) -> list[str]:
        """Name the allocations with a band that is not as the child must have filled it."""
        hits, end = [], 0
        for each in sorted(allocations, key=lambda a: a.start):
            size = BAND_BEFORE + each.size + BAND_AFTER
            # As they do not overlap, they are not too many to look at.
            if each.size < 0 or each.start < end or each.start + size > self._size:
                raise ProtocolError(f"an allocation {each.name} that cannot be")
            end = each.start + size
            poison = ribbon(call.poison, each.dtype, small=call.small_guards)
            phase = phase_after(each.size)
            before = self._holds(each.start, poison[:BAND_BEFORE])
            after = self._holds(end - BAND_AFTER, poison[phase : phase + BAND_AFTER])
            if not (before and after):
                hits.append(f"{each.name}, {side_of(before, after)} it")
        return hits

    def _read_results(self, results: Sequence[Result], earlier: Taken, limit: int) -> _Results:
        assert self._last is not None
        read, size = _Results(), 0
        for index, result in enumerate(results):
            if not isinstance(result, TensorResult) or result.place is None:
                read.results.append(result)
                continue
            start, end = self._range(result)
            size += math.prod(result.shape) * ITEMSIZE[result.dtype]
            if size > limit:
                raise TooLarge(f"an answer of {size} bytes is over {limit}")
            data = self._elements(result).tobytes()
            self._last.results.append((result, data))
            read.late |= bool(result.data) and result.data != data
            alias = self._last.input_at(start, end)
            if alias is None:
                if earlier.meet(start, end):
                    read.reused.append(index)
                self._returned.append((start, end))
            read.results.append(replace(result, data=result.data or data, alias=alias, place=None))
        return read

    def _range(self, result: TensorResult) -> Range:
        """Return where a result's memory begins and ends, with the gaps between its elements."""
        assert result.place is not None
        size = ITEMSIZE[result.dtype]
        steps = [(n - 1) * s * size for n, s in zip(result.shape, result.strides, strict=True)]
        start = result.place + sum(min(0, step) for step in steps)
        end = result.place + sum(max(0, step) for step in steps) + size
        if 0 in result.shape:
            return 0, 0
        if start < 0 or end > self._size:
            raise ProtocolError("a result that lies outside of the memory")
        return start, end

    def _elements(self, result: TensorResult) -> Any:
        """Return the elements of a result where they lie, as integers."""
        size = ITEMSIZE[result.dtype]
        word = min(size, _WORD)
        shape = (*result.shape, size // word)
        strides = (*(s * size for s in result.strides), word)
        place = 0 if 0 in shape else result.place
        try:
            return np.ndarray(shape, f"u{word}", self._memory, place or 0, strides)
        except ValueError as error:
            raise ProtocolError(f"a result that cannot be read: {error}") from error

    def _holds(self, start: int, data: Data) -> bool:
        """Return whether the memory holds these bytes."""
        return _equal(self._memory[start : start + len(data)], data)

    def _ranges(self, ends: Sequence[int]) -> Iterator[Range]:
        for start, end in zip(ends[::2], ends[1::2], strict=False):
            if not 0 <= start <= end <= self._size:
                raise ProtocolError("memory in use that lies outside of the memory")
            yield start, end


def _equal(there: Any, data: Data) -> bool:
    """Return whether an array's elements in row-major order are these bytes."""
    expected, start = np.frombuffer(data, there.dtype), 0
    if there.size != expected.size:
        return False
    flags: Any = ("external_loop", "buffered", "zerosize_ok")
    for piece in np.nditer(there, flags, order="C", buffersize=_AT_ONCE):
        if not np.array_equal(piece, expected[start : start + len(piece)]):
            return False
        start += len(piece)
    return True


def _kept(argument: TensorArgument, start: int) -> KeptArgument:
    return KeptArgument(
        name=argument.name,
        dtype=argument.dtype,
        shape=argument.shape,
        strides=argument.strides,
        offset=argument.offset,
        start=start,
        size=len(argument.buffer),
        member_of=argument.member_of,
        shown=argument.shown,
    )
