"""Attempts by the obligations that they break or refuse. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from kerneltruth.analysis.results import Result
from kerneltruth.documents.records import OBLIGATIONS, Obligation
from kerneltruth.errors import UserError


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


def only_failing(
    results: Sequence[Result], obligation: str | None
) -> tuple[list[Result], list[str]]:
    """Return the attempts that break or refuse an obligation, and a note on the others.

    Raises:
        UserError: there is no such obligation.
    """
    if obligation is None:
        return list(results), []
    named = obligation_named(obligation)
    left = [r for r in results if named in failed_obligations(r)]
    unknown = sum(not r.has_profile for r in results)
    said = f"--obligation {named}: {len(left)} of {len(results)} attempts break or refuse it"
    more = f"; {unknown} have no profile and are left out" if unknown else ""
    return left, [f"{said}; all figures are of these{more}"]
