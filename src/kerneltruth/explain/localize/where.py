"""Find which elements are wrong: by place in the output, or by the inputs there. Pure.

Every function returns a pattern that all wrong elements fit, or None.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

import torch
from torch import Tensor

from kerneltruth.explain.localize.evidence import (
    CHANCE,
    FailureEvidence,
    Pattern,
    Values,
    luck,
    matches,
    number,
)

# Rows are few, so luck is more likely; but a property that exactly the wrong ones have tells much.
_EXACT_ROWS = 0.1
_OF_TILES = ("last_tile", "past", "periodic")
_TILES = (1024, 512, 256, 128, 64, 32, 16)


def where(evidence: FailureEvidence, values: Values) -> Pattern | None:
    """Return where the output is wrong, if not everywhere."""
    if bool(values.wrong.all()) or not bool(values.wrong.any()):
        return None
    placed = by_place(values.wrong, evidence.blocks)
    # A single line, unlike a tail of tiles, is probably wrong because of its values.
    certain = placed is not None and placed.tag in _OF_TILES
    return (
        by_row_property(values.wrong, evidence.inputs)
        or (placed if certain else None)
        or by_input_value(values.wrong, evidence.inputs)
        or placed
        or by_row_size(values.wrong, evidence.inputs)
    )


def line_word(rank: int, axis: int) -> str:
    """Name what one index along an axis selects."""
    if rank == 1:
        return "element"
    return {rank - 1: "column", rank - 2: "row"}.get(axis, f"slice of dim {axis}")


def by_place(wrong: Tensor, blocks: Sequence[int]) -> Pattern | None:
    """Match errors along one axis: the last partial tile, past a column, the first or last line."""
    for axis in reversed(range(wrong.dim())):
        found = _along(wrong, axis, blocks)
        if found is not None:
            return found
    if wrong.dim() < 2:
        return None
    # An elementwise kernel knows no rows.
    flat = _along(wrong.reshape(-1), 0, blocks)
    if flat is None or flat.tag not in _OF_TILES:
        return None
    return Pattern(tag=flat.tag, clause=f"{flat.clause}, counted row by row")


def _along(wrong: Tensor, axis: int, blocks: Sequence[int]) -> Pattern | None:
    size = wrong.shape[axis]
    others = [d for d in range(wrong.dim()) if d != axis]
    lines = wrong.any(dim=others) if others else wrong
    if size < 2 or bool(lines.all()):
        return None
    word = line_word(wrong.dim(), axis)
    found = [int(i) for i in lines.nonzero().reshape(-1)]
    share = float(wrong.sum()) / (len(found) * wrong.numel() / size)
    return (
        _last_tile(found, size, blocks, word)
        or _one_line(found, size, wrong, word)
        or (_past(found, size, blocks, word) if share >= 0.5 else None)
        or (_period(found, size, blocks, word) if share >= 0.5 else None)
    )


def _last_tile(found: list[int], size: int, blocks: Sequence[int], word: str) -> Pattern | None:
    tiles = sorted({b for b in blocks if 1 < b < size and size % b}, reverse=True)
    first = found[0]
    fitting = [b for b in tiles if first >= size - size % b]
    if not blocks:
        # Without the candidate's block sizes, only a tail that starts on a tile counts.
        fitting = [b for b in _TILES if b < size and size % b and first == size - size % b]
    full = len(found) == size - first or len(found) >= 2
    fitting = [b for b in fitting if 2 * len(found) >= size % b] if full else []
    if not fitting or luck(chosen=len(found), offered=size - first, total=size) > 0.5:
        return None
    tile = max(fitting, key=lambda b: size - size % b)
    start = size - size % tile
    span = f"{word} {start}" if start == size - 1 else f"{word}s {start} to {size - 1}"
    return Pattern(
        tag="last_tile",
        clause=f"only in the last partial tile of size {tile}, {span} of {size}",
    )


def _one_line(found: list[int], size: int, wrong: Tensor, word: str) -> Pattern | None:
    if len(found) != 1 or (word == "element" and size < 50):
        return None
    if luck(chosen=int(wrong.sum()), offered=wrong.numel() // size, total=wrong.numel()) > CHANCE:
        return None
    if found[0] == 0:
        return Pattern(tag="first_line", clause=f"only in the first {word}")
    if found[0] == size - 1:
        return Pattern(tag="last_line", clause=f"only in the last {word}")
    return Pattern(tag="one_line", clause=f"only in {word} {found[0]}")


def _past(found: list[int], size: int, blocks: Sequence[int], word: str) -> Pattern | None:
    first, last = found[0], found[-1]
    tile = next((b for b in sorted(blocks, reverse=True) if b > 1 and first % b == 0), None)
    note = f", a multiple of the tile size {tile}" if tile else ""
    if luck(chosen=len(found), offered=len(found), total=size) > CHANCE:
        return None
    if first > 0 and last == size - 1 and len(found) == size - first:
        return Pattern(tag="past", clause=f"only from {word} {first} on, of {size}{note}")
    if first == 0 and len(found) == last + 1:
        return Pattern(tag="before", clause=f"only up to {word} {last}, of {size}")
    return None


def _period(found: list[int], size: int, blocks: Sequence[int], word: str) -> Pattern | None:
    for period in sorted({2, 4, 8, *(b for b in blocks if b > 1)}):
        expected = list(range(found[0] % period, size, period))
        if (
            found == expected
            and len(expected) >= 2
            and luck(chosen=len(expected), offered=len(expected), total=size) <= CHANCE
        ):
            return Pattern(
                tag="periodic",
                clause=f"only in {word} {found[0]} of every {period}",
            )
    return None


def by_input_value(wrong: Tensor, inputs: Mapping[str, Tensor]) -> Pattern | None:
    """Match errors where an input element at the same place has some property."""
    same = {n: x for n, x in inputs.items() if x.shape == wrong.shape}
    for name, x in same.items():
        for words, tag, condition in _properties(name, x):
            if matches(wrong, condition):
                return Pattern(tag=tag, clause=f"only where {words}")
    for (one, x), (other, y) in itertools.combinations(same.items(), 2):
        if matches(wrong, x == y):
            return Pattern(tag="ties", clause=f"only where {one} equals {other}")
    for name, x in same.items():
        for words, condition in (("negative", x < 0), ("positive", x > 0)):
            # If not all of them are wrong, a threshold says more.
            if matches(wrong, condition, least=0.98):
                return Pattern(tag=f"input_{words}", clause=f"only where {name} is {words}")
        found = _threshold(wrong, {f"|{name}|": x.abs(), name: x, f"-{name}": -x})
        if found is not None:
            return found
    return None


def _properties(name: str, x: Tensor) -> Iterator[tuple[str, str, Tensor]]:
    yield f"{name} is NaN", "input_nan", x.isnan()
    yield f"{name} is infinite", "input_inf", x.isinf()
    yield f"{name} is 0", "input_zero", x == 0
    yield f"{name} is halfway between two integers", "ties", (x - x.floor()) == 0.5


def _threshold(wrong: Tensor, features: Mapping[str, Tensor]) -> Pattern | None:
    chosen, total = int(wrong.sum()), wrong.numel()
    if luck(chosen=chosen, offered=chosen, total=total) * len(features) > CHANCE:
        return None
    for words, feature in features.items():
        if bool(feature.isnan().any()):
            continue
        low, high = float(feature[~wrong].max()), float(feature[wrong].min())
        if high > low:
            bound = _between(low, high)
            if words.startswith("-"):
                clause = f"only where {words[1:]} < {number(-bound)}"
            else:
                clause = f"only where {words} > {number(bound)}"
            return Pattern(tag="threshold", clause=clause)
    return None


def _between(low: float, high: float) -> float:
    """Return the roundest number from `low` (included) to `high` (excluded)."""
    for digits in range(6):
        for value in (low, (low + high) / 2):
            rounded = float(f"{value:.{digits}e}")
            if low <= rounded < high:
                return rounded
    return low


def rows_of(wrong: Tensor, x: Tensor) -> Tensor | None:
    """Return which rows of an input have a wrong output, if rows of both correspond."""
    if x.dim() == 0 or x.shape[-1] < 2:
        return None
    lead = x.shape[:-1]
    if wrong.shape == lead and wrong.dim():
        return wrong
    if wrong.dim() == x.dim() and wrong.shape[:-1] == lead:
        return wrong.any(-1)
    return None


def by_row_property(wrong: Tensor, inputs: Mapping[str, Tensor]) -> Pattern | None:
    """Match rows of an input that are zero, masked, constant, or hold ties or specials."""
    for name, x in inputs.items():
        rows = rows_of(wrong, x)
        if rows is None or bool(rows.all()):
            continue
        top = x.amax(-1, keepdim=True)
        finite = x.isfinite().all(-1)
        conditions = (
            (f"{name} is all zero", "zero_row", (x == 0).all(-1)),
            (f"{name} is all -inf", "masked_row", (x == -torch.inf).all(-1)),
            (f"{name} holds NaN", "nan_row", x.isnan().any(-1)),
            (f"{name} holds +inf", "inf_row", (x == torch.inf).any(-1)),
            (f"{name} holds -inf", "inf_row", (x == -torch.inf).any(-1)),
            (f"{name} is constant", "constant_row", finite & (x == top).all(-1)),
            (f"the largest of {name} is tied", "ties", finite & ((x == top).sum(-1) > 1)),
            (f"{name} holds equal values", "ties", finite & _repeats(x)),
        )
        for words, tag, condition in conditions:
            exact = matches(rows, condition, least=1.0, chance=_EXACT_ROWS)
            if exact or matches(rows, condition):
                return Pattern(tag=tag, clause=f"only in rows where {words}")
    return None


def _repeats(x: Tensor) -> Tensor:
    return (x.sort(-1).values.diff(dim=-1) == 0).any(-1)


def by_row_size(wrong: Tensor, inputs: Mapping[str, Tensor]) -> Pattern | None:
    """Match rows of an input whose magnitude, or mean against spread, exceeds a value."""
    for name, x in inputs.items():
        rows = rows_of(wrong, x)
        if rows is None or bool(rows.all()) or not bool(x.isfinite().all()):
            continue
        spread = x.std(-1, correction=0)
        features = {
            f"the largest |{name}|": x.abs().amax(-1),
            f"the sum of |{name}|": x.abs().sum(-1),
            f"the mean of {name} over its spread": x.mean(-1).abs() / spread.clamp_min(1e-300),
        }
        found = _threshold(rows, features)
        if found is not None:
            return Pattern(
                tag="row_threshold", clause=found.clause.replace("where", "in rows where")
            )
    return None
