"""What judge and clock measured of a right kernel, in words for the model. Pure.

What was not measured is left out: nothing is guessed from the source.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import get_args

from msgspec import UNSET

from kerneltruth.clock.roofline.advice import occupancy_of
from kerneltruth.documents.records import BinaryRecord, KernelFact
from kerneltruth.documents.timing import Advice, CandidateTimes, DeviceShare, Regime, ShapeTimes

# The compiled kernels, and the names in one line, that a prompt has room for.
MOST_KERNELS = 6
MOST_NAMED = 4


def facts_of(kernel: KernelFact | None, perf: CandidateTimes | None) -> tuple[str, ...]:
    """Return a line for each fact: launches, shares of the device's time, kernels, shapes.

    Empty where nothing was timed: then no faster kernel is asked for.
    """
    if perf is None or perf.outcome != "timed":
        return ()
    shapes = perf.shapes or ()
    return (
        *_launched(kernel),
        *_shared(perf.kernel or None),
        *_compiled(shapes),
        *(line for shape in shapes for line in _measured(shape)),
    )


def _launched(fact: KernelFact | None) -> Iterator[str]:
    if fact is None:
        return
    library = [run.name for run in fact.runs if not run.own]
    if fact.own_launches is not None:
        own = _count(fact.own_launches, "kernel of yours", "kernels of yours")
        rest = fact.launches - fact.own_launches
        also = f" and runs {_count(rest, 'operator', 'operators')} of PyTorch" if rest else ""
        yield f"one call launches {own}{also}{_named(library)} ({fact.case})"
    elif library:
        yield f"one call runs operators of PyTorch{_named(library)} ({fact.case})"


def _shared(share: DeviceShare | None) -> Iterator[str]:
    total = sum(kernel.us for kernel in share.kernels) if share else 0
    if share is None or share.own is None or not total:
        return
    parts = ", ".join(f"`{k.name}` {k.us / total:.0%}" for k in share.kernels[:MOST_NAMED])
    yield f"your kernels take {share.own:.0%} of the device's time at {share.case}: {parts}"


def _compiled(shapes: Sequence[ShapeTimes]) -> Iterator[str]:
    """Describe each kernel; one that was compiled in several ways has ranges."""
    found: dict[tuple[str, str], list[BinaryRecord]] = {}
    for shape in shapes:
        for binary in shape.kernels.get("candidate", ()):
            if binary.ok:
                found.setdefault((binary.kernel, binary.target), []).append(binary)
    for (kernel, target), binaries in [*found.items()][:MOST_KERNELS]:
        if said := "; ".join(_static(binaries)):
            yield f"`{kernel}`, compiled for {target}: {said}"


def _static(binaries: Sequence[BinaryRecord]) -> Iterator[str]:
    counts = (
        ([b.registers for b in binaries], "registers per thread"),
        ([b.spills for b in binaries], "words per thread spilled to local memory"),
        ([b.shared_bytes for b in binaries], "bytes of shared memory per block"),
        ([b.num_warps for b in binaries], "warps per block"),
    )
    for values, unit in counts:
        if (known := [v for v in values if v is not None]) and len(known) == len(binaries):
            yield f"{_range(known, '{:,}')} {unit}"
    units = {b.tensor_cores for b in binaries}
    if None not in units:
        how = "" if all(units) else " in some of its variants"
        yield f"uses tensor cores{how}" if any(units) else "uses no tensor cores"
    fits = [fit for b in binaries if (fit := occupancy_of(b)) is not None]
    if fits and len(fits) == len(binaries):
        limits = dict.fromkeys(what for fit in fits for what in fit.limited_by)
        yield (
            f"{_range([f.warps for f in fits], '{}')} warps fit on a multiprocessor, "
            f"{_range([f.share for f in fits], '{:.0%}')} of what it holds, limited by "
            f"{' and '.join(limits)}"
        )


def _range(values: Sequence[float], form: str) -> str:
    least, most = form.format(min(values)), form.format(max(values))
    return least if least == most else f"{least} to {most}"


def _measured(shape: ShapeTimes) -> Iterator[str]:
    """Say what a shape's time means beside the device's measured limits."""
    if shape.advice is None or shape.graded.not_graded:
        return
    rates = "; ".join(_rates(shape.advice))
    yield f"at {shape.summary}: {rates}{_least(shape)}"
    for remark in shape.advice.remarks:
        # The regime is in the rates, and facts of one kernel are in its own line.
        if remark.kernel is None and remark.kind not in get_args(Regime):
            yield f"at {shape.summary}: {remark.text}"


def _rates(advice: Advice) -> Iterator[str]:
    yield f"{advice.bytes_per_s / 1e9:,.0f} GB/s, {advice.memory_share:.0%} of what a copy reaches"
    if advice.compute_share is not None:
        rate = f"{advice.flops_per_s / 1e12:,.2f} TFLOP/s"
        yield f"{rate}, {advice.compute_share:.0%} of what matrix products of its format reach"
    if advice.launch_share is not None:
        yield f"launching takes {advice.launch_share:.0%} of the time"


def _least(shape: ShapeTimes) -> str:
    if shape.bytes is UNSET or shape.floor_us is None:
        return ""
    return (
        f"; {shape.bytes / 1e6:,.3g} MB must move, and {shape.floor_us:,.1f} us is the least time"
    )


def _named(names: Sequence[str]) -> str:
    more = [f"{len(names) - MOST_NAMED} more"] if len(names) > MOST_NAMED else []
    return f": {', '.join([*names[:MOST_NAMED], *more])}" if names else ""


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"
