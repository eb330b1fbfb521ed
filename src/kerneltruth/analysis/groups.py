"""Groups of results: by category, method, dtype and other labels."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import cast

from kerneltruth.analysis.results import Result
from kerneltruth.documents.estimates import GroupLabels, field_of
from kerneltruth.errors import UserError

Group = tuple[str | None, ...]

DTYPE, DEVICE = "dtype", "device"
METHOD = ("method", "model")
# Dimensions in which a result has one value. A dtype is not among them: an attempt has several. Nor
# is a device: a kernel that several devices judged counts once, and by device once on each.
DIMENSIONS: Mapping[str, Callable[[Result], str | None]] = {
    "category": lambda r: r.category,
    "method": lambda r: r.method,
    "model": lambda r: r.model,
    "suite": lambda r: r.suite,
    "task": lambda r: r.task,
    "language": lambda r: r.language,
    "round": lambda r: None if r.round is None else str(r.round),
    "sample": lambda r: None if r.sample is None else str(r.sample),
    "verdict": lambda r: r.verdict,
    "kind": lambda r: r.kind,
    "quantization": lambda r: r.quantization,
}


def check_dimensions(by: Sequence[str]) -> tuple[str, ...]:
    """Return the dimensions, each once.

    Raises:
        UserError: there is no such dimension.
    """
    for name in by:
        if name not in (*DIMENSIONS, DTYPE, DEVICE):
            known = ", ".join((*DIMENSIONS, DTYPE, DEVICE))
            raise UserError(f"--by {name}: must be one of {known}; join several by commas")
    return tuple(dict.fromkeys(by))


def grouped(results: Iterable[Result], by: Sequence[str]) -> dict[Group, list[Result]]:
    """Group results by their values of the dimensions, in the order of the values.

    Without a dimension there is one group, even of no result.
    """
    if not by:
        return {(): list(results)}
    members = list(results)
    values = zip(*(map(DIMENSIONS[name], members) for name in by), strict=True)
    found: dict[Group, list[Result]] = defaultdict(list)
    for group, result in zip(values, members, strict=True):
        found[group].append(result)
    return {group: found[group] for group in ordered(found)}


def ordered(groups: Iterable[Group]) -> list[Group]:
    """Sort groups by their values."""
    return sorted(groups, key=lambda group: [_order(value) for value in group])


def _order(value: str | None) -> tuple[bool, int, str]:
    """Sort numbers by size, then words; missing values come last."""
    if value is None:
        return True, 0, ""
    return False, int(value) if value.isdecimal() else 0, value


def labels(by: Sequence[str], group: Group) -> GroupLabels:
    """Return the values of a group by the dimensions that they are of."""
    return cast(GroupLabels, dict(zip(map(field_of, by), group, strict=True)))


def by_task(results: Iterable[Result]) -> dict[str, list[Result]]:
    """Group results by task."""
    found: dict[str, list[Result]] = {}
    for result in results:
        found.setdefault(result.task, []).append(result)
    return found


def methods_of(results: Iterable[Result]) -> tuple[tuple[str | None, str | None], ...]:
    """Return the pairs of method and model, in the order of their names."""
    pairs = {(r.method, r.model) for r in results}
    return tuple(sorted(pairs, key=lambda p: (_order(p[0]), _order(p[1]))))
