"""Admissible implementations: what correct kernels may give, as evaluations of one reference.

Each is the task's own reference under another arithmetic that a correct kernel may use. Their
spread around the float64 result is what the `spread` bound is made of.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from kerneltruth.oracle.dtypes import DTYPES, epsilon, is_float, largest, smallest_normal
from kerneltruth.oracle.moves import MOVES, each_move, flush, has_subnormal
from kerneltruth.oracle.reference import Scalars, Tensors, cast, outputs_of, real_parts, widened
from kerneltruth.tasks.arguments import PARTS
from kerneltruth.tasks.compositions import Composed, near
from kerneltruth.tasks.gpu import GPU_DRAWS, OnGpu
from kerneltruth.tasks.spec import Output, Task

HALF = ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")
TF32_MANTISSA_BITS = 10
INTEGERS = ("int8", "uint8", "int16", "int32", "int64")
# By how many ulps two divisions may differ if one is approximate, as on a GPU.
NUDGE_ULPS = 4


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Implementation:
    """One admissible result.

    Attributes:
        outputs: float64 (or integer) tensors.
        settles: whether a non-finite value here makes the element unsettled.
    """

    name: str
    outputs: tuple[torch.Tensor, ...]
    settles: bool


def compute_dtype(working: str) -> str:
    """The precision in which a careful kernel computes: float32 for everything narrower."""
    return "float32" if working in HALF else working


def implementations(
    task: Task,
    working: str,
    tensors: Tensors,
    scalars: Scalars,
    *,
    seed: int,
    tf32: bool,
    few: bool = False,
) -> Iterator[Implementation]:
    """Yield every admissible implementation that torch can evaluate for these inputs.

    Consume them within `reference.quietly`. Complex numbers are as precise as their parts. `few`
    leaves only other formulas and precisions, for inputs that are too large for the rest.
    """
    working = PARTS.get(working, working)
    inner = compute_dtype(working)
    plain = _attempt(task, cast(tensors, DTYPES[inner]), scalars)
    if plain is not None:
        outputs = _round(task.promised_outputs(scalars, tensors), plain, working)
        yield Implementation(name=inner, outputs=outputs, settles=True)
    if inner != working:
        narrow = _attempt(task, cast(tensors, DTYPES[working]), scalars)
        if narrow is not None:
            outputs = _widen(narrow)
            yield Implementation(name=working, outputs=outputs, settles=task.as_written)
        if task.as_written and not few:
            yield from _column_by_column(task, working, tensors, scalars)
        yield from _narrowed(task, working, tensors, scalars)
    yield from _other_formulas(task, working, inner, tensors, scalars)
    if is_float(inner) and not (few or task.foreign):
        yield from _on_gpu(task, working, inner, tensors, scalars)
    if not few:
        yield from _flipped(task, working, inner, tensors, scalars)
    if is_float(inner) and not few:
        yield from _perturbed(task, inner, tensors, scalars, seed)
        specs = task.promised_outputs(scalars, tensors)
        if any(o.dtype in INTEGERS and o.compare == "bound" for o in specs):
            yield from _nudged(task, inner, tensors, scalars)
    if tf32 and working == "float32" and task.contracted():
        yield from _tf32(task, tensors, scalars)


def _column_by_column(
    task: Task, working: str, tensors: Tensors, scalars: Scalars
) -> Iterator[Implementation]:
    """The reference in a narrow dtype on column-major inputs: PyTorch may sum in it there."""
    given = cast(tensors, DTYPES[working])
    turned = {n: t if t is None or t.ndim < 2 else t.mT.contiguous().mT for n, t in given.items()}
    outputs = _attempt(task, turned, scalars)
    if outputs is not None:
        yield Implementation(name=f"{working}-columns", outputs=_widen(outputs), settles=False)


def _narrowed(
    task: Task, working: str, tensors: Tensors, scalars: Scalars
) -> Iterator[Implementation]:
    """The reference in float32, with each step rounded stochastically to the narrow dtype."""
    for i, formula in enumerate(task.narrowed.get(working, ())):
        outputs = _attempt(task, cast(tensors, torch.float32), scalars, formula)
        if outputs is not None:
            rounded = _round(task.promised_outputs(scalars, tensors), outputs, working)
            yield Implementation(name=f"{working}-{i}", outputs=rounded, settles=True)


def overflowing(
    task: Task, working: str, tensors: Tensors, scalars: Scalars
) -> tuple[torch.Tensor, ...] | None:
    """Elements whose partial sums may leave the range of the computing precision, per output.

    There the order of summation decides between a finite value, an infinity and NaN. For sums and
    products, the reference on magnitudes is the largest partial sum. None if the inputs are too
    small for an overflow of one sum (see `beyond_range`).
    """
    if not task.sums():
        return None
    floats = [t for t in tensors.values() if t is not None and t.is_floating_point()]
    limit = _limit(working)
    if not any(_has_above(t, limit**0.25) for t in floats):
        return None
    sizes = {
        n: None if t is None else _magnitude(t) if t.is_floating_point() else t
        for n, t in tensors.items()
    }
    outputs = _attempt(task, sizes, scalars)
    if outputs is None:
        return None
    return tuple(_reaching(o, limit) for o in outputs)


def beyond_range(truth: tuple[torch.Tensor, ...], working: str) -> tuple[torch.Tensor, ...] | None:
    """Elements whose exact sum leaves the range of the computing precision; None if none does.

    What leads there, as the state of a recurrence, is infinite in a kernel, which gets NaN where it
    multiplies that by the 0 of a masked lane, or adds the opposite.
    """
    limit = _limit(working)
    marks = tuple(_reaching(o, limit) & torch.isfinite(o) for o in truth)
    return marks if any(bool(m.any()) for m in marks) else None


def _reaching(output: torch.Tensor, limit: float) -> torch.Tensor:
    if not output.is_floating_point():
        return torch.zeros_like(output, dtype=torch.bool)
    return ~(output.abs() < limit)


def _limit(working: str) -> float:
    return largest(compute_dtype(working)) if is_float(working) else math.inf


def _has_above(t: torch.Tensor, limit: float) -> bool:
    """Whether a finite element is larger; most tensors need a single pass."""
    if not t.numel() or (t.element_size() > 1 and float(t.abs().amax()) <= limit):
        return False
    return float(_magnitude(t).amax()) > limit


def _magnitude(t: torch.Tensor) -> torch.Tensor:
    return torch.nan_to_num(t.to(torch.float64), posinf=0.0, neginf=0.0).abs()


def _attempt(
    task: Task, tensors: Tensors, scalars: Scalars, formula: Callable[..., Any] | None = None
) -> tuple[torch.Tensor, ...] | None:
    """Evaluate; None if torch lacks the operator in this dtype on the CPU."""
    try:
        return outputs_of(task, tensors, scalars, formula=formula)
    except (RuntimeError, NotImplementedError, TypeError, ValueError):
        return None


def _widen(outputs: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
    return tuple(o.to(torch.float64) if o.is_floating_point() else o for o in outputs)


def _round(
    specs: tuple[Output, ...], outputs: tuple[torch.Tensor, ...], working: str
) -> tuple[torch.Tensor, ...]:
    """Round floating outputs to the dtype that the task promises."""
    rounded = []
    for spec, out in zip(specs, outputs, strict=False):
        promised = DTYPES[spec.parts_at(working)]
        rounded.append(out.to(promised) if out.is_floating_point() else out)
    return _widen(tuple(rounded))


def _other_formulas(
    task: Task, working: str, inner: str, tensors: Tensors, scalars: Scalars
) -> Iterator[Implementation]:
    for i, formula in enumerate(task.admissible):
        given = cast(tensors, DTYPES[inner])
        if task.foreign:
            outputs = _attempt(task, given, scalars, formula)
            if outputs is None:
                continue
        else:
            outputs = outputs_of(task, given, scalars, formula=formula)
        specs = task.promised_outputs(scalars, tensors)
        yield Implementation(
            name=f"formula-{i}", outputs=_round(specs, outputs, working), settles=True
        )
        if task.asked_dtype(scalars) is None:
            continue
        # Steps before the conversion have the errors of a GPU in the narrower dtype. Errors of one
        # sign do not vanish in a mean of many.
        for salt in (None, *range(GPU_DRAWS)):
            with OnGpu(ulp=None, salt=salt) as gpu:
                outputs = outputs_of(task, given, scalars, formula=formula)
            if not gpu.used_function:
                break
            rounded = _round(specs, outputs, working)
            yield Implementation(name=f"formula-{i}-gpu-{salt}", outputs=rounded, settles=False)


def _on_gpu(
    task: Task, working: str, inner: str, tensors: Tensors, scalars: Scalars
) -> Iterator[Implementation]:
    """The reference with its operators as GPU libraries implement them, in each dtype.

    A library's result may be infinite or NaN although a CPU's is not.
    """
    for dtype in dict.fromkeys((inner, working)):
        # Rounding to half precision hides what the second draw would add.
        for salt in range(GPU_DRAWS if dtype == inner else 1):
            with OnGpu(ulp=epsilon(inner), salt=salt) as gpu:
                outputs = _attempt(task, cast(tensors, DTYPES[dtype]), scalars)
            if outputs is None or not (gpu.used_library or gpu.used_function):
                break
            rounded = _round(task.promised_outputs(scalars, tensors), outputs, working)
            name = f"gpu-{dtype}-{salt}"
            yield Implementation(name=name, outputs=rounded, settles=gpu.used_library)
            if not gpu.used_function:
                break
    plain = _attempt(task, cast(tensors, DTYPES[inner]), scalars)
    with Composed() as mode:
        composed = _attempt(task, cast(tensors, DTYPES[inner]), scalars)
    if mode.used and plain is not None and composed is not None:
        specs = task.promised_outputs(scalars, tensors)
        rounded = _round(specs, near(composed, plain), working)
        yield Implementation(name="composed", outputs=rounded, settles=False)


def _flipped(
    task: Task, working: str, inner: str, tensors: Tensors, scalars: Scalars
) -> Iterator[Implementation]:
    """Sum contracted dims in the opposite order, if that leaves the exact result unchanged.

    A contracted dim may be a dim of the output too, as in attention; then flipping says nothing.
    """
    exact: tuple[torch.Tensor, ...] | None = None
    for dim in task.dims:
        if dim.role != "contracted":
            continue
        flipped = _flip(task, dim.symbol, tensors, scalars)
        if exact is None:
            exact = _attempt(task, cast(tensors, torch.float64), scalars)
        again = _attempt(task, cast(flipped, torch.float64), scalars)
        if exact is None or again is None or not _agree(exact, again):
            continue
        outputs = _attempt(task, cast(flipped, DTYPES[inner]), scalars)
        if outputs is not None:
            rounded = _round(task.promised_outputs(scalars, tensors), outputs, working)
            yield Implementation(name=f"flipped-{dim.symbol}", outputs=rounded, settles=True)


def _flip(
    task: Task, symbol: str, tensors: Tensors, scalars: Scalars
) -> dict[str, torch.Tensor | None]:
    flipped: dict[str, torch.Tensor | None] = {}
    for spec in task.tensors:
        t = tensors[spec.name]
        axes = [i for i, d in enumerate(task.axes(spec, scalars)) if d == symbol]
        flipped[spec.name] = t if t is None or not axes else _turned(t, axes)
    return flipped


def _turned(t: torch.Tensor, axes: list[int]) -> torch.Tensor:
    """The tensor with some axes backwards; torch does not turn float8 on the CPU."""
    if t.element_size() == 1:
        return t.view(torch.uint8).flip(axes).view(t.dtype)
    return t.flip(axes)


def _agree(one: tuple[torch.Tensor, ...], other: tuple[torch.Tensor, ...]) -> bool:
    """Whether two float64 evaluations differ by no more than their own rounding."""
    return all(
        a.shape == b.shape and torch.allclose(a, b, rtol=1e-6, atol=1e-9, equal_nan=True)
        for a, b in zip(one, other, strict=True)
    )


def _perturbed(
    task: Task, inner: str, tensors: Tensors, scalars: Scalars, seed: int
) -> Iterator[Implementation]:
    """Inputs moved by one ulp of the computing precision: all up, all down, and at random.

    The result of any summation order is the exact result of slightly moved inputs, so this is
    also what other orders of accumulation show. Subnormal inputs are flushed once, as GPUs do.
    """
    ulp = epsilon(inner)
    tiny = smallest_normal(inner)
    wide = {n: None if t is None else widened(t, torch.float64) for n, t in tensors.items()}
    parts = {n: None if t is None else real_parts(t) for n, t in wide.items()}
    for name, moved in zip(MOVES, each_move(parts, ulp, seed), strict=True):
        whole = {n: _as(wide[n], t) for n, t in moved.items()}
        outputs = _attempt(task, wide | whole, scalars)
        if outputs is not None:
            yield Implementation(name=name, outputs=outputs, settles=False)
    if any(t is not None and has_subnormal(t, tiny) for t in wide.values()):
        flushed = {
            n: None if t is None else flush(t, tiny) if t.is_floating_point() else t
            for n, t in wide.items()
        }
        outputs = _attempt(task, flushed, scalars)
        if outputs is not None:
            yield Implementation(name="flushed", outputs=outputs, settles=True)


def _nudged(task: Task, inner: str, tensors: Tensors, scalars: Scalars) -> Iterator[Implementation]:
    """Inputs moved by some ulps, except the largest of each row; for outputs that are rounded.

    A quantized value near a tie goes either way within the error of a division, and the scale is
    often taken from the largest element, so that moving all elements alike would change nothing.
    """
    for name, ulps in (("nudged-up", NUDGE_ULPS), ("nudged-down", -NUDGE_ULPS)):
        moved: dict[str, torch.Tensor | None] = {}
        for key, t in tensors.items():
            wide = None if t is None else widened(t, torch.float64)
            if wide is not None and wide.is_floating_point() and wide.ndim and wide.numel():
                largest_of_row = wide.abs() == wide.abs().amax(-1, keepdim=True)
                step = torch.where(largest_of_row, 0.0, ulps * epsilon(inner))
                wide = wide * (1 + step)
            moved[key] = wide
        outputs = _attempt(task, moved, scalars)
        if outputs is not None:
            yield Implementation(name=name, outputs=outputs, settles=False)


def _as(like: torch.Tensor | None, parts: torch.Tensor) -> torch.Tensor:
    """Real and imaginary parts as a complex tensor, where `like` is one."""
    if like is None or not like.is_complex():
        return parts
    return torch.complex(parts[..., 0], parts[..., 1])


def _tf32(task: Task, tensors: Tensors, scalars: Scalars) -> Iterator[Implementation]:
    """Inputs cut to TF32's 10 mantissa bits, by truncation and by rounding."""
    for i, formula in enumerate(task.tf32):
        outputs = _attempt(task, cast(tensors, torch.float64), scalars, formula)
        if outputs is not None:
            yield Implementation(name=f"tf32-{i}", outputs=outputs, settles=False)
    if task.tf32:
        return
    dropped = 23 - TF32_MANTISSA_BITS
    for name, half in (("tf32-truncated", 0), ("tf32-rounded", 1 << (dropped - 1))):
        cut: dict[str, torch.Tensor | None] = {}
        for key, t in tensors.items():
            if t is None or t.dtype not in (torch.float32, torch.complex64):
                cut[key] = t
                continue
            given, t = t, real_parts(t)
            bits = (t.view(torch.int32).to(torch.int64) + half) & ~((1 << dropped) - 1)
            bits = torch.where(torch.isfinite(t), bits, t.view(torch.int32).to(torch.int64))
            wrapped = torch.where(bits >= 2**31, bits - 2**32, bits)
            cut[key] = _as(given, wrapped.to(torch.int32).view(torch.float32))
        outputs = _attempt(task, cast(cut, torch.float64), scalars)
        if outputs is not None:
            yield Implementation(name=name, outputs=outputs, settles=False)
