"""The share of own and library kernels in a result, in a line."""

from __future__ import annotations

from kerneltruth.documents.records import KernelFact
from kerneltruth.documents.timing import DeviceShare

MOST_NAMED = 3
_PROBES = {
    "needed": "wrong without them",
    "not_needed": "the result stays right without them",
}


def whose_work(fact: KernelFact) -> str:
    """`own 1 of 2 launches (my_kernel; PyTorch: mm); wrong without them`."""
    own, library = _named(fact, own=True), _named(fact, own=False)
    names = [own, f"PyTorch: {library}" if library else ""]
    listed = f" ({'; '.join(filter(None, names))})" if any(names) else ""
    if fact.own_launches == 0:
        return f"no kernel of its own{listed}"
    if fact.own_launches is None:
        return f"not seen: {fact.reason}{listed}"
    said = f"own {fact.own_launches} of {fact.launches} launches{listed}"
    more = _PROBES[fact.probe] if fact.probe else f"no probe: {fact.reason}"
    return f"{said}; {more}"


def shares(share: DeviceShare) -> str:
    """`M=8: library 97%, own 3% of the device's time (ampere_sgemm 97%, bias_relu 3%)`."""
    total = sum(kernel.us for kernel in share.kernels)
    named = ", ".join(f"{k.name} {k.us / total:.0%}" for k in share.kernels[:MOST_NAMED] if total)
    listed = f" ({named})" if named else ""
    return f"{share.case}: {_whose(share)}{listed}"


def _whose(share: DeviceShare) -> str:
    if share.own is None or share.library is None:
        return f"whose kernels take the time is not known: {share.reason}"
    if not share.own:
        return "no kernel of its own"
    if not share.library:
        return "own 100% of the device's time"
    return f"library {share.library:.0%}, own {share.own:.0%} of the device's time"


def _named(fact: KernelFact, *, own: bool) -> str:
    runs = [run.name for run in fact.runs if run.own == own]
    more = [f"{len(runs) - MOST_NAMED} more"] if len(runs) > MOST_NAMED else []
    return ", ".join(runs[:MOST_NAMED] + more)
