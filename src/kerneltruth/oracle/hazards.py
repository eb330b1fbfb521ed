"""Hazards: silent errors of a kernel beyond its contract, a line each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from kerneltruth.documents.records import InterfaceNote, Judgement, ProfileEntry
from kerneltruth.documents.verdict import Crashed, Failed, TimedOut, Verdict

_WHERE: Mapping[str, str] = {
    "published": "on the benchmark's own inputs",
    "shapes": "at other sizes",
    "shapes.beyond": "on inputs of another form, such as broadcast ones",
    "values": "on other values",
    "attributes": "with other arguments",
    "specials": "on NaN, infinite, subnormal or huge values",
    "empty": "where a dim is 0",
    "gradients": "in the gradient",
    "interface": "in the form of its results",
    "memory": "in its use of memory",
    "repeatable": "when it is called again",
}


def hazards(profile: Mapping[str, ProfileEntry], notes: Iterable[InterfaceNote]) -> dict[str, str]:
    """A line for each broken obligation that does not decide, and for another number of dims.

    Notes are of outputs whose values are right and whose form differs from the promise.
    """
    return dict((*_forms(notes), *_broken(profile)))


def _broken(profile: Mapping[str, ProfileEntry]) -> Iterator[tuple[str, str]]:
    for key, entry in profile.items():
        # A right result does no harm, whichever kernel computed it.
        silent = entry.status == "broken" and key != "kernel"
        if silent and not entry.decisive and entry.failure is not None:
            yield key, f"{_how(entry.failure.verdict)} {_where(key, entry.failure)}"


def _forms(notes: Iterable[InterfaceNote]) -> Iterator[tuple[str, str]]:
    for note in notes:
        if note.kind == "shape":
            yield "interface", f"returns another number of dims: {note.detail}"


def _how(verdict: Verdict) -> str:
    match verdict:
        case Crashed():
            return "crashes"
        case TimedOut():
            return "does not return in time"
        case Failed(kind="dtype" | "shape" | "device" as form):
            return f"returns another {form}"
        case _:
            return "silently wrong"


def _where(key: str, failure: Judgement) -> str:
    obligation, _, part = key.partition(".")
    if obligation == "layouts":
        named = getattr(failure.verdict, "inputs", ()) or ("inputs",)
        where = f"on {failure.case.layout} {', '.join(named)}"
    elif obligation == "dtypes":
        where = f"in {part}"
    else:
        where = _WHERE.get(key) or _WHERE[obligation]
    return f"{where}: {failure.case.summary()}"
