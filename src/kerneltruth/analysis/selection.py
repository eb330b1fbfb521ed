"""Attempts selected by the obligations that they fail, and by whether they have a kernel. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kerneltruth.analysis.results import Result
from kerneltruth.documents.records import OBLIGATIONS, Obligation
from kerneltruth.errors import UserError


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which attempts count.

    Attributes:
        obligation: only those that break or refuse it, or a part of it; None for all.
        without_torch_only: only those with a kernel of their own.
    """

    obligation: str | None = None
    without_torch_only: bool = False


ALL = Selection()


def obligation_named(name: str) -> Obligation:
    """Return the obligation of this name.

    Raises:
        UserError: there is none.
    """
    for known in OBLIGATIONS:
        if name == known:
            return known
    raise UserError(f"--obligation {name}: must be one of {', '.join(OBLIGATIONS)}")


def failed_obligations(result: Result) -> tuple[Obligation, ...]:
    """Return the obligations of which an attempt breaks or refuses a part, in order."""
    failing = {
        name.partition(".")[0]
        for name, part in result.profile.items()
        if part.status in ("broken", "refused")
    }
    return tuple(o for o in OBLIGATIONS if o in failing)


def selected(results: Sequence[Result], only: Selection) -> tuple[list[Result], list[str]]:
    """Return the attempts that count, and a note on each kind of others.

    Raises:
        UserError: there is no such obligation.
    """
    left, notes = list(results), []
    if only.without_torch_only:
        left, note = _with_kernel(left)
        notes.append(note)
    if only.obligation is not None:
        left, note = _failing(left, obligation_named(only.obligation))
        notes.append(note)
    return left, notes


def _with_kernel(results: list[Result]) -> tuple[list[Result], str]:
    left = [r for r in results if not r.torch_only]
    out = len(results) - len(left)
    said = f"--without-torch-only: {out} of {len(results)} attempts have no kernel of their own"
    return left, f"{said} and are left out"


def _failing(results: list[Result], obligation: Obligation) -> tuple[list[Result], str]:
    left = [r for r in results if obligation in failed_obligations(r)]
    unknown = sum(not r.has_profile for r in results)
    said = f"--obligation {obligation}: {len(left)} of {len(results)} attempts break or refuse it"
    more = f"; {unknown} have no profile and are left out" if unknown else ""
    return left, f"{said}; all figures are of these{more}"
