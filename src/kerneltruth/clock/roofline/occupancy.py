"""How many warps of a kernel fit on a multiprocessor, from what its binary says.

Limits per compute capability: CUDA C++ Programming Guide, "Compute Capabilities", table "Technical
Specifications per Compute Capability". Units of allocation: the CUDA occupancy calculator
(`cuda_occupancy.h`), which are the same for all of these.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

WARP = 32
# Registers are given to a warp in units of 256, out of a quarter of the file for each of the four
# schedulers; shared memory in units of 128 bytes, and each block takes 1 KiB for the system.
_REGISTER_UNIT = 256
_SCHEDULERS = 4
_SHARED_UNIT = 128
_SHARED_RESERVED = 1024
_REGISTERS = 65536


@dataclass(frozen=True, slots=True, kw_only=True)
class Multiprocessor:
    """What a multiprocessor holds at once."""

    warps: int
    blocks: int
    shared_bytes: int


MULTIPROCESSORS = {
    "sm_80": Multiprocessor(warps=64, blocks=32, shared_bytes=164 * 1024),
    "sm_86": Multiprocessor(warps=48, blocks=16, shared_bytes=100 * 1024),
    "sm_89": Multiprocessor(warps=48, blocks=24, shared_bytes=100 * 1024),
    "sm_90": Multiprocessor(warps=64, blocks=32, shared_bytes=228 * 1024),
    "sm_100": Multiprocessor(warps=64, blocks=32, shared_bytes=228 * 1024),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Occupancy:
    """Theoretical occupancy of one kernel.

    Attributes:
        blocks: that fit on a multiprocessor at once.
        share: of the warps that a multiprocessor can hold.
        limited_by: what allows no further block: `registers`, `shared memory`, `warps`, `blocks`.
    """

    blocks: int
    warps: int
    share: float
    limited_by: tuple[str, ...]


def occupancy(
    target: str, *, num_warps: int, registers: int | None, shared_bytes: int | None
) -> Occupancy | None:
    """Occupancy of a kernel, or None for a target whose limits are not known here.

    The target is such as `sm_90` or `sm_90a`; None for registers of a thread or shared bytes of a
    block does not limit.
    """
    device = MULTIPROCESSORS.get(target.rstrip("af"))
    if device is None or num_warps < 1:
        return None
    fitting = {"blocks": device.blocks, "warps": device.warps // num_warps}
    if registers:
        per_warp = _rounded(registers * WARP, _REGISTER_UNIT)
        warps = _SCHEDULERS * (_REGISTERS // _SCHEDULERS // per_warp)
        fitting["registers"] = warps // num_warps
    if shared_bytes:
        per_block = _rounded(shared_bytes + _SHARED_RESERVED, _SHARED_UNIT)
        fitting["shared memory"] = device.shared_bytes // per_block
    blocks = min(fitting.values())
    return Occupancy(
        blocks=blocks,
        warps=blocks * num_warps,
        share=blocks * num_warps / device.warps,
        limited_by=tuple(sorted(name for name, count in fitting.items() if count == blocks)),
    )


def _rounded(value: int, unit: int) -> int:
    return math.ceil(value / unit) * unit
