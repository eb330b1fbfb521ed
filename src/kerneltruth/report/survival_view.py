"""Render what remains of certified kernels after each obligation, and where illusions break."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from kerneltruth.documents.analysis import AnalyzeDocument
from kerneltruth.documents.estimates import RateRecord
from kerneltruth.documents.survival import SurvivalCurve
from kerneltruth.report.figures import label, percent, share, share_within, table
from kerneltruth.report.harmless import visible

PROMISES = (
    "published: the benchmark's own inputs; core: what the prompt promises, and other sizes and "
    "finite values, which is this project's choice; beyond: what PyTorch's operator takes"
)
NOT_TRIED = (
    "lost: the first obligation that a kernel breaks, or refuses where it decides; not tried: not "
    "lost yet, but an obligation up to here was not tried; at most: if none of those were lost"
)


MOST_CURVES = 3


def survival_parts(document: AnalyzeDocument) -> Iterator[RenderableType]:
    """Show where certified kernels break, by peer check: some curves, and what remains of all."""
    curves = [c for c in document.survival.overall if c.certified > c.no_profile]
    # The kernels of an audit are chosen, not sampled.
    within = share_within if document.audit is None else share
    yield from _without_profile(document)
    if not curves:
        return
    yield from _places(document)
    for curve in curves[:MOST_CURVES]:
        yield _curve(curve, within)
    yield Text(NOT_TRIED)
    if len(curves) > MOST_CURVES:
        yield _last_steps("check", curves, ("check",), within)
    for breakdown in document.survival.by:
        rows = [row for row in breakdown.rows if row.certified > row.no_profile]
        if len({label(row, breakdown.by) for row in rows}) > 1:
            yield _last_steps(breakdown.by[0], rows, (*breakdown.by, "check"), within)


def _without_profile(document: AnalyzeDocument) -> Iterator[Text]:
    for curve in document.survival.overall:
        if curve.no_profile:
            said = f"no profile: {curve.no_profile} of {curve.certified} certified kernels"
            yield Text(visible(f"{curve.check}: {said}, which an earlier version judged"))


def _places(document: AnalyzeDocument) -> Iterator[RenderableType]:
    made = table(
        "Certified kernels that are wrong, by the first place",
        *("check", "contract", "published", "core", "beyond", "unknown"),
    )
    for row in document.illusion_places:
        if row.contract:
            shares = (row.published, row.core, row.beyond, row.unknown)
            made.add_row(visible(row.check), row.contract, *map(share, shares))
    yield made
    yield Text(PROMISES)


def _curve(curve: SurvivalCurve, within: Callable[[RateRecord], str]) -> RenderableType:
    known = curve.certified - curve.no_profile
    made = table(
        f"{visible(curve.check)}: {known} certified kernels ({curve.torch_only} torch-only)",
        *("obligation", "remain", "at most", "lost", "not tried", "refuse"),
    )
    for step in curve.steps:
        counts = (step.lost, step.not_tried, step.refused)
        most = percent(step.remain_most.rate)
        made.add_row(step.obligation, within(step.remain), most, *map(str, counts))
    return made


def _last_steps(
    what: str,
    curves: Sequence[SurvivalCurve],
    columns: tuple[str, ...],
    within: Callable[[RateRecord], str],
) -> RenderableType:
    made = table(f"Kernels that remain after all, by {what}", *columns, "remain", "at most")
    for curve in curves:
        named = [
            visible(curve.check) if name == "check" else label(curve, (name,)) for name in columns
        ]
        last = curve.steps[-1]
        made.add_row(*named, within(last.remain), within(last.remain_most))
    return made
