"""Recipes: named ways to draw a matrix of float64 values.

Each draws rows by columns (all leading dims, the last dim), so structure such as sorted rows needs
no knowledge of the tensor's rank. The published ones fill every tensor; the structured ones fill
the tensors that carry the data, since a weight of zeros or a bias of 1000 would hide the data.

Only operations whose result is fixed by IEEE 754 are used, one at a time: no division by a
constant (a GPU multiplies by the reciprocal), no transcendental function, no fused product and sum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Literal

import torch
from torch import Tensor

from kerneltruth.cases.philox import Stream
from kerneltruth.documents.case import Domain
from kerneltruth.errors import InternalError

DrawValues = Callable[[int, int, str, Stream], Tensor]
Focus = Literal["all", "data", "first", "bias"]

# Where exp, or a formula made of it, overflows or vanishes: 9.7 and 11.09 in fp16 (cosh-like
# formulas earlier), 17.3 its subnormals, 44.4 exp(2x) and 88.7 exp(x) in fp32 and bf16, 87.3 and
# 103.97 their subnormals, 20 where log(1 + exp(x)) is x in fp32, 5.5 in bf16.
EXP_EDGES = (5.5, 9.7, 11.09, 17.3, 20.0, 44.4, 87.3, 88.7, 104.0)


# The recipe of a task with its own values; tensors without them are drawn from [0, 1).
OWN = "own"
# Recipes of benchmark distributions under other names.
_OF_BENCHMARK = {"uniform": "uniform01", "wide": "uniform"}


@dataclass(frozen=True, slots=True)
class Recipe:
    """How values are drawn.

    Attributes:
        draw: (rows, columns, dtype, stream) to float64 of that shape.
        domain: the core domain if every value is finite and moderate.
        amplitude: the size that values rarely exceed; kinds and ranges scale by it.
        focus: which float tensors it fills: `all`, `data` (those of the highest rank), `first`
            (the first of these) or `bias` (the first real one of a lower rank, whatever the task's
            range of values).
        companion: the recipe of the other tensors.
        finite: recipes of finite values to compare with, for one whose values are not all finite:
            as large as those, as ordinary as the rest, and its zeros.
    """

    summary: str
    draw: DrawValues
    _: KW_ONLY
    domain: Domain = "core"
    amplitude: float = 10.0
    focus: Focus = "all"
    companion: str = "uniform"
    finite: tuple[str, ...] = ()


def benchmark_recipe(distribution: str) -> str:
    """Return the recipe that draws as a benchmark does."""
    return _OF_BENCHMARK.get(distribution, distribution)


def torch_dtype(name: str) -> torch.dtype:
    """Return the torch dtype of that name."""
    dtype = getattr(torch, name, None)
    if not isinstance(dtype, torch.dtype):
        raise InternalError(f"{name!r} is no dtype")
    return dtype


def some_rows(rows: int, rng: Stream) -> Tensor:
    """Choose about half of the rows, at least one: bool of shape (rows, 1)."""
    words = rng.words(rows + 1)
    chosen = words[:rows] >= 2**31
    chosen[int(words[rows]) % rows] = True
    return chosen.unsqueeze(1)


def _between(low: float, high: float) -> DrawValues:
    """Draw uniformly from [low, high)."""

    def draw(rows: int, columns: int, dtype: str, rng: Stream) -> Tensor:
        del dtype
        return rng.uniform(rows * columns).reshape(rows, columns).mul_(high - low).add_(low)

    return draw


def _constant(value: float) -> DrawValues:
    def draw(rows: int, columns: int, dtype: str, rng: Stream) -> Tensor:
        del dtype
        return torch.full((rows, columns), value, dtype=torch.float64, device=rng.device)

    return draw


_uniform = _between(-10.0, 10.0)


def _normal(rows: int, columns: int, dtype: str, rng: Stream) -> Tensor:
    del dtype
    return rng.normal(rows * columns).reshape(rows, columns)


def _pick(table: tuple[float, ...], at: Tensor) -> Tensor:
    return torch.tensor(table, dtype=torch.float64, device=at.device)[at]


def _signs(n: int, rng: Stream) -> Tensor:
    return (rng.words(n) >> 31).mul_(2).sub_(1).double()


def _nan_injected(rows: int, columns: int, dtype: str, rng: Stream) -> Tensor:
    """Choose half of the rows, so that a reduction also shows rows without special values."""
    values = _uniform(rows, columns, dtype, rng)
    dirty = some_rows(rows, rng)
    hit = (rng.integers(rows * columns, 0, 10) == 0).reshape(rows, columns) & dirty
    hit[int(dirty[:, 0].nonzero()[0]), int(rng.integers(1, 0, columns))] = True
    special = (float("nan"), float("inf"), float("-inf"), 0.0)
    kinds = _pick(special, rng.integers(rows * columns, 0, 4)).reshape(rows, columns)
    return torch.where(hit, kinds, values)


def _adversarial(rows: int, columns: int, dtype: str, rng: Stream) -> Tensor:
    """Draw zero, tiny, huge, ordinary and non-finite values; the last in half of the rows only."""
    n = rows * columns
    kind = torch_dtype(dtype)
    if kind.is_floating_point:
        limits = torch.finfo(kind)
        tiny, least, large = float(limits.tiny), float(limits.tiny * limits.eps), limits.max / 10
    else:
        top = 1 if dtype == "bool" else torch.iinfo(kind).max
        tiny, least, large = 1.0, 1.0, float(top)
    fraction = rng.uniform(n)
    sign = _signs(n, rng)
    special = (float("nan"), float("inf"), float("-inf"))
    choices = torch.stack(
        (
            torch.zeros(n, dtype=torch.float64, device=rng.device),
            (fraction + 0.5) * tiny * sign,
            (fraction * 8).floor().add_(1).mul_(least).mul_(sign),
            sign * large,
            fraction * 1000.0 * sign,
            _pick(special, (fraction * 3).long()),
        )
    )
    at = rng.integers(n, 0, 6).reshape(rows, columns)
    at = torch.where((at == 5) & ~some_rows(rows, rng), 4, at).reshape(1, n)
    return choices.gather(0, at).reshape(rows, columns)


def _constant_rows(rows: int, columns: int, dtype: str, rng: Stream) -> Tensor:
    return _uniform(rows, 1, dtype, rng).repeat(1, columns)


def _ties(rows: int, columns: int, dtype: str, rng: Stream) -> Tensor:
    few = _uniform(4, 1, dtype, rng).reshape(4)
    return few[rng.integers(rows * columns, 0, 4)].reshape(rows, columns)


def _sorted(rows: int, columns: int, dtype: str, rng: Stream) -> Tensor:
    ascending = _uniform(rows, columns, dtype, rng).sort(1).values
    return torch.where(rng.coins(rows).unsqueeze(1), ascending, ascending.flip(1))


def _fading(rows: int, columns: int, dtype: str, rng: Stream) -> Tensor:
    """Draw squares of uniforms, largest first: a sum in few bits loses the small ones.

    Unordered values of one sign show that less, since their rounding errors cancel.
    """
    del dtype
    values = rng.uniform(rows * columns).reshape(rows, columns).sort(1, descending=True).values
    # Each row has another size; otherwise one constant would be right for all of their sums.
    sizes = rng.uniform(rows).unsqueeze(1).add_(0.25)
    return values.mul_(values).mul_(sizes)


def _one_hot(rows: int, columns: int, dtype: str, rng: Stream) -> Tensor:
    values = _constant(0.0)(rows, columns, dtype, rng)
    values[torch.arange(rows, device=rng.device), rng.integers(rows, 0, columns)] = 1.0
    return values


def _rank_one(rows: int, columns: int, dtype: str, rng: Stream) -> Tensor:
    side = _between(-3.0, 3.0)
    return side(rows, 1, dtype, rng) * side(1, columns, dtype, rng)


def _mixed_amplitude(rows: int, columns: int, dtype: str, rng: Stream) -> Tensor:
    scales = tuple(2.0**e for e in range(-13, 10))
    scale = _pick(scales, rng.integers(rows * columns, 0, len(scales)))
    return _between(-1.0, 1.0)(rows, columns, dtype, rng) * scale.reshape(rows, columns)


def _large_same_sign(rows: int, columns: int, dtype: str, rng: Stream) -> Tensor:
    """Draw a mean of 1000 and a spread of a few half-precision ulps: variance must not cancel."""
    spread = {"float16": 32.0, "bfloat16": 256.0}.get(dtype, 2.0)
    values = _between(1000.0, 1000.0 + spread)(rows, columns, dtype, rng)
    return -values if int(rng.words(1)) % 4 == 0 else values


def _far_from_zero(rows: int, columns: int, dtype: str, rng: Stream) -> Tensor:
    """Draw a mean of 4096 and a spread of some ulps, which E[x*x] - E[x]**2 loses."""
    spread = {"float16": 64.0, "bfloat16": 512.0}.get(dtype, 4.0)
    return _between(4096.0, 4096.0 + spread)(rows, columns, dtype, rng)


def _common_offset(rows: int, columns: int, dtype: str, rng: Stream) -> Tensor:
    return _offsets(_constant(16.0)(rows, columns, dtype, rng), dtype)


def _channel_offsets(rows: int, columns: int, dtype: str, rng: Stream) -> Tensor:
    return _offsets(rng.integers(rows * columns, 4, 17).double().reshape(rows, columns), dtype)


def _offsets(steps: Tensor, dtype: str) -> Tensor:
    """Draw up to 4096, which TF32 holds; less in half precision, which also holds the sums."""
    return steps * {"float16": 4.0, "bfloat16": 1.0}.get(dtype, 256.0)


def _signed_zeros(rows: int, columns: int, dtype: str, rng: Stream) -> Tensor:
    """Draw a quarter 0.0, a quarter -0.0: a comparison with 0 does not see the sign."""
    values = _uniform(rows, columns, dtype, rng)
    kind = rng.integers(rows * columns, 0, 4).reshape(rows, columns)
    zero = torch.where(kind == 0, -0.0, 0.0).to(values.dtype)
    return torch.where(kind < 2, zero, values)


def _cancelling_pairs(rows: int, columns: int, dtype: str, rng: Stream) -> Tensor:
    values = _between(-100.0, 100.0)(rows, columns, dtype, rng)
    half = columns // 2
    values[:, half : 2 * half] = -values[:, :half]
    return values


def _exp_edge(rows: int, columns: int, dtype: str, rng: Stream) -> Tensor:
    """Draw one edge value per row in half of the rows, so that none hides it; mixed in the rest."""
    n = rows * columns
    each = rng.integers(n, 0, len(EXP_EDGES)).reshape(rows, columns)
    common = rng.integers(rows, 0, len(EXP_EDGES)).unsqueeze(1)
    by_row = some_rows(rows, rng) if rows > 1 else torch.zeros_like(common, dtype=torch.bool)
    sign = _signs(n, rng).reshape(rows, columns)
    edge = _pick(EXP_EDGES, torch.where(by_row, common, each)) * sign
    return edge + _between(-1.0, 1.0)(rows, columns, dtype, rng)


def _zero_rows(rows: int, columns: int, dtype: str, rng: Stream) -> Tensor:
    values = _uniform(rows, columns, dtype, rng)
    return torch.where(some_rows(rows, rng), 0.0, values)


def _large(rows: int, columns: int, dtype: str, rng: Stream) -> Tensor:
    size = _between(30.0, 1000.0)(rows, columns, dtype, rng)
    return size * _signs(rows * columns, rng).reshape(rows, columns)


RECIPES: dict[str, Recipe] = {
    "uniform": Recipe("uniform in [-10, 10)", _uniform),
    OWN: Recipe("as the task's author draws them", _between(0.0, 1.0), amplitude=1.0),
    "uniform01": Recipe("uniform in [0, 1)", _between(0.0, 1.0), amplitude=1.0),
    "normal": Recipe("mean 0, variance 1", _normal, amplitude=5.0),
    "small": Recipe("uniform in [-1, 1)", _between(-1.0, 1.0), amplitude=1.0),
    "large": Recipe(
        "sizes from 30 to 1000, both signs",
        _large,
        amplitude=1000.0,
        focus="data",
        companion="small",
    ),
    "negative": Recipe(
        "all below zero: a 0 from a masked lane would win a max",
        _between(-10.0, -0.125),
        focus="data",
    ),
    "nan_injected": Recipe(
        "uniform, 5% replaced by NaN, infinities or 0",
        _nan_injected,
        domain="extended",
        finite=("large", "uniform", "signed_zeros"),
    ),
    "adversarial": Recipe(
        "zero, subnormal, huge, ordinary and non-finite values",
        _adversarial,
        domain="extended",
        amplitude=1000.0,
        finite=("large", "uniform", "signed_zeros"),
    ),
    "constant_rows": Recipe("one value per row", _constant_rows, focus="data"),
    "ties": Recipe("four distinct values", _ties, focus="data"),
    "sorted": Recipe("rows ascend or descend", _sorted, focus="data"),
    "fading": Recipe("positive values, largest first", _fading, amplitude=1.0, focus="data"),
    "one_hot": Recipe("a single 1 per row", _one_hot, amplitude=1.0, focus="first"),
    "rank_one": Recipe("an outer product", _rank_one, focus="data"),
    "mixed_amplitude": Recipe(
        "sizes from 1e-4 to 500 side by side", _mixed_amplitude, amplitude=512.0, focus="data"
    ),
    "large_same_sign": Recipe(
        "near 1000, all of one sign",
        _large_same_sign,
        amplitude=1024.0,
        focus="data",
        companion="small",
    ),
    "far_from_zero": Recipe(
        "near 4096: the spread is a thousandth of the mean",
        _far_from_zero,
        amplitude=4608.0,
        focus="data",
        companion="small",
    ),
    # Values that E[x*x] - E[x]**2 loses after a matrix product: in TF32, products of large factors
    # would be as uncertain as the variance to detect.
    "common_offset": Recipe(
        "small, but 4096 is added to each sum of products",
        _common_offset,
        amplitude=4096.0,
        focus="bias",
        companion="small",
    ),
    "channel_offsets": Recipe(
        "small, but 1024 to 4096 is added to all sums of products of a channel",
        _channel_offsets,
        amplitude=4096.0,
        focus="bias",
        companion="small",
    ),
    "cancelling_pairs": Recipe(
        "each value stands beside its negative", _cancelling_pairs, amplitude=100.0, focus="first"
    ),
    "exp_edge": Recipe(
        "where exp overflows or vanishes",
        _exp_edge,
        amplitude=106.0,
        focus="data",
        companion="small",
    ),
    "zeros": Recipe("all 0", _constant(0.0), amplitude=1.0, focus="first"),
    "ones": Recipe("all 1", _constant(1.0), amplitude=1.0, focus="first"),
    "signed_zeros": Recipe("half of them 0, of either sign", _signed_zeros, focus="data"),
    "zero_rows": Recipe("some rows all 0", _zero_rows, focus="data"),
}
