"""Advice on a kernel as data: the regime that bounds it, its numbers, and remarks.

A remark states a measurement or count and its consequence. It never guesses about code that was not
measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from kerneltruth.clock.roofline.occupancy import Occupancy, occupancy
from kerneltruth.clock.roofline.profile import Profile
from kerneltruth.clock.roofline.work import BUSY, Ceilings, Floor, regime
from kerneltruth.documents.timing import Advice, Regime, Remark

# Below this share of the warps that fit, latencies of memory are hard to hide.
LOW_OCCUPANCY = 0.25


class StaticFacts(Protocol):
    """Static facts of a compiled kernel, such as a `runner.observation.Binary`."""

    @property
    def kernel(self) -> str:
        """Its name."""
        ...

    @property
    def target(self) -> str:
        """Return the compile target."""
        ...

    @property
    def registers(self) -> int | None:
        """Registers of one thread."""
        ...

    @property
    def spills(self) -> int | None:
        """Words of local memory of a thread."""
        ...

    @property
    def shared_bytes(self) -> int | None:
        """Shared bytes of a block."""
        ...

    @property
    def num_warps(self) -> int | None:
        """Threads of a block."""
        ...

    @property
    def tensor_cores(self) -> bool | None:
        """Return whether it has instructions for matrix units."""
        ...


def advise(
    seconds: float,
    floor: Floor,
    ceilings: Ceilings,
    *,
    launch_s: float | None = None,
    binaries: Sequence[StaticFacts] = (),
) -> Advice:
    """Advice for one call.

    `binaries` are its kernels, compiled for the device it ran on; `launch_s` is None where it was
    not measured.
    """
    bound = regime(seconds, floor, launch_s=launch_s, matrix_units=uses_matrix_units(binaries))
    compute = floor.flops / seconds / floor.flops_per_s if floor.flops_per_s else None
    bytes_per_s = floor.bytes / seconds
    memory = bytes_per_s / ceilings.copy_bytes_per_s
    launch = None if launch_s is None else launch_s / seconds
    remarks = [
        Remark(kind=bound, text=_in_words(bound, seconds, floor, memory, compute, launch)),
        *_of_arithmetic(bound, seconds, floor),
        *(r for binary in _distinct(binaries) for r in _of_binary(binary, bound)),
    ]
    return Advice(
        bound_by=bound,
        seconds=seconds,
        floor_s=floor.seconds,
        efficiency=floor.efficiency(seconds),
        bytes_per_s=bytes_per_s,
        flops_per_s=floor.flops / seconds,
        memory_share=memory,
        compute_share=compute,
        launch_share=launch,
        remarks=tuple(remarks),
    )


def _in_words(
    bound: Regime,
    seconds: float,
    floor: Floor,
    memory: float,
    compute: float | None,
    launch: float | None,
) -> str:
    rate = f"{floor.bytes / seconds / 1e9:,.0f} GB/s, {memory:.0%} of what a copy reaches"
    if bound == "memory":
        return f"moves {rate}; only moving fewer bytes makes it faster, as by fusing it"
    counted = f"{floor.flops / seconds / 1e12:,.1f} TFLOP/s"
    of = "" if compute is None else f", {compute:.0%} of what {floor.format} reaches"
    if bound == "compute":
        return f"computes {counted}{of}; only fewer operations or a faster format help"
    if bound == "launch" and launch is not None:
        took = f"{launch:.0%} of {seconds * 1e6:.1f} us"
        return f"launching takes {took}; fewer launches, more work in each, or a CUDA graph help"
    return (
        f"neither memory ({rate}) nor arithmetic ({counted}{of}) is busy: it waits; more work in "
        "flight helps, by more warps, wider loads or loads ahead of their use"
    )


def _of_arithmetic(bound: Regime, seconds: float, floor: Floor) -> Iterator[Remark]:
    """Advise on a product that is bound by ordinary arithmetic."""
    plain = floor.plain_share(seconds)
    if bound == "compute" and plain is not None and floor.efficiency(seconds) < BUSY:
        yield Remark(
            kind="plain_arithmetic",
            text=f"it runs at {plain:.0%} of what arithmetic without matrix units reaches; with "
            f"these, in {floor.format}, it may take {floor.efficiency(seconds):.0%} of the time",
        )


def uses_matrix_units(binaries: Sequence[StaticFacts]) -> bool | None:
    """Return whether any kernel does; None where it was not measured."""
    known = [b.tensor_cores for b in binaries if b.tensor_cores is not None]
    return any(known) if known else None


def _distinct(binaries: Sequence[StaticFacts]) -> list[StaticFacts]:
    found = {
        (b.kernel, b.target, b.registers, b.spills, b.shared_bytes, b.num_warps): b
        for b in binaries
    }
    return list(found.values())


def occupancy_of(binary: StaticFacts) -> Occupancy | None:
    """Theoretical occupancy of a compiled kernel; None where the binary says too little."""
    if binary.num_warps is None:
        return None
    return occupancy(
        binary.target,
        num_warps=binary.num_warps,
        registers=binary.registers,
        shared_bytes=binary.shared_bytes,
    )


def _of_binary(binary: StaticFacts, bound: Regime) -> Iterator[Remark]:
    if binary.spills:
        words = f"{binary.spills} words of local memory per thread"
        yield Remark(
            kind="spills",
            text=f"{words}: registers do not suffice ({binary.registers} are used)",
            kernel=binary.kernel,
        )
    found = occupancy_of(binary)
    # A kernel that keeps its bound busy needs no more warps, however few it has.
    if found is None or bound in ("memory", "compute") or found.share > LOW_OCCUPANCY:
        return
    yield Remark(
        kind="low_occupancy",
        text=f"{found.warps} warps fit on a multiprocessor, {found.share:.0%} of what it holds, "
        f"limited by {' and '.join(found.limited_by)} ({binary.registers} registers per thread, "
        f"{binary.shared_bytes} bytes of shared memory and {binary.num_warps} warps per block)",
        kernel=binary.kernel,
    )


def profile_remarks(profile: Profile) -> Iterator[Remark]:
    """Advise on a launch by what Nsight Compute measured."""
    compute, memory = profile.compute_percent, profile.memory_percent
    if profile.bound_by is not None:
        yield Remark(
            kind=f"profiled_{profile.bound_by}",
            text=f"the profiler sees multiprocessors {compute:.0f}% and memory {memory:.0f}% busy",
            kernel=profile.kernel,
        )
    if profile.bound_by == "latency" and profile.stall is not None:
        reason, count = profile.stall
        yield Remark(
            kind="stall",
            text=f"warps wait most for {reason.replace('_', ' ')}: {count:.1f} at each issue",
            kernel=profile.kernel,
        )
    if profile.waves is not None and profile.waves < 1:
        yield Remark(
            kind="small_grid",
            text=f"the grid fills {profile.waves:.0%} of the device",
            kernel=profile.kernel,
        )
