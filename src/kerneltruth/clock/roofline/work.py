"""The speed of light: the work that a task requires, and the least time a device needs for it.

A roofline (Williams, Waterman and Patterson, 2009): the floor of a call is the larger of its bytes
over the device's copy rate and its operations over the device's rate in the format it may use.
Rates are measured once per device, never taken from a data sheet, so a good kernel can come out a
little above 1 in efficiency. Whether a time is too short to be true is another question, with a
far more careful answer: `limit_of`.

Bytes, operations, seconds and rates per second throughout; no kilo, no micro.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import torch

from kerneltruth.documents.case import Case
from kerneltruth.documents.timing import Regime
from kerneltruth.errors import InternalError
from kerneltruth.tasks.spec import Scalar, Task, TensorSpec, evaluate

Bound = Literal["memory", "compute"]

FORMATS = ("float64", "float32", "tf32", "float16", "bfloat16", "int8", "float8_e4m3fn")

# A kernel that reaches this share of a rate is said to be bound by it; Nsight Compute's
# speed-of-light rule draws the line at the same place.
BUSY = 0.6
# A call that spends this share of its time on launching is bound by launches.
LAUNCH_SHARE = 0.5
# How far a kernel may exceed the measured rate of ordinary arithmetic.
PLAIN_AT_MOST = 1.05

# In a product of float32 values: float16 has as many bits of mantissa as TF32, so a bound that
# lets TF32 pass may let it pass as well.
_ADMITTED = {
    "float64": ("float64",),
    "float32": ("float32", "tf32", "float16", "bfloat16"),
    "float16": ("float16", "bfloat16"),
    "bfloat16": ("float16", "bfloat16"),
}

# The margin in `limit_of`: measured rates may lie below the device's true ones.
MARGIN = 0.75
# Reading alone goes faster than copying, which turns the bus around; used where only copying was
# measured.
_READ_OVER_COPY = 1.2
# Winograd's F(4x4, 3x3) multiplies 4 times less often than the definition of a convolution, and
# FFTs reach the like for large windows.
_TRANSFORMED = 4.0
# Two levels of Strassen: (7/8)**2.
_STRASSEN = 0.765
# A symmetric result, or a causal mask, needs half of the products.
_HALF = 0.5
# Kinds of tensors that leave no term of a product out.
_WHOLE = ("real", "weight", "float32", "int8", "symmetric", "spd")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceilings:
    """The highest measured rates of a device.

    Attributes:
        copy_bytes_per_s: bytes read plus bytes written by a copy far larger than the L2 cache.
        read_bytes_per_s: by a kernel that only reads; None where it was not measured.
        flops: operations per second by format, a multiplication and an addition counting as two.
            `float32` and `float64` are those of ordinary arithmetic, the others of matrix units.
        launch_s: seconds of a call that does nothing; None where it was not measured.
    """

    device: str
    copy_bytes_per_s: float
    read_bytes_per_s: float | None = None
    flops: Mapping[str, float] = field(default_factory=dict)
    l2_bytes: int = 0
    launch_s: float | None = None
    measured_at: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        rates = (self.copy_bytes_per_s, *self.flops.values())
        more = () if self.read_bytes_per_s is None else (self.read_bytes_per_s,)
        if not all(0 < rate < math.inf for rate in (*rates, *more)):
            raise InternalError(f"rates are finite and above 0: {self}")
        if unknown := set(self.flops) - set(FORMATS):
            raise InternalError(f"formats {sorted(unknown)}: must be among {', '.join(FORMATS)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """The work that one call of a case requires.

    Attributes:
        bytes: moved at least: the task's own count, or each input once and each output once.
        read: bytes of each input tensor that is there.
    """

    bytes: int
    flops: int
    read: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """The least time that a call can take at the measured rates, if its work is as counted.

    Attributes:
        seconds: the larger of the times for bytes and for operations.
        format: in which the operations are counted at their fastest; None without a rate.
        plain_flops_per_s: the rate of products without matrix units, which PyTorch's of float32 do
            without unless told otherwise; None for narrower ones, or if it was not measured.
    """

    seconds: float
    bound_by: Bound
    bytes: int
    flops: int
    format: str | None
    flops_per_s: float | None = None
    plain_flops_per_s: float | None = None

    def plain_share(self, seconds: float) -> float | None:
        """Return the share of the rate without matrix units at which a call of `seconds` computes.

        None where there is no such rate, or the call is quicker than that allows.
        """
        if self.plain_flops_per_s is None:
            return None
        share = self.flops / seconds / self.plain_flops_per_s
        return share if share <= PLAIN_AT_MOST else None

    def efficiency(self, seconds: float) -> float:
        """Return the share of the speed of light at which a call of `seconds` runs."""
        return self.seconds / seconds


def work_of(task: Task, case: Case, *, output_bytes: int | None = None) -> Work:
    """Bytes and operations of a case whose tensors are contiguous.

    Outputs count only if their bytes are given (see `traffic.output_bytes`).
    """
    settings = task.scalars(case.sizes, case.settings)
    scope = task.scope(case.sizes, settings, itemsize=itemsize(case.dtype))
    read = {
        spec.name: _bytes_of(task, case, spec, settings)
        for spec in task.tensors
        if spec.name not in case.absent
    }
    moved = evaluate(task.bytes, scope) if task.bytes else sum(read.values()) + (output_bytes or 0)
    return Work(bytes=int(moved), flops=int(evaluate(task.flops, scope)), read=read)


def itemsize(dtype: str) -> int:
    """Bytes of an element."""
    kind: torch.dtype = getattr(torch, dtype)
    return kind.itemsize


def _bytes_of(task: Task, case: Case, spec: TensorSpec, settings: Mapping[str, Scalar]) -> int:
    return math.prod(task.shape(spec, case.sizes, settings)) * itemsize(spec.dtype(case.dtype))


def floor(
    task: Task,
    case: Case,
    ceilings: Ceilings,
    *,
    output_bytes: int | None = None,
    cold: bool = True,
) -> Floor:
    """Return the floor of one call.

    Cold inputs come from memory; otherwise, data that fit into the L2 cache cost nothing.
    """
    work = work_of(task, case, output_bytes=output_bytes)
    moved = work.bytes if cold else max(work.bytes - ceilings.l2_bytes, 0)
    memory_s = moved / ceilings.copy_bytes_per_s
    name, rate = _fastest(task, case, ceilings)
    compute_s = work.flops / rate if rate else 0.0
    # Narrower ones run on matrix units wherever PyTorch makes them.
    wide = itemsize(case.dtype) >= 4
    return Floor(
        seconds=max(memory_s, compute_s),
        bound_by="memory" if memory_s >= compute_s else "compute",
        bytes=work.bytes,
        flops=work.flops,
        format=name,
        flops_per_s=rate,
        plain_flops_per_s=_plain(case, ceilings) if task.contracted() and wide else None,
    )


def _plain(case: Case, ceilings: Ceilings) -> float | None:
    return ceilings.flops.get("float64" if case.dtype == "float64" else "float32")


def _fastest(task: Task, case: Case, ceilings: Ceilings) -> tuple[str | None, float | None]:
    """Return the format in which the device does the task's operations fastest, and its rate.

    Only products of matrices run on matrix units: in the formats of their tensors, float32 ones
    in TF32. Everything else is ordinary float32 arithmetic, two 16-bit values at a time.
    """
    if not task.contracted():
        packed = 2 if itemsize(case.dtype) == 2 else 1
        rate = _plain(case, ceilings)
        return (None, None) if rate is None else (case.dtype, rate * packed)
    formats = {*_dtypes(task, case), *(("tf32",) if "float32" in _dtypes(task, case) else ())}
    rates = {name: ceilings.flops[name] for name in formats if name in ceilings.flops}
    best = max(rates, key=rates.__getitem__, default=None)
    return best, None if best is None else rates[best]


def _dtypes(task: Task, case: Case) -> frozenset[str]:
    present = (s for s in task.tensors if s.name not in case.absent)
    return frozenset(s.dtype(case.dtype) for s in present) | {case.dtype}


def regime(
    seconds: float,
    floor: Floor,
    *,
    launch_s: float | None = None,
    matrix_units: bool | None = None,
) -> Regime:
    """Return what bounds a kernel that takes `seconds`.

    `memory` or `compute`: it runs at 60% or more of that rate; of arithmetic that is the rate
    without matrix units, too, unless `matrix_units` says that the kernel uses them. `launch`: it
    does not, and half of the time or more is that of launching it. `latency`: none of these; it
    waits, for memory, for its own results, or because too few threads run.
    """
    if floor.efficiency(seconds) >= BUSY:
        return floor.bound_by
    if not matrix_units and (floor.plain_share(seconds) or 0.0) >= BUSY:
        return "compute"
    if launch_s is not None and launch_s >= LAUNCH_SHARE * seconds:
        return "launch"
    return "latency"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A time that no kernel can beat, whatever its algorithm; 0 where nothing can be said."""

    seconds: float
    why: str


def limit_of(
    task: Task,
    case: Case,
    ceilings: Ceilings,
    *,
    read_bytes: int = 0,
    output_elements: int | None = None,
) -> Limit:
    """Return the time below which a measurement is an error or a cheat, and never a speedup.

    It must not fire on any correct kernel, so it counts far less than `floor`:

    - Memory traffic counts only reads that the result depends on (`traffic.needed_bytes`), and of
      them only those that came from memory: outputs may stay in the L2 cache, and so may inputs
      that are the same for every call or were not flushed.
    - Operations only of products of matrices, and as many as the results depend on: a product that
      is summed afterwards needs less than its definition. Half of that, since a result may be
      symmetric or masked causally; less by two levels of Strassen's algorithm; for convolutions
      and other operators along space, a quarter, which Winograd and Fourier transforms reach.
      None of chains of products, which another order may make cheap; none where an attribute has
      another value than its default, since it may be a 0 that saves the product; none where a
      mask, an index or a triangular matrix may leave terms out.
    - The fastest format that any bound could let pass: for float32 TF32 and float16 too. If one
      of them was not measured, operations set no limit.
    - Three quarters of what the measured rates give, since they may fall short of the device.

    Every call must read `read_bytes` from memory; without `output_elements`, those of all outputs,
    operations set no limit.
    """
    rate = ceilings.read_bytes_per_s or _READ_OVER_COPY * ceilings.copy_bytes_per_s
    memory_s = MARGIN * read_bytes / rate
    compute_s = MARGIN * _least_products_s(task, case, ceilings, output_elements)
    if memory_s == compute_s == 0:
        return Limit(seconds=0.0, why="nothing is known of what a call must read or compute")
    if memory_s >= compute_s:
        why = f"{read_bytes} bytes of input cannot be read from memory in less"
        return Limit(seconds=memory_s, why=why)
    return Limit(seconds=compute_s, why="its products cannot be computed in less in any format")


def _least_products_s(
    task: Task, case: Case, ceilings: Ceilings, output_elements: int | None
) -> float:
    contracted = [d.symbol for d in task.dims if d.role == "contracted"]
    usual = {a.name: a.default for a in task.attributes if not a.hidden}
    plain = all(case.settings.get(name, value) == value for name, value in usual.items())
    whole = all(spec.kind in _WHOLE for spec in task.tensors)
    spatial = any(d.role == "spatial" for d in task.dims)
    single = len(contracted) == 1 or (spatial and bool(contracted))
    if not (single and plain and whole) or output_elements is None:
        return 0.0
    admitted = [f for d in _dtypes(task, case) for f in _ADMITTED.get(d, FORMATS)]
    if not all(name in ceilings.flops for name in admitted):
        return 0.0
    depends = 2 * output_elements * math.prod(case.sizes[s] for s in contracted)
    flops = _HALF * _STRASSEN * min(work_of(task, case).flops, depends)
    if spatial:
        flops /= _TRANSFORMED
    return flops / max(ceilings.flops[name] for name in admitted)


def impossible(seconds: float, limit: Limit) -> str | None:
    """Return why a call cannot have been this fast, or None if it can."""
    if seconds >= limit.seconds:
        return None
    return f"{seconds:.3g} s is below the limit of {limit.seconds:.3g} s: {limit.why}"
