"""Fill tensors of a case: draw values, and round them to the dtype.

A recipe draws float64 values; the tensor's kind and the task's range are applied to them; then they
are rounded.

The bits must be the same on every device and version. So every narrow float is reached through
float32, and NaN gets one bit pattern, since conversions disagree on it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod, sqrt

import torch
from torch import Tensor

from kerneltruth.cases.matrices import matrix, turned
from kerneltruth.cases.philox import Stream
from kerneltruth.cases.recipes import RECIPES, Recipe, some_rows, torch_dtype
from kerneltruth.errors import InternalError
from kerneltruth.tasks.arguments import KEPT_DTYPES, PARTS
from kerneltruth.tasks.spec import INDEX_KINDS, MATRIX_KINDS, ROW_KINDS, TensorSpec

__all__ = ["FLOAT_KINDS", "RECIPES", "draw", "recipe_of", "rounded", "torch_dtype", "within"]

FLOAT_KINDS = (
    *(
        "real",
        "unlimited",
        "positive",
        "negative",
        "probability",
        "unit",
        "sign",
        "ones",
        "tril",
        "triu",
    ),
    *KEPT_DTYPES,
    *ROW_KINDS,
    *MATRIX_KINDS,
)

# A smaller divisor or variance would make every case ill-conditioned; all dtypes hold it.
POSITIVE_FLOOR = 2.0**-6

_NAN_BITS = {
    "float64": (torch.int64, 0x7FF8000000000000),
    "float32": (torch.int32, 0x7FC00000),
    "float16": (torch.int16, 0x7E00),
    "bfloat16": (torch.int16, 0x7FC0),
    "float8_e4m3fn": (torch.uint8, 0x7F),
    "float8_e5m2": (torch.uint8, 0x7F),
}
_LARGEST_FP8 = {"float8_e4m3fn": 448.0, "float8_e5m2": 57344.0}


def rounded(values: Tensor, dtype: str) -> Tensor:
    """Round float64 values to a dtype, to nearest even, the same way everywhere.

    Integers saturate and take 0 for NaN. So do finite values in fp8, whose overflow is not
    agreed upon; an infinity becomes NaN in float8_e4m3fn, which has none. A bool is `value > 0`.
    """
    if dtype in PARTS:
        real = rounded(values, PARTS[dtype])
        return torch.complex(real, torch.zeros_like(real))
    target = torch_dtype(dtype)
    if dtype == "bool":
        return values > 0
    if not target.is_floating_point:
        limits = torch.iinfo(target)
        # float64 cannot hold 2**63 - 1; this is the largest below it.
        high = min(float(limits.max), 2.0**63 - 1024)
        whole = torch.nan_to_num(values.round(), nan=0.0, posinf=high, neginf=float(limits.min))
        return whole.clamp(float(limits.min), high).to(target)
    narrow = values if dtype == "float64" else values.float()
    limit = _LARGEST_FP8.get(dtype)
    not_a_number = narrow.isnan()
    if limit is not None:
        infinite = narrow.isinf()
        narrow = torch.where(infinite, narrow, narrow.clamp(-limit, limit))
        if dtype == "float8_e4m3fn":
            not_a_number |= infinite
    result = narrow.to(target, copy=True)
    if not_a_number.any():
        bits, pattern = _NAN_BITS[dtype]
        result.view(bits)[not_a_number] = pattern
    return result


def recipe_of(name: str, spec: TensorSpec, tensors: tuple[TensorSpec, ...]) -> str:
    """Return the recipe that fills `spec`, one of a task's `tensors`, when the case's is `name`."""
    recipe = RECIPES[name]
    if recipe.focus == "all":
        return name
    if spec.kind not in FLOAT_KINDS:
        return name if recipe.focus == "data" else recipe.companion
    floats = [t for t in tensors if t.kind in FLOAT_KINDS]
    rank = max(len(t.usual) for t in floats)
    if recipe.focus == "bias":
        lower = [t.name for t in floats if len(t.usual) < rank and t.kind in ("real", "unlimited")]
        return name if spec.name in lower[:1] else recipe.companion
    data = [t.name for t in floats if len(t.usual) == rank]
    chosen = data[:1] if recipe.focus == "first" else data
    return name if spec.name in chosen else recipe.companion


def draw(  # noqa: PLR0913 - what a tensor may be, in its many parts
    spec: TensorSpec,
    shape: tuple[int, ...],
    *,
    dtype: str,
    recipe: str,
    rng: Stream,
    extent: int | None = None,
    limits: tuple[float, float] | None = None,
    other: int | None = None,
    form: str | None = None,
) -> Tensor:
    """Return the logical values of one tensor, in its dtype.

    Args:
        spec: what the tensor may hold.
        shape: its concrete shape.
        dtype: the case's working dtype.
        recipe: the recipe of this tensor (see `recipe_of`).
        rng: the tensor's own stream.
        extent: for an index, the number of valid indices.
        limits: the task's inclusive range of real inputs.
        other: for an `index_or`, the value that means none.
        form: for a matrix, which of the forms of its kind; None means the kind's first.
    """
    own = spec.dtype(dtype)
    if 0 in shape:
        return torch.empty(shape, dtype=torch_dtype(own), device=rng.device)
    if own in PARTS:
        drawn = {"recipe": recipe, "rng": rng, "limits": limits, "form": form}
        real = draw(spec, shape, dtype=PARTS[own], **drawn)  # type: ignore[arg-type]
        if spec.kind in MATRIX_KINDS and form != "raw":
            return turned(spec.kind, real, rng, form)
        return torch.complex(real, draw(spec, shape, dtype=PARTS[own], **drawn))  # type: ignore[arg-type]
    columns = shape[-1] if shape else 1
    grid = _Grid(rows=prod(shape) // columns, columns=columns, recipe=recipe, rng=rng)
    if spec.kind in INDEX_KINDS:
        values = _indices(spec, grid, extent, other).to(torch_dtype(own))
    elif spec.kind == "weight":
        values = rounded(_weights(shape, rng, spec), own)
    elif (whole := _whole_numbers(spec.kind, own, grid)) is not None:
        values = whole
    else:
        real = RECIPES[recipe].draw(grid.rows, columns, own, rng)
        if spec.kind in MATRIX_KINDS:
            shrunk = (real / RECIPES[recipe].amplitude).clamp(-1.0, 1.0)
            return rounded(matrix(spec.kind, shrunk.reshape(shape), rng, form), own)
        values = rounded(_of_kind(real, spec.kind, own, RECIPES[recipe], limits), own)
    values = values.reshape(shape)
    return _triangle(values, spec.kind) if spec.kind in ("tril", "triu") else values


@dataclass(frozen=True, slots=True, kw_only=True)
class _Grid:
    """The rows and columns that a recipe fills from a stream."""

    rows: int
    columns: int
    recipe: str
    rng: Stream


def _indices(spec: TensorSpec, grid: _Grid, extent: int | None, other: int | None) -> Tensor:
    if extent is None or extent <= spec.least:
        count = grid.rows * grid.columns
        raise InternalError(f"{spec.name}: {count} indices into an extent of {extent}")
    values = _integers(grid, (spec.least, extent - 1))
    return values if other is None else _some_others(values, other, grid)


def _whole_numbers(kind: str, dtype: str, grid: _Grid) -> Tensor | None:
    """Return the values of a kind that holds whole numbers alone; None for any other."""
    if kind in ("bool", "mask", "integer") and dtype == "bool":
        return _bools(grid, covered=kind == "mask")
    if kind == "packed_int4":
        halves = _integers(replace(grid, columns=2 * grid.columns), (0, 15))
        return (halves[:, ::2] + 16 * halves[:, 1::2]).to(torch.uint8)
    if kind in ("int8", "uint8", "int32", "int64", "integer"):
        info = torch.iinfo(torch_dtype(dtype))
        return _integers(grid, (info.min, info.max)).to(torch_dtype(dtype))
    return None


def _triangle(values: Tensor, kind: str) -> Tensor:
    return values.tril() if kind == "tril" else values.triu()


def _weights(shape: tuple[int, ...], rng: Stream, spec: TensorSpec) -> Tensor:
    """Draw uniformly from the span with every recipe: large weights would hide the data."""
    terms = prod(shape[1:]) if len(shape) > 1 else prod(shape)
    reach = spec.gain / sqrt(max(terms, 1))
    low, high = spec.span or (-reach, reach)
    return rng.uniform(prod(shape)).mul_(high - low).add_(low)


def _rows(x: Tensor, kind: str, amplitude: float) -> Tensor:
    """Give each row of the last dim the form of a kind."""
    count = x.shape[-1]
    match kind:
        case "stochastic":
            return _stochastic(x, amplitude)
        case "log_stochastic":
            return _stochastic(x, amplitude).log()
        case "normalized":
            return _normalized(x)
        case "halves":
            first = x[..., : (count + 1) // 2]
            return torch.cat((first, first), -1)[..., :count]
        case "ascending":
            return x.sort(-1).values
        case "descending":
            return -x.abs().sort(-1).values
        case _:
            return x[..., ::2].repeat_interleave(2, -1)[..., :count]


def _normalized(x: Tensor) -> Tensor:
    """Scale rows to length 1; one without a direction gets equal elements."""
    given = torch.nan_to_num(x, nan=0.0, posinf=1.0, neginf=-1.0)
    # Squares of subnormal or huge values would leave the range of float64.
    largest = given.abs().amax(-1, keepdim=True) if given.shape[-1] else given
    given = torch.where(largest == 0, 1.0, given / largest)
    return given / given.square().sum(-1, keepdim=True).sqrt()


def _stochastic(x: Tensor, amplitude: float) -> Tensor:
    """Draw rows that sum to 1: whole numbers over their sum, which is exact in any order."""
    sizes = torch.nan_to_num(x.abs() * (2.0**16 / amplitude), nan=0.0).clamp(0.0, 2.0**24)
    parts = sizes.floor() + 1.0
    return parts / parts.sum(-1, keepdim=True)


def _of_kind(
    x: Tensor, kind: str, dtype: str, recipe: Recipe, limits: tuple[float, float] | None
) -> Tensor:
    """Adapt the recipe's values to the kind, keeping their structure."""
    shrink = 1.0 / recipe.amplitude
    if kind == "positive":
        if not torch_dtype(dtype).is_floating_point:
            return x.abs().clamp_min(1.0)
        tiny = float(torch.finfo(torch_dtype(dtype)).tiny)
        return x.abs().clamp_min(POSITIVE_FLOOR if recipe.domain == "core" else tiny)
    if kind == "negative":
        return -x.abs()
    if kind == "probability":
        return (x.abs() * shrink).clamp(0.0, 1.0)
    if kind in ROW_KINDS:
        return _rows(x, kind, recipe.amplitude)
    if kind == "ones":
        return torch.ones_like(x)
    if kind == "sign":
        return torch.where(x < 0, -1.0, 1.0).to(x.dtype)
    if kind == "unit":
        return (x * shrink).clamp(-1.0, 1.0)
    if kind == "real" and limits is not None:
        return within(x, recipe.amplitude, limits)
    return x


def within(x: Tensor, amplitude: float, limits: tuple[float, float]) -> Tensor:
    """Bring values into a task's range: scaled where it is narrow, else mirrored at its ends.

    Clamping alone would put most values on the ends, where they tell kernels apart least.
    """
    low, high = limits
    if max(-low, high) < amplitude:
        x = x * ((high - low) / (2 * amplitude)) + (high + low) / 2
    elif low > -amplitude:
        x = torch.where(x < low, 2 * low - x, x)
    elif high < amplitude:
        x = torch.where(x > high, 2 * high - x, x)
    return x.clamp(low, high)


def _integers(grid: _Grid, limits: tuple[int, int]) -> Tensor:
    """Integers in an inclusive range; both ends are among them when there is room."""
    low, high = limits
    rows, columns, rng = grid.rows, grid.columns, grid.rng
    n = rows * columns
    if grid.recipe in ("zeros", "ones"):
        value = min(max(grid.recipe == "ones", low), high)
        return torch.full((rows, columns), value, dtype=torch.int64, device=rng.device)
    if grid.recipe == "ties":
        few = rng.integers(3, low, high + 1)
        return few[rng.integers(n, 0, 3)].reshape(rows, columns)
    if grid.recipe == "constant_rows":
        return rng.integers(rows, low, high + 1).unsqueeze(1).repeat(1, columns)
    values = rng.integers(n, low, high + 1)
    if n >= 2:
        first = int(rng.integers(1, 0, n))
        values[first], values[(first + n // 2) % n] = low, high
    values = values.reshape(rows, columns)
    return values.sort(1).values if grid.recipe == "sorted" else values


def _some_others(values: Tensor, other: int, grid: _Grid) -> Tensor:
    """Replace a quarter of the indices by the value that means none; some recipes replace none."""
    if grid.recipe in ("ones", "sorted"):
        return values
    chosen = grid.rng.coins(values.numel()) & grid.rng.coins(values.numel())
    return torch.where(chosen.reshape(values.shape), other, values)


def _bools(grid: _Grid, *, covered: bool) -> Tensor:
    """Fair coins; `covered` puts at least one True in each row unless the recipe forbids it."""
    rows, columns, rng = grid.rows, grid.columns, grid.rng
    if grid.recipe in ("zeros", "ones"):
        values = torch.full((rows, columns), grid.recipe == "ones", device=rng.device)
    elif grid.recipe == "constant_rows" and not covered:
        values = rng.coins(rows).unsqueeze(1).repeat(1, columns)
    else:
        values = rng.coins(rows * columns).reshape(rows, columns)
    where = rng.integers(rows, 0, columns)
    if grid.recipe in ("zero_rows", "nan_injected"):
        values &= ~some_rows(rows, rng)
    elif covered:
        values[torch.arange(rows, device=rng.device), where] = True
    return values
