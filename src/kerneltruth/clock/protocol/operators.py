"""The operators that a baseline's call ran, as its child counted them."""

from __future__ import annotations

from dataclasses import dataclass

from kerneltruth.runner.observation import Observation


@dataclass(frozen=True, slots=True, kw_only=True)
class Operators:
    """The operators that a baseline's call ran; see `runner.child.operators`.

    Attributes:
        launches: operators with results on the device; each launches a kernel at least.
        on_host: operators with results of some size on the host.
        elsewhere: results of the call that do not lie on the device.
        waits: operators that wait for the device.
        factors: operators that factor matrices, which PyTorch does in part on the host.
    """

    launches: int
    on_host: int
    elsewhere: int
    waits: int = 0
    factors: tuple[str, ...] = ()


def operators_in(seen: Observation) -> Operators:
    """Parse a child's counts."""
    counts = seen.timings
    return Operators(
        launches=int(counts.get("launches", 0)),
        on_host=int(counts.get("on_host", 0)),
        elsewhere=int(counts.get("elsewhere", 0)),
        waits=int(counts.get("waits", 0)),
        factors=tuple((seen.message or "").split()),
    )
