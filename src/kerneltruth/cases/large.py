"""Plan a call beyond 2^31 elements or bytes, where a kernel's 32-bit offsets overflow.

No such tensor is ever drawn. The rows of a large input repeat those of a small one, so a few rows
determine the whole result, if the operator computes its rows independently.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Literal

from msgspec.structs import replace

from kerneltruth.cases.values import torch_dtype
from kerneltruth.documents.case import Case
from kerneltruth.tasks.model import CALL, PLAIN_CALL
from kerneltruth.tasks.spec import MATRIX_KINDS, ROW_KINDS, Task, TensorSpec

# The first offset that an int32 does not hold.
LIMIT = 2**31
# Elements or bytes beyond it, enough for several whole blocks of a kernel.
_BEYOND = 2**17
# A block has a prime number of rows, so an offset that wrapped by a power of two meets another row.
_BLOCK_ROWS = (65521, 16381, 4093, 1021, 251, 61, 13)
_BLOCK_ELEMENTS = 2**19
# Judged rows: elements of each range, and ranges spread over the whole beside its critical places.
_RANGE_ELEMENTS = 2048
_MOST_RANGE_ROWS = 64
_SPREAD = 5
# The candidate's further allocations, as a share of its inputs and outputs, and the device's own
# needs.
_TEMPORARY, _RESERVE_BYTES = 0.5, 2**30

Unit = Literal["elements", "bytes"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LargeCall:
    """A call whose largest operand has more than 2^31 elements, or bytes.

    Attributes:
        case: its sizes. The judge draws no tensors of them.
        symbol: the dim of the rows.
        block: the case of the rows that are drawn; row i of the call is row i modulo their number.
        ranges: the first of some rows that are judged, and how many.
        unit: what its largest operand has more than 2^31 of.
        free_bytes: the device's memory that it needs.
    """

    case: Case
    symbol: str
    block: Case
    ranges: tuple[tuple[int, int], ...]
    unit: Unit
    free_bytes: int

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return self.case.sizes[self.symbol]

    @property
    def judged(self) -> list[int]:
        """The rows that are judged, by their place in the block."""
        drawn = self.block.sizes[self.symbol]
        return [row % drawn for start, count in self.ranges for row in range(start, start + count)]


def row_dim(task: Task, case: Case) -> str | None:
    """Return the dim that counts the rows of a task whose rows may be independent.

    It is the first dim of each tensor that has it, and any size of it is allowed.
    """
    settings = case.settings
    writes = task.writable(settings) or task.wants_out(settings)
    other_call = settings.get(CALL, PLAIN_CALL) != PLAIN_CALL
    if task.random or task.foreign or task.contracted() or writes or other_call:
        return None
    if task.unrefereeable is not None or task.claims is not None:
        return None
    present = [spec for spec in task.tensors if spec.name not in case.absent]
    first = next((axes[0] for axes in (task.axes(s, settings) for s in present) if axes), None)
    dim = next((d for d in task.dims if d.symbol == first), None)
    if dim is None or dim.most is not None or dim.role == "reduced":
        return None
    fits = all(_is_of_rows(task, spec, case, dim.symbol) is not None for spec in present)
    return dim.symbol if fits else None


def has_rows(task: Task, spec: TensorSpec, case: Case, symbol: str) -> bool:
    """Return whether a tensor has a row for each of the call's."""
    return bool(_is_of_rows(task, spec, case, symbol))


def _is_of_rows(task: Task, spec: TensorSpec, case: Case, symbol: str) -> bool | None:
    """Whether a tensor's first dim is this one; None where it depends on it in another way."""
    axes = task.axes(spec, case.settings)
    few, more = (_shape(task, spec, case, symbol, n) for n in (7, 8))
    if spec.extent and re.search(rf"\b{symbol}\b", spec.extent):
        return None
    if few == more:
        return False
    related = 2 if spec.kind in _OF_MATRICES else 1 if spec.kind in _OF_ROWS else 0
    leads = axes[0] == symbol and (few[0], *more[1:]) == (7, *few[1:])
    return True if leads and spec.held is None and len(axes) > related else None


# Tensors whose elements depend on each other: within a matrix, or a row.
_OF_MATRICES = (*MATRIX_KINDS, "tril", "triu")
_OF_ROWS = ("mask", *ROW_KINDS)


def _shape(task: Task, spec: TensorSpec, case: Case, symbol: str, size: int) -> tuple[int, ...]:
    return task.shape(spec, case.sizes | {symbol: size}, case.settings)


def large_calls(
    task: Task, case: Case, symbol: str, outputs: Sequence[int], *, narrower: Sequence[str] = ()
) -> Iterator[LargeCall]:
    """Yield calls beyond 2^31, the most telling ones first; each needs less memory than the last.

    The first has more than 2^31 elements, then come those in narrower dtypes, and the last has as
    many bytes.

    Args:
        task: what is computed.
        case: one of ordinary sizes; the calls have its rows, and more of them.
        symbol: see `row_dim`.
        outputs: how many elements a row of each output has.
        narrower: other dtypes that the candidate takes.
    """
    for dtype in (case.dtype, *narrower):
        yield from _large(task, replace(case, dtype=dtype), symbol, outputs, "elements")
    yield from _large(task, case, symbol, outputs, "bytes")


def _large(
    task: Task, case: Case, symbol: str, outputs: Sequence[int], unit: Unit
) -> Iterator[LargeCall]:
    """The call, unless its rows are too long, or the task has no such sizes."""
    operands = [
        (prod(_shape(task, spec, case, symbol, 1)), _bytes(spec.dtype(case.dtype)))
        for spec in task.tensors
        if spec.name not in case.absent and has_rows(task, spec, case, symbol)
    ]
    made = zip(outputs, task.promised_outputs(case.settings), strict=True)
    operands += [(n, _bytes(output.dtype_at(case.dtype))) for n, output in made]
    elements = max(n for n, _ in operands)
    widest = elements if unit == "elements" else max(n * size for n, size in operands)
    drawn = next((rows for rows in _BLOCK_ROWS if rows * elements <= _BLOCK_ELEMENTS), None)
    if drawn is None or not widest:
        return
    rows = -(-(LIMIT + _BEYOND) // widest) | 1
    whole, block = (case.with_dims(**{symbol: n}) for n in (rows, drawn))
    scalars = [repr(task.scalars(c.sizes, c.settings)) for c in (whole, block)]
    fits = all(task.allows(c.sizes, c.settings) for c in (whole, block))
    if not fits or scalars[0] != scalars[1]:
        return
    total = rows * sum(n * size for n, size in operands)
    width = max(1, min(_MOST_RANGE_ROWS, _RANGE_ELEMENTS // elements))
    places = {LIMIT // (n * scale) for n, size in operands if n for scale in (1, size)}
    yield LargeCall(
        case=whole,
        symbol=symbol,
        block=block,
        ranges=_ranges(rows, width, places),
        unit=unit,
        free_bytes=int(total * (1 + _TEMPORARY)) + _RESERVE_BYTES,
    )


def _bytes(dtype: str) -> int:
    return int(torch_dtype(dtype).itemsize)


def _ranges(rows: int, width: int, places: set[int]) -> tuple[tuple[int, int], ...]:
    """Return ranges at both ends, around each place, and spread between; none overlap."""
    spread = {rows * k // _SPREAD for k in range(1, _SPREAD)}
    around = {max(0, place - width // 2) for place in places if place < rows}
    last = rows - width
    starts = sorted(min(start, last) for start in {0, last, *around, *spread})
    kept: list[int] = []
    for start in starts:
        if not kept or start >= kept[-1] + width:
            kept.append(start)
        elif start == last:
            kept[-1] = last
    return tuple((start, width) for start in kept)
