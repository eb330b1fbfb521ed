"""Render `compare`: verdicts that differ, and speedups run by run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from kerneltruth.analysis.results import TORCH_ONLY
from kerneltruth.documents.runs import ComparedKernel, CompareDocument, ComparedSpeed, EditEffect
from kerneltruth.report.figures import several, table

MOST_KERNELS = 30
_BECAME: tuple[EditEffect, ...] = ("fixed", "broken", "still wrong", "still right")


def compare_view(document: CompareDocument) -> RenderableType:
    """Show which kernels have different verdicts, and how far speedups move."""
    runs, named = document.runs, _Names(document.torch_only)
    lines = [f"{r.path}: {r.device}, kernels: {r.attempts}" for r in runs]
    lines += _contracts(document)
    lines.append(f"same verdict: {document.same} of {document.kernels}")
    lines += _edited(document, named)
    edited = {kernel.name for kernel in document.edited}
    for kernel in document.differing:
        if kernel.name in edited:
            continue
        verdicts = ", ".join(f"{v}" for v in kernel.verdicts)
        lines.append(f"  differs: {named(kernel.name)}: {verdicts}")
    lines += [f"  missing: {named(m.name)} in {', '.join(m.absent)}" for m in document.missing]
    for name in document.other_source:
        if name in edited:
            continue
        lines.append(f"  not the same source in all runs: {named(name)}")
    lines += _obligations(document, named)
    parts: list[RenderableType] = [Text("\n".join(lines))]
    for baseline, speed in document.speed.items():
        parts += _speed(baseline, speed, len(runs), named)
    return Group(*parts)


class _Names:
    """A kernel's name, with a mark where it is torch-only in some run."""

    def __init__(self, torch_only: Sequence[str]) -> None:
        self._marked = {*torch_only}

    def __call__(self, name: str) -> str:
        return f"{name} ({TORCH_ONLY})" if name in self._marked else name


def _contracts(document: CompareDocument) -> Iterator[str]:
    contracts = [", ".join(r.contracts) or "none (an earlier version)" for r in document.runs]
    if len(set(contracts)) > 1:
        yield (
            f"the contracts differ: {' -> '.join(contracts)}; a verdict may differ because another "
            "contract decides, so compare the obligations"
        )


def _edited(document: CompareDocument, named: _Names) -> Iterator[str]:
    """Yield what edits did to kernels, changed ones first."""
    counts = Counter(kernel.became for kernel in document.edited)
    if counts:
        said = ", ".join(f"{counts[word]} {word}" for word in _BECAME if counts[word])
        yield f"edited: {several(len(document.edited), 'kernel')}: {said}"
    for kernel in sorted(document.edited, key=lambda kernel: _BECAME.index(kernel.became)):
        files = "" if len(set(kernel.files)) == 1 else f" ({' -> '.join(kernel.files)})"
        yield f"  {kernel.became}: {named(kernel.name)}: {' -> '.join(kernel.verdicts)}{files}"


def _obligations(document: CompareDocument, named: _Names) -> Iterator[str]:
    changed = document.obligations
    if document.no_profile:
        said = "no profile in some run, which an earlier version made"
        yield f"{several(document.no_profile, 'kernel')}: {said}"
    if changed:
        kernels = several(len({c.name for c in changed}), "kernel")
        yield f"obligations that changed: {len(changed)}, of {kernels}"
    for c in changed[:MOST_KERNELS]:
        ends = " -> ".join((s or "not asked").replace("_", " ") for s in c.statuses)
        yield f"  {named(c.name)}: {c.obligation}: {ends}"
    if len(changed) > MOST_KERNELS:
        yield f"  and {len(changed) - MOST_KERNELS} more; all are in --json"


def _speed(baseline: str, speed: ComparedSpeed, runs: int, named: _Names) -> list[RenderableType]:
    counts = ", ".join(str(n) for n in speed.timed)
    shared = speed.shared
    head = f"against {baseline}: timed by run: {counts}; in two runs or more: {shared}"
    if not shared:
        return [Text(head)]
    within = ", ".join(f"{share} {n} of {shared}" for share, n in speed.within.items())
    spread = speed.spread
    lines = [
        head,
        f"largest over smallest speedup: median {spread.median:.3f}, p90 {spread.p90:.3f}, "
        f"most {spread.most:.3f}; within {within}",
        f"differ beyond their intervals: {speed.differ} of {shared}; "
        f"faster in one run and slower in another: {speed.flips} of {shared}",
    ]
    rest = shared - MOST_KERNELS
    more = [Text(f"{rest} kernels with smaller spreads, all in --json")] if rest > 0 else []
    return [
        Text("\n".join(lines)),
        _distribution(speed),
        _kernels(speed.kernels, runs, named),
        *more,
    ]


def _distribution(speed: ComparedSpeed) -> Table:
    names = ("least", "p10", "p25", "median", "p75", "p90", "most")
    rows = table(None, "speedup in run", "kernels", *names)
    for i, found in enumerate(speed.speedups, 1):
        values = [
            "" if n is None else f"{n:.2f}x" for n in (getattr(found, name) for name in names)
        ]
        rows.add_row(str(i), str(found.count), *values)
    return rows


def _kernels(kernels: Sequence[ComparedKernel], runs: int, named: _Names) -> Table:
    rows = table(None, "kernel", *(f"run {i}" for i in range(1, runs + 1)), "largest/smallest", "")
    for kernel in kernels[:MOST_KERNELS]:
        said = "flips" if kernel.flips else "differs" if kernel.differs else ""
        style = "red" if kernel.flips else "yellow"
        speedups = ["" if s is None else f"{s.ratio:.3f}x" for s in kernel.speedups]
        rows.add_row(named(kernel.name), *speedups, f"{kernel.spread:.3f}", Text(said, style))
    return rows
