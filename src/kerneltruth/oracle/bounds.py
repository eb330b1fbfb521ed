"""Bounds: the per-element error that a correct kernel may show on a case.

`spread`, the default, is made of three parts, all per element:

    bound = FACTOR * spread  +  RMS_FACTOR * growth * (row's rms of the spread)  +  floor

- *spread*: the largest deviation from float64 of any admissible implementation (`admissible.py`).
- *row's rms*: rounding may affect an element's neighbours as much as the element; `growth` widens
it with the square root of the number of summed terms, since orders of accumulation differ. For
whole models in a narrow dtype, where every layer rounds, a row is a whole sample.
- *floor*: some ulps of the element and some of the largest magnitude in its row, because an error
  that is small against the output's own scale is not a bug. Under the TF32 policy a float32
  matrix product is held to TF32's ulp.

If a function of one tensor is pointwise, each element counts by its own size instead (see
`of_own_element`).

A kernel may add n terms sequentially in the dtype of its result, while PyTorch adds them pairwise.
Every partial sum rounds. Let u be half an ulp. The error has a root mean square of 0.25 u sqrt(n)
relative to the sum where the terms have one sign, and of 0.3 u n times a term's size where they
have both; a million elements reach six times that. `growth` and the floor admit it. A result in
half precision is summed in float32, where such errors vanish beside its own rounding.

A bound that a decoy passes is too wide to judge that case (`decoys.py`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from kerneltruth.documents.case import Case
from kerneltruth.errors import UserError
from kerneltruth.oracle.admissible import TF32_MANTISSA_BITS, Implementation
from kerneltruth.oracle.dtypes import (
    all_finite,
    epsilon,
    smallest_normal,
    smallest_subnormal,
)
from kerneltruth.tasks.spec import Task, evaluate

FACTOR = 1.5
RMS_FACTOR = 2.0
# Terms that double the bound, for partial sums in the result's own precision and in a finer one.
FULL_TERMS, FINER_TERMS = 16, 256
SUMMED_IN_FULL = ("float32", "float64")
# The most terms whose sequential sum stays within an element's floor.
FLOOR_TERMS = 100

# Outputs up to this many elements are compared with all implementations, or decoys, at once.
SMALL = 2**16
# Bounds of larger outputs are made in parts of this many elements, whole rows at a time.
PART = 2**17
_LEAST_ROW = 4

METHODS = ("spread", "calibrated", "fixed")

# How many ulps of the element, and of the row's largest magnitude, a correct kernel may be off.
# float32: GPU approximations of exp, division, sqrt and sin are a few ulps each (measured).
# Narrower formats: an implementation that rounds once or twice more than needed is not wrong.
FLOOR_ULPS: Mapping[str, tuple[float, float]] = {
    "float64": (64.0, 16.0),
    "float32": (8.0, 2.0),
    "float16": (2.0, 1.0),
    "bfloat16": (1.0, 0.5),
    "float8_e4m3fn": (1.0, 0.5),
    "float8_e5m2": (1.0, 0.5),
}

# A row this much smaller than all results has a scale of its own.
FAR_BELOW = 0.5

# Used by `fixed` where no tolerance is published for the operator.
FIXED_DEFAULT: Mapping[str, float] = {
    "float64": 1e-9,
    "float32": 1e-4,
    "float16": 2e-2,
    "bfloat16": 1e-1,
    "float8_e4m3fn": 1.0,
    "float8_e5m2": 2.0,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How strict the judge is.

    Attributes:
        method: one of METHODS.
        tf32: whether float32 matrix products may use TF32, as Triton's `tl.dot` does by default.
        calibration: absolute bound by "task/dtype", for `calibrated`.
    """

    method: str = "spread"
    tf32: bool = True
    calibration: Mapping[str, float] | None = None

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise UserError(
                f"--bounds {self.method!r}: must be one of {', '.join(METHODS)}; see `check --help`"
            )


def absolute_bound(task: Task, dtype: str, reference: torch.Tensor, policy: Policy) -> torch.Tensor:
    """The `fixed` or `calibrated` bound: one absolute tolerance for every element."""
    if policy.method == "fixed":
        tolerance = task.tolerance.get(dtype, FIXED_DEFAULT[dtype])
    else:
        known = policy.calibration or {}
        if f"{task.key}/{dtype}" not in known:
            raise UserError(
                f"no calibrated bound for {task.name} in {dtype}: controls have not been measured; "
                "use --bounds spread, or add the task's control to the corpus and calibrate"
            )
        tolerance = known[f"{task.key}/{dtype}"]
    return torch.full_like(reference, tolerance, dtype=torch.float64)


def spread_bound(
    task: Task,
    case: Case,
    dtype: str,
    reference: torch.Tensor,
    implementations: Sequence[Implementation],
    output: int,
    *,
    tf32: bool,
    overflowing: torch.Tensor | None = None,
) -> torch.Tensor:
    """The `spread` bound of one floating output; infinite where the element is not settled.

    The reference is float64. `tf32` says whether the policy admits TF32 here. `overflowing` marks
    elements whose partial sums may overflow (see `admissible.overflowing`).
    """
    order = _order(task, case, dtype, tf32=tf32)
    results = [i for i in implementations if i.outputs[output].shape == reference.shape]
    given = [(i.outputs[output], i.settles) for i in results]
    beyond = None
    if overflowing is not None and overflowing.shape == reference.shape:
        beyond = overflowing
    rows = reference.shape[-1] if reference.ndim >= 2 else 0
    if task.narrowed.get(dtype):
        return _bound(dtype, reference, given, order, beyond, tf32=tf32, by_sample=True)
    if rows < _LEAST_ROW or reference.numel() <= PART or reference.device.type != "cpu":
        return _bound(dtype, reference, given, order, beyond, tf32=tf32)
    # Row by row, with temporaries that stay in the processor's caches.
    bound = torch.empty(reference.shape, dtype=torch.float64)
    step = max(PART // rows, 1)

    def parts(whole: torch.Tensor) -> Sequence[torch.Tensor]:
        return torch.split(whole.reshape(-1, rows), step)

    others = [parts(result) for result, _ in given]
    marks = None if beyond is None else parts(beyond)
    for k, (part, made) in enumerate(zip(parts(reference), parts(bound), strict=True)):
        mine = [(o[k], settles) for o, (_, settles) in zip(others, given, strict=True)]
        mark = None if marks is None else marks[k]
        made.copy_(_bound(dtype, part, mine, order, mark, tf32=tf32))
    return bound


def _bound(
    dtype: str,
    reference: torch.Tensor,
    given: Sequence[tuple[torch.Tensor, bool]],
    order: _Order,
    overflowing: torch.Tensor | None,
    *,
    tf32: bool,
    by_sample: bool = False,
) -> torch.Tensor:
    finite = torch.isfinite(reference)
    spread, unsettled, lost = _spread(reference, given)
    neighbours = _row_rms(spread)
    if by_sample and spread.ndim >= 3 and spread.numel():
        # A value that all evaluations cut off, as ReLU does, may survive in another.
        around = spread.square().mean(tuple(range(1, spread.ndim)), keepdim=True).sqrt()
        neighbours = torch.maximum(neighbours, around)
    bound = FACTOR * spread + RMS_FACTOR * order.growth * neighbours
    finite_reference = torch.where(finite, reference, 0.0)
    bound = bound + _floor(dtype, finite_reference, order.floor, tf32=tf32)
    # Overflow gives infinity, unless NaN is a right result here.
    unsettled &= lost | ~_overflows(reference, dtype)
    if overflowing is not None:
        unsettled |= overflowing
    return torch.where(unsettled, torch.inf, bound)


def of_own_element(
    task: Task,
    case: Case,
    dtype: str,
    reference: torch.Tensor,
    implementations: Sequence[Implementation],
    *,
    conditioning: torch.Tensor,
    within: torch.Tensor,
) -> torch.Tensor:
    """The bound of elements that do not depend on their neighbours.

    The neighbours' size says nothing about an element then. Rounding counts relative to the
    element's own size, or to 1: a kernel's intermediate results may be larger than its result. The
    bound is no wider than the usual one, `within`, unless the row is smaller than 1 beside others:
    such a row is not held to less than all results are. For `conditioning` see
    `right_results.RightResults`.
    """
    order = _order(task, case, dtype, tf32=False)
    results = [i for i in implementations if i.outputs[0].shape == reference.shape]
    spread, _, _ = _spread(reference, [(i.outputs[0], i.settles) for i in results])
    finite = torch.where(torch.isfinite(reference), reference, 0.0)
    scale = finite.abs().clamp(min=1.0)
    neighbours = _row_rms(spread / scale) * scale
    bound = FACTOR * torch.maximum(spread, conditioning)
    bound = bound + RMS_FACTOR * order.growth * neighbours
    bound = bound + _floor(dtype, finite, order.floor, tf32=False, scale=scale)
    common = finite.abs().amax().clamp(max=1.0) if finite.numel() else finite
    least = FACTOR * spread + _floor(dtype, finite, order.floor, tf32=False, scale=common)
    bound = torch.maximum(torch.minimum(bound, within), least)
    return torch.where(torch.isfinite(within), bound, within)


def has_smaller_rows(results: torch.Tensor) -> bool:
    """Whether some row's largest magnitude is far below 1 and below that of all results."""
    if results.ndim < 2 or results.shape[-1] < _LEAST_ROW or not results.numel():
        return False
    rows = torch.nan_to_num(results.abs(), nan=0.0, posinf=0.0).amax(-1)
    return bool((rows < FAR_BELOW * rows.amax().clamp(max=1.0)).any())


def _spread(
    reference: torch.Tensor, given: Sequence[tuple[torch.Tensor, bool]]
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The largest deviation per element, which elements are unsettled, and which because of a NaN.

    `given` are admissible results, and whether a non-finite value in them unsettles its element.
    """
    unsettled, lost = (torch.zeros(reference.shape, dtype=torch.bool) for _ in range(2))
    if given and reference.numel() <= SMALL and reference.is_contiguous():
        results = torch.stack([result for result, _ in given]).to(torch.float64)
        deviations = results.sub_(reference).abs_()
        if all_finite(deviations):
            return deviations.amax(0), unsettled, lost
    spread = torch.zeros_like(reference)
    finite = torch.isfinite(reference)
    for result, settles in given:
        if settles:
            unsettled |= ~_same_class(result, reference)
            lost |= torch.isnan(result)
        comparable = finite & torch.isfinite(result)
        spread = torch.maximum(spread, torch.where(comparable, (result - reference).abs(), 0.0))
    return spread, unsettled, lost


def integer_slack(
    reference: torch.Tensor, implementations: Sequence[Implementation], output: int
) -> torch.Tensor:
    """How far admissible implementations move an integer output from the reference."""
    slack = torch.zeros(reference.shape, dtype=torch.float64)
    for implementation in implementations:
        result = implementation.outputs[output]
        if result.shape == reference.shape:
            moved = (result.to(torch.float64) - reference.to(torch.float64)).abs()
            slack = torch.maximum(slack, torch.nan_to_num(moved, nan=0.0))
    return slack


def _same_class(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Where both are finite, both NaN, or the same infinity."""
    both_finite = torch.isfinite(a) & torch.isfinite(b)
    return both_finite | (torch.isnan(a) & torch.isnan(b)) | (a == b)


def _overflows(reference: torch.Tensor, dtype: str) -> torch.Tensor:
    """Where the float64 result is finite and beyond the output dtype: infinite by convention."""
    limit = float(torch.finfo(getattr(torch, dtype)).max)
    return torch.isfinite(reference) & (reference.abs() > limit)


def terms_summed(task: Task, case: Case) -> int:
    """How many terms one output element sums."""
    if task.terms is not None:
        return int(evaluate(task.terms, task.scope({}, case.settings)))
    sizes = case.sizes
    return math.prod(
        max(sizes[d.symbol], 1) for d in task.dims if d.role in ("reduced", "contracted")
    )


@dataclass(frozen=True, slots=True)
class _Order:
    """Allowance for the order of summation: a factor of the spread, and one of the floor."""

    growth: float
    floor: float


def _order(task: Task, case: Case, dtype: str, *, tf32: bool) -> _Order:
    terms = terms_summed(task, case)
    finer = 1 + math.sqrt(terms / FINER_TERMS)
    if tf32 or dtype not in SUMMED_IN_FULL:
        return _Order(finer, 1.0)
    return _Order(finer * widening(terms, dtype), max(1.0, math.sqrt(terms / FLOOR_TERMS)))


def widening(terms: int, dtype: str) -> float:
    """The factor of the spread if a loop may round every partial sum to `dtype`."""
    if dtype not in SUMMED_IN_FULL:
        return 1.0
    return (1 + math.sqrt(terms / FULL_TERMS)) / (1 + math.sqrt(terms / FINER_TERMS))


def _row_rms(values: torch.Tensor) -> torch.Tensor:
    """Root mean square over the last dim, or over everything if that dim is too short."""
    if values.numel() == 0:
        return values
    if values.ndim >= 2 and values.shape[-1] >= 2:
        return values.square().mean(-1, keepdim=True).sqrt().expand_as(values)
    return values.square().mean().sqrt().expand_as(values)


def _floor(
    dtype: str,
    reference: torch.Tensor,
    widened: float,
    *,
    tf32: bool,
    scale: torch.Tensor | None = None,
) -> torch.Tensor:
    """An element's floor; without `scale`, relative to the row's largest magnitude."""
    if reference.numel() == 0:
        return reference
    of_element, of_row = FLOOR_ULPS[dtype]
    ulp = epsilon(dtype)
    if tf32 and dtype == "float32":
        of_element, of_row = FLOOR_ULPS["float16"]
        ulp = 2.0**-TF32_MANTISSA_BITS
    magnitude = reference.abs()
    if scale is None and magnitude.ndim >= 2 and magnitude.shape[-1] >= _LEAST_ROW:
        scale = magnitude.amax(-1, keepdim=True)
    elif scale is None:
        scale = magnitude.amax()
    # fp32 and bf16 results below the smallest normal may be flushed to zero on a GPU.
    flush = 2 * smallest_subnormal(dtype)
    if dtype in ("float32", "bfloat16"):
        flush = 4 * smallest_normal(dtype)
    return widened * of_element * ulp * magnitude + of_row * ulp * scale + flush
