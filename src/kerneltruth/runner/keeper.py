"""The judge's memory that a child works in: inputs, allocations, and what is left of them.

A candidate can patch whatever reads memory in its own process. So inputs, guard bands and results
lie in memory of the judge's, which the child maps, and the judge reads them by itself.
The child says where things lie: a false word about that costs the candidate its result, or is what
it could have done openly, such as allocating more.

Memory that the candidate still uses after a call is not used for another call, nor is that of the
last call's results.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from kerneltruth.runner.arguments import Argument, Data, KeptArgument, TensorArgument
from kerneltruth.runner.gaps import Gaps, Taken
from kerneltruth.runner.kept_memory import KeptHostMemory, KeptMemory, Range
from kerneltruth.runner.observation import (
    ITEMSIZE,
    GuardedAllocation,
    Observation,
    ReturnedResult,
    TensorResult,
)
from kerneltruth.runner.poison import BAND_AFTER, BAND_BEFORE, phase_after, ribbon, side_of
from kerneltruth.runner.protocol import Call, CallMemory, ProtocolError, TooLarge

LEAST_BYTES = 128 * 2**20
# Beside large inputs there is room for this much.
_MOST_ROOM = 2**30
# Elements are moved as integers, those of 16 bytes as two.
_WORD = 8
# How many are compared at once: comparing takes memory.
_AT_ONCE = 2**20


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

    def own_results(self) -> list[tuple[TensorResult, bytes]]:
        """Return the results that lie in no input, whose memory the next call does not get."""
        return [(result, data) for result, data in self.results if result.alias is None]


@dataclass(slots=True)
class _Results:
    """Results as the judge has read them, by index; `late`: one changed while threads ran on."""

    results: list[ReturnedResult] = field(default_factory=list)
    reused: list[int] = field(default_factory=list)
    late: bool = False


class Keeper:
    """Memory for the calls of one child."""

    def __init__(
        self, make: Callable[[int], KeptMemory] = KeptHostMemory, *, least_bytes: int = LEAST_BYTES
    ) -> None:
        """Make no memory yet; `make` makes some of at least this many bytes."""
        self._make, self._least = make, least_bytes
        self._memory: KeptMemory | None = None
        self._last: _LastCall | None = None
        # Results of the call before, which lie in no input.
        self._earlier: list[tuple[TensorResult, bytes]] = []
        # What the child says that the candidate uses; of that, what it returned.
        self._used: list[Range] = []
        self._returned: list[Range] = []
        self._late: tuple[tuple[str, ...], bool] = ((), False)

    @property
    def _size(self) -> int:
        return 0 if self._memory is None else self._memory.size

    @property
    def _there(self) -> KeptMemory:
        assert self._memory is not None
        return self._memory

    def lay_out(self, call: Call) -> Call:
        """Write the inputs of a call to the memory, and return the call that names their places.

        Raises:
            MemoryLost: the memory cannot be had, or reached any more.
        """
        self._late = self.changed()
        # What has changed already, this call does not change.
        last = None if self._late[1] else self._last
        self._earlier = [] if last is None else last.own_results()
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
            self._there.seen[start:end] = np.frombuffer(argument.buffer, np.uint8)
            last.inputs[argument.name] = start, end
            if argument.shown:
                last.given[argument.name] = argument.buffer
            places[argument.name] = _kept(argument, start)
        self._there.put(last.inputs.values())
        arguments: tuple[Argument, ...] = tuple(places.get(a.name, a) for a in call.arguments)
        memory = CallMemory(size=self._size, room=gaps.left(), descriptor=descriptor)
        return replace(call, arguments=arguments, memory=memory)

    def read(self, answer: Observation, *, limit: int) -> Observation:
        """Return the child's answer with what the judge reads itself in place of claims.

        Results of more than `limit` bytes are not read.

        Raises:
            ProtocolError: what the child says of the memory cannot be true.
            TooLarge: the results are over the limit.
            MemoryLost: the memory cannot be reached any more.
        """
        assert self._last is not None
        earlier, self._used = self._returned, list(self._ranges(answer.used))
        used = Taken(self._used)
        self._returned = [each for each in earlier if used.meet(*each)]
        if answer.ended != "returned":
            self._last.given.clear()
            return replace(answer, allocations=(), used=(), reused=())
        allocations = sorted(answer.allocations, key=lambda each: each.start)
        bands = [*self._bands(allocations)]
        places = self._places(answer.results, limit)
        given = [self._last.inputs[name] for name in self._last.given]
        before = [self._range(result) for result, _ in self._earlier]
        self._there.fetch([*given, *bands, *places.values(), *before])
        hits = self._hits(allocations, bands, self._last.call)
        buffers = self._read_inputs(self._last)
        changed = [n for n, data in answer.buffers.items() if buffers[n] != data]
        read = self._read_results(answer.results, places, Taken(earlier))
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
            earlier_changed=self._have_changed(self._earlier),
        )

    def changed(self) -> tuple[tuple[str, ...], bool]:
        """Return which inputs have changed since they were read, and whether a result has.

        Raises:
            MemoryLost: the memory cannot be reached any more.
        """
        if self._last is None:
            return (), False
        inputs, given = self._last.inputs, self._last.given
        read = (self._range(result) for result, _ in self._last.results)
        self._there.fetch([*(inputs[name] for name in given), *read])
        changed = tuple(n for n, data in given.items() if not self._holds(inputs[n][0], data))
        return changed, self._have_changed(self._last.results)

    def _have_changed(self, results: Sequence[tuple[TensorResult, bytes]]) -> bool:
        """Return whether any of some results no longer holds what was read."""
        return any(not _equal(self._elements(r), data) for r, data in results)

    def _renew(self, needed: int) -> int:
        """Make fresh memory with room for inputs of `needed` bytes; return its descriptor."""
        self._memory = self._make(max(self._least, needed + min(3 * needed, _MOST_ROOM)))
        self._used, self._returned, self._earlier = [], [], []
        return self._memory.descriptor

    def _read_inputs(self, last: _LastCall) -> dict[str, Data]:
        """Return what the inputs hold, those that the judge looks at."""
        for name, data in last.given.items():
            start, end = last.inputs[name]
            if not self._holds(start, data):
                last.given[name] = self._there.seen[start:end].tobytes()
        return dict(last.given)

    def _bands(self, allocations: Sequence[GuardedAllocation]) -> Iterator[Range]:
        """Yield where the two bands of each allocation lie, given them in order."""
        end = 0
        for each in allocations:
            size = BAND_BEFORE + each.size + BAND_AFTER
            # As they do not overlap, they are not too many to look at.
            if each.size < 0 or each.start < end or each.start + size > self._size:
                raise ProtocolError(f"an allocation {each.name} that cannot be")
            end = each.start + size
            yield each.start, each.start + BAND_BEFORE
            yield end - BAND_AFTER, end

    def _hits(
        self, allocations: Sequence[GuardedAllocation], bands: Sequence[Range], call: Call
    ) -> list[str]:
        """Name the allocations with a band that is not as the child must have filled it."""
        hits = []
        for each, (first, _), (second, _) in zip(allocations, bands[::2], bands[1::2], strict=True):
            poison = ribbon(call.poison, each.dtype, small=call.small_guards)
            phase = phase_after(each.size)
            before = self._holds(first, poison[:BAND_BEFORE])
            after = self._holds(second, poison[phase : phase + BAND_AFTER])
            if not (before and after):
                hits.append(f"{each.name}, {side_of(before, after)} it")
        return hits

    def _places(self, results: Sequence[ReturnedResult], limit: int) -> dict[int, Range]:
        """Return where the results that are in the memory lie, by their index."""
        places, size = {}, 0
        for index, result in enumerate(results):
            if isinstance(result, TensorResult) and result.place is not None:
                size += math.prod(result.shape) * ITEMSIZE[result.dtype]
                if size > limit:
                    raise TooLarge(f"an answer of {size} bytes is over {limit}")
                places[index] = self._range(result)
        return places

    def _read_results(
        self, results: Sequence[ReturnedResult], places: Mapping[int, Range], earlier: Taken
    ) -> _Results:
        assert self._last is not None
        read = _Results()
        for index, result in enumerate(results):
            if index not in places or not isinstance(result, TensorResult):
                read.results.append(result)
                continue
            start, end = places[index]
            data = self._elements(result).tobytes()
            alias = self._last.input_at(start, end)
            self._last.results.append((replace(result, alias=alias), data))
            read.late |= bool(result.data) and result.data != data
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
        # The stride of a single element leads nowhere, so it may be any number.
        steps = (
            s * size if n > 1 else 0 for n, s in zip(result.shape, result.strides, strict=True)
        )
        strides = (*steps, word)
        place = 0 if 0 in shape else result.place
        try:
            return np.ndarray(shape, f"u{word}", self._there.seen, place or 0, strides)
        except ValueError as error:
            raise ProtocolError(f"a result that cannot be read: {error}") from error

    def _holds(self, start: int, data: Data) -> bool:
        """Return whether the memory holds these bytes."""
        return _equal(self._there.seen[start : start + len(data)], data)

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
