"""The page's part on what explains correctness. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kerneltruth.documents.effects import AddedTerm, ComplexityRecord, DevianceTables, DevianceTerm
from kerneltruth.report.page.cells import (
    Cell,
    PageTable,
    column,
    correlation,
    number,
    row,
    table,
    text,
    whole,
)
from kerneltruth.report.page.wording import DASH, between, count, percent, visible


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviancePart:
    """What explains correctness; `reason` is why there is no analysis of deviance."""

    reason: str | None
    said: str
    tables: Sequence[PageTable]
    notes: Sequence[str]


def deviance_part(found: DevianceTables) -> DeviancePart:
    """Make the part on deviance, and on complexity where it is known."""
    return DeviancePart(
        reason=visible(found.unavailable) if found.unavailable else None,
        said="" if found.unavailable else _said(found),
        tables=[*_deviance(found), *_complexity(found.complexity)],
        notes=[visible(note) for note in (*(found.notes or ()), *_separated(found))],
    )


def _deviance(found: DevianceTables) -> list[PageTable]:
    return [] if found.unavailable else [_terms(found), _steps(found.steps or ())]


def _complexity(rows: Sequence[ComplexityRecord]) -> list[PageTable]:
    if not rows:
        return []
    made = [row(r.proxy, [*correlation(r.call), *correlation(r.exe)]) for r in rows]
    columns = [
        column("of the reference", number=False),
        column("with not running", hint="Spearman's rank correlation over tasks"),
        column("interval"),
        column("with not being right"),
        column("interval"),
    ]
    caption = f"Complexity of the reference against failure, over {rows[0].exe.pairs} tasks."
    return [table("complexity", caption, columns, made)]


def _said(found: DevianceTables) -> str:
    shares = {t.model: t.explained for t in found.terms or ()}
    said = " and ".join(
        f"the {name} {percent(shares[name])}" for name in ("category", "method") if name in shares
    )
    return (
        f"Explained deviance of correctness over {count(found.answers or 0)} judged answers to "
        f"{count(found.tasks or 0)} tasks: {said}. "
        f"{count(found.not_judged or 0)} answers were not judged and are left out."
    )


def _separated(found: DevianceTables) -> list[str]:
    return [
        f"all {s.answers} answers of the {s.factor} {s.level} are "
        f"{'right' if s.right else 'wrong'}: its coefficient is infinite"
        for s in found.separated or ()
    ]


def _terms(found: DevianceTables) -> PageTable:
    columns = [
        column("model", number=False),
        column("df"),
        column("explained", hint="1 - D/D0, McFadden's R2"),
        column("interval", hint="for the population of tasks"),
        column("adjusted", hint="D and D0 per df"),
        column("McFadden adjusted", hint="less a coefficient each"),
        column("per df"),
        column("by chance", hint="mean over permutations"),
        column("p, permutation"),
        column("p, likelihood ratio"),
    ]
    rows = [
        row(t.model.replace("*", "\N{MULTIPLICATION SIGN}"), _term(t)) for t in found.terms or ()
    ]
    caption = f"Explained deviance; {count(found.permutations or 0)} permutations."
    return table("deviance", caption, columns, rows)


def _term(t: DevianceTerm) -> list[Cell]:
    return [
        whole(t.df),
        number(t.explained, percent),
        text(_interval(t)),
        number(t.adjusted, percent),
        number(t.mcfadden_adjusted, percent),
        number(t.per_df, percent),
        number(t.by_chance, percent),
        number(t.p_permutation, _p),
        number(t.p_likelihood, _p),
    ]


def _interval(t: DevianceTerm) -> str:
    if t.low is None:
        return DASH
    said = between(percent(t.low), percent(t.high))
    return f"{said}, corrected for chance" if t.outside else said


def _p(value: float) -> str:
    return "< 0.0001" if value < 1e-4 else f"{value:.2g}"


def _steps(steps: Sequence[AddedTerm]) -> PageTable:
    columns = [
        column("added", number=False),
        column("to", number=False),
        column("df"),
        column("drop of deviance"),
        column("p, permutation"),
        column("p, likelihood ratio"),
    ]
    rows = [
        row(
            s.added,
            [
                text(s.to),
                whole(s.df),
                number(s.drop),
                number(s.p_permutation, _p),
                number(s.p_likelihood, _p),
            ],
        )
        for s in steps
    ]
    return table("deviance-steps", "Deviance explained by one more term.", columns, rows)
