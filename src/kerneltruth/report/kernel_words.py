"""Whose work a result is, in a line."""

from __future__ import annotations

from kerneltruth.documents.records import KernelFact

MOST_NAMED = 3
_PROBES = {
    "needed": "wrong without them",
    "not_needed": "the result stays right when they do nothing",
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
    more = _PROBES[fact.probe] if fact.probe else f"not confirmed: {fact.reason}"
    return f"{said}; {more}"


def _named(fact: KernelFact, *, own: bool) -> str:
    runs = [run.name for run in fact.runs if run.own == own]
    more = [f"{len(runs) - MOST_NAMED} more"] if len(runs) > MOST_NAMED else []
    return ", ".join(runs[:MOST_NAMED] + more)
