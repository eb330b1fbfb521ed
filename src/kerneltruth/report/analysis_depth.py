"""Render the parts of `analyze` on deviance, rounds and devices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from kerneltruth.analysis.groups import METHOD
from kerneltruth.documents.effects import (
    ComplexityRecord,
    DevianceTables,
    PortabilityTables,
    RefinementTables,
    RoundChanges,
)
from kerneltruth.documents.estimates import CorrelationRecord, EstimateRecord, RateRecord
from kerneltruth.report.figures import (
    UNKNOWN,
    chance,
    label,
    percent,
    percent_within,
    share,
    signed,
    table,
    times,
    times_within,
)
from kerneltruth.report.harmless import visible

KERNELS_SHOWN = 5
MOVES_SHOWN = 6


def deviance_parts(found: DevianceTables) -> Iterator[RenderableType]:
    """Show what category and method explain, and how complexity ranks with failure."""
    if found.unavailable:
        yield Text(f"\nDeviance of correctness: {found.unavailable}", "yellow")
    else:
        yield from _deviance(found)
    yield from _complexity(found.complexity)


def _deviance(found: DevianceTables) -> Iterator[RenderableType]:
    terms = found.terms or ()
    made = table(
        f"Deviance of correctness explained (95%): {found.right} right of "
        f"{found.answers} answers to {found.tasks} tasks",
        "model",
        "df",
        "McFadden R2",
        "adjusted",
        "by chance",
        "p (perm.)",
        "p (LR)",
    )
    for term in terms:
        made.add_row(
            term.model,
            str(term.df),
            percent_within(term.explained, term.low, term.high),
            percent(term.adjusted),
            percent(term.by_chance),
            chance(term.p_permutation),
            chance(term.p_likelihood),
        )
    yield made
    if terms:
        less = ", ".join(f"{t.model} {percent(t.mcfadden_adjusted)}" for t in terms)
        yield Text(f"McFadden's R2 less its coefficients: {less}")
    for term in terms:
        if term.outside:
            yield Text(
                f"{term.model}: the explained share lies outside its interval, which is corrected "
                "for what chance explains"
            )
    for step in found.steps or ():
        yield Text(
            f"{step.added} added to {step.to}: {step.drop:.1f} of deviance on "
            f"{step.df} df, p {chance(step.p_permutation)} (permutation), "
            f"{chance(step.p_likelihood)} (LR)"
        )
    for level in found.separated or ():
        yield Text(
            f"separated: {level.factor} {visible(level.level)}: {level.right} of "
            f"{level.answers} right, so its coefficient is infinite",
            "yellow",
        )
    penalized = [t for t in terms if t.penalized is not None]
    if penalized:
        said = ", ".join(f"{t.model} {percent(t.penalized)}" for t in penalized)
        yield Text(f"with Firth's finite coefficients: {said}")
    for note in found.notes or ():
        yield Text(visible(f"note: {note}"), "yellow")


def _complexity(rows: Sequence[ComplexityRecord]) -> Iterator[RenderableType]:
    if not rows:
        return
    made = table(
        "Complexity of the reference against failure (rank correlation over tasks, 95%)",
        "proxy",
        "tasks",
        "call fails",
        "exe fails",
    )
    for row in rows:
        cells = (_correlation(each) for each in (row.call, row.exe))
        made.add_row(row.proxy, str(row.exe.pairs), *cells)
    yield made


def _correlation(found: CorrelationRecord) -> str:
    if found.low is None:
        return signed(found.value)
    return f"{signed(found.value)} ({signed(found.low)} to {signed(found.high)})"


def trajectory_parts(found: RefinementTables) -> Iterator[RenderableType]:
    """Show the effect of each round, for each method that works in rounds."""
    for fates in found.fates:
        name = label(fates, METHOD)
        made = table(
            f"Rounds of {name}: {fates.chains} chains",
            "round",
            "made",
            "call",
            "exe",
            "best so far",
            "speedup over eager",
        )
        for row in found.rounds:
            if label(row, METHOD) == name:
                made.add_row(
                    str(row.round),
                    str(row.made),
                    *(share(each) for each in (row.call, row.exe, row.kept)),
                    times_within(row.speedup),
                )
        yield made
        yield from _steps(name, found)
        yield Text(
            f"right in every round {share(fates.persistent)}"
            f"{_at(fates.persistent_speedup)}; "
            f"rescued {share(fates.rescued)}{_at(fates.rescued_speedup)}; "
            f"right again {share(fates.regained)}; "
            f"lost {share(fates.lost)}; never right {share(fates.never)}; "
            f"not judged {share(fates.not_judged)}"
        )
        for change in found.changes:
            if label(change, METHOD) == name:
                yield from _changes(change)


def _steps(name: str, found: RefinementTables) -> Iterator[RenderableType]:
    """Show which kernels a round's speedup comes from: newly right ones, or those right before."""
    made = table(
        f"Speedup over eager by round of {name}: kernels it rescues, and those right before it",
        "round",
        "call",
        "all right",
        "rescued",
        "persistent",
    )
    for row in found.rounds:
        if label(row, METHOD) == name:
            made.add_row(
                str(row.round),
                percent(row.call.rate),
                times_within(row.speedup),
                _chains_at(row.rescued, row.rescued_speedup),
                _chains_at(row.persistent, row.persistent_speedup),
            )
    yield made


def _chains_at(chains: RateRecord | None, speedup: EstimateRecord | None) -> str:
    if chains is None or speedup is None:
        return UNKNOWN
    return f"{chains.numerator}{_at(speedup)}"


def _at(speedup: EstimateRecord) -> str:
    return "" if speedup.value is None else f", at {times_within(speedup)}"


def _changes(change: RoundChanges) -> Iterator[RenderableType]:
    yield Text(
        f"steps: repaired {share(change.repaired)} of the wrong answers, regressed "
        f"{share(change.regressed)} of the right ones"
        + (f"; {change.not_judged} more could not be judged" if change.not_judged else "")
    )
    if change.timed:
        yield Text(
            f"speed of {change.timed} timed steps: {change.higher} have a higher estimate; "
            f"{change.improved} are faster and {change.worsened} slower by more than interval "
            f"and noise floor; {change.unsure} are undecided"
        )
    repairs = list(change.repairs.items())
    if repairs:
        said = ", ".join(f"{what} {count}" for what, count in repairs[:MOVES_SHOWN])
        yield Text(f"repaired: {said}")


def portability_parts(found: PortabilityTables | None) -> Iterator[RenderableType]:
    """Show how speedups differ between devices."""
    if found is None:
        return
    yield Text("\nThe same kernels on several devices", "bold")
    yield Text(f"right on all or on none: {share(found.same_verdict)}")
    if not found.timed:
        yield Text("none is timed on two of them")
        return
    yield Text(
        f"speedup over {found.baseline}, largest over smallest: median "
        f"{times(found.median_spread)}, at most {times(found.largest)}; beyond the intervals: "
        f"{share(found.differ)}; faster on one and slower on another: {share(found.flips)}"
    )
    for pair in found.pairs:
        yield Text(
            f"{pair.one} and {pair.other}: rank correlation "
            f"{_correlation(pair.correlation)} of {pair.correlation.pairs} kernels"
        )
    for kernel in found.kernels[:KERNELS_SHOWN]:
        said = ", ".join(f"{times(s)} on {device}" for device, s in kernel.speedups.items())
        yield Text(visible(f"{kernel.task} {kernel.sha256[:8]}: {said}"))
