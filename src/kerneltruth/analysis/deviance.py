"""How much of correctness category and method explain, and whether that is more than chance. Pure.

Logistic models of single answers: on category, on method, on both, and with their interaction. Of
single answers the saturated likelihood is 1, so the explained share 1 - D/D0 is McFadden's R2 too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from kerneltruth.analysis.groups import methods_of
from kerneltruth.analysis.intervals import CONFIDENCE
from kerneltruth.analysis.logistic import Fit, MissingPackage, fit_all
from kerneltruth.analysis.resampling import (
    PERMUTATIONS,
    RESAMPLES,
    Counts,
    Shares,
    bootstrap_shares,
    debiased,
    evened,
    interaction_p,
    p_value,
    shares,
    shuffled_categories,
    shuffled_methods,
)
from kerneltruth.analysis.results import Result

ModelName = Literal["category", "method", "category + method", "category * method"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """A category or method, and how many of its answers are right."""

    factor: str
    level: str
    right: int
    answers: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """What one model explains of the null deviance.

    Attributes:
        df: coefficients beyond the intercept.
        deviance: what it leaves.
        explained: 1 - D/D0.
        low: of the interval that resamples tasks. It is about what the model explains of endlessly
            many tasks, less what any model explains of a few by chance.
        outside: whether the explained share lies outside that interval, chance explaining much.
        per_df: explained share for each coefficient.
        adjusted: the same with D and D0 each divided by its degrees of freedom.
        mcfadden: 1 - L/L0 of log-likelihoods; `mcfadden_adjusted` takes df off L.
        by_chance: what the model explains on average of shuffled tasks, which are due to nothing.
        p_permutation: how often they explain as much.
        p_likelihood: of the likelihood-ratio test, which takes answers to one task as unrelated.
        penalized: the explained share of Firth's estimates; None where nothing is separated.
    """

    model: ModelName
    df: int
    deviance: float
    explained: float
    low: float | None
    high: float | None
    outside: bool
    per_df: float
    adjusted: float | None
    mcfadden: float
    mcfadden_adjusted: float
    by_chance: float | None
    p_permutation: float | None
    p_likelihood: float | None
    penalized: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DevianceStep:
    """What one more term takes off the deviance of a model that has the others.

    Attributes:
        added: the term, and `to` the model that it is added to.
    """

    added: str
    to: str
    df: int
    drop: float
    p_likelihood: float
    p_permutation: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Deviance:
    """The analysis of deviance of correctness.

    Attributes:
        answers: those that were judged; `not_judged` are left out.
        separated: levels that are all right or all wrong, whose coefficients are infinite.
        notes: what was left out and why, one line each.
    """

    answers: int
    right: int
    tasks: int
    categories: int
    methods: int
    not_judged: int
    null_deviance: float
    terms: tuple[Term, ...]
    steps: tuple[DevianceStep, ...]
    separated: tuple[Level, ...]
    permutations: int
    resamples: int
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unavailable:
    """Why there is no such statistic, in one line."""

    reason: str


def deviance_of(
    answers: Sequence[Result],
    *,
    seed: int = 0,
    permutations: int = PERMUTATIONS,
    resamples: int = RESAMPLES,
) -> Deviance | Unavailable:
    """Analyse the deviance of correctness on category and method."""
    judged = [r for r in answers if r.judged and r.category is not None]
    refusal = _nothing(answers, judged)
    if refusal is not None:
        return Unavailable(reason=refusal)
    categories = tuple(sorted({r.category for r in judged if r.category is not None}))
    methods = tuple(_label(*pair) for pair in methods_of(judged))
    counts = counts_of(judged, categories, methods)
    try:
        fits = fit_all(*counts.table())
    except MissingPackage as missing:
        return Unavailable(reason=str(missing))
    observed = shares(*counts.table())
    spread = bootstrap_shares(counts, seed=seed, resamples=resamples)
    dealt = _dealt(counts, seed, permutations)
    return Deviance(
        answers=len(judged),
        right=sum(r.correct for r in judged),
        tasks=len(counts.category),
        categories=len(categories),
        methods=len(methods),
        not_judged=sum(not r.judged for r in answers),
        null_deviance=fits["null"].deviance,
        terms=tuple(_terms(fits, observed, spread, dealt)),
        steps=tuple(_steps(fits, observed, dealt)),
        separated=_separated(counts, categories, methods),
        permutations=permutations,
        resamples=resamples,
        notes=_notes(answers, counts, categories, methods),
    )


def counts_of(
    judged: Sequence[Result], categories: Sequence[str], methods: Sequence[str]
) -> Counts:
    """Right and all answers by task and method; a task of two categories counts as two."""
    place = {name: i for i, name in enumerate(categories)}
    column = {name: i for i, name in enumerate(methods)}
    rows: dict[tuple[str, str], int] = {}
    cells: dict[tuple[int, int], list[int]] = {}
    for r in judged:
        row = rows.setdefault((r.task, r.category or ""), len(rows))
        cell = cells.setdefault((row, column[_label(r.method, r.model)]), [0, 0])
        cell[0] += r.correct
        cell[1] += 1
    right, total = np.zeros((len(rows), len(methods))), np.zeros((len(rows), len(methods)))
    for (row, col), (c, n) in cells.items():
        right[row, col], total[row, col] = c, n
    numbers = np.array([place[category] for _, category in rows], dtype=np.int64)
    return Counts(right=right, total=total, category=numbers, categories=len(categories))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Dealt:
    """Shares by chance: categories dealt out anew over tasks, and methods within each task.

    Attributes:
        even: what the answers show with as many of each method, as `methods` has them.
        interaction: its p-value; None without both factors.
    """

    categories: Shares | None
    methods: Shares | None
    even: Shares
    interaction: float | None


def _dealt(counts: Counts, seed: int, permutations: int) -> _Dealt:
    several = counts.categories > 1, counts.total.shape[1] > 1
    return _Dealt(
        categories=shuffled_categories(counts, seed=seed + 1, permutations=permutations)
        if several[0]
        else None,
        methods=shuffled_methods(counts, seed=seed + 2, permutations=permutations)
        if several[1]
        else None,
        even=shares(*evened(counts).table()),
        interaction=interaction_p(counts, seed=seed + 3, permutations=permutations)
        if all(several)
        else None,
    )


def _terms(fits: dict[str, Fit], observed: Shares, spread: Shares, dealt: _Dealt) -> list[Term]:
    null = fits["null"]
    plan: tuple[tuple[ModelName, str, Shares | None], ...] = (
        ("category", "category", dealt.categories),
        ("method", "method", dealt.methods),
        ("category + method", "both", None),
        ("category * method", "interaction", None),
    )
    terms = []
    for model, share, chance in plan:
        if model not in fits:
            continue
        fit = fits[model]
        explained = float(getattr(observed, share))
        by_chance = None if chance is None else getattr(chance, share)
        seen = dealt.even if share == "method" else observed
        ends = debiased(explained, getattr(spread, share), CONFIDENCE)
        likelihood = -fit.deviance / 2
        terms.append(
            Term(
                model=model,
                df=fit.df,
                deviance=fit.deviance,
                explained=explained,
                low=ends[0] if ends else None,
                high=ends[1] if ends else None,
                outside=ends is not None and not ends[0] <= explained <= ends[1],
                per_df=explained / fit.df,
                adjusted=_adjusted(fit, null),
                mcfadden=1 - likelihood / (-null.deviance / 2),
                mcfadden_adjusted=1 - (likelihood - fit.df) / (-null.deviance / 2),
                by_chance=None if by_chance is None else float(np.nanmean(by_chance)),
                p_permutation=None
                if by_chance is None
                else p_value(float(getattr(seen, share)), by_chance),
                p_likelihood=fit.p_against(null),
                penalized=fit.penalized,
            )
        )
    return terms


def _adjusted(fit: Fit, null: Fit) -> float | None:
    left = null.answers - 1 - fit.df
    if left <= 0:
        return None
    return 1 - (fit.deviance / left) / (null.deviance / (null.answers - 1))


def _steps(fits: dict[str, Fit], observed: Shares, dealt: _Dealt) -> list[DevianceStep]:
    both = fits.get("category + method")
    if both is None:
        return []
    by_category = _p_of_gain(observed, dealt.categories, "method")
    by_method = _p_of_gain(dealt.even, dealt.methods, "category")
    steps = [
        ("category", fits["method"], "method", both, by_category),
        ("method", fits["category"], "category", both, by_method),
    ]
    if "category * method" in fits:
        full = fits["category * method"]
        steps.append(("interaction", both, "category + method", full, dealt.interaction))
    return [
        DevianceStep(
            added=added,
            to=to,
            df=large.df - small.df,
            drop=small.deviance - large.deviance,
            p_likelihood=large.p_against(small),
            p_permutation=p,
        )
        for added, small, to, large, p in steps
        if large.df > small.df
    ]


def _p_of_gain(observed: Shares, dealt: Shares | None, than: str) -> float | None:
    """How often chance adds as much to one factor alone as the other factor does."""
    if dealt is None:
        return None
    seen, by_chance = (np.asarray(s.both - getattr(s, than)) for s in (observed, dealt))
    return p_value(float(seen), by_chance)


def _nothing(answers: Sequence[Result], judged: Sequence[Result]) -> str | None:
    """Why there is nothing to analyse, or None."""
    right = sum(r.correct for r in judged)
    if not judged:
        return f"none of {len(answers)} answers was judged and has a category"
    if right in (0, len(judged)):
        said = "right" if right else "wrong"
        return f"all {len(judged)} answers are {said}: there is no deviance to explain"
    if len({r.category for r in judged}) < 2 and len(methods_of(judged)) < 2:
        return "one category and one method: there is nothing to compare"
    return None


def _separated(
    counts: Counts, categories: Sequence[str], methods: Sequence[str]
) -> tuple[Level, ...]:
    right, total = counts.table()
    found = []
    for factor, names, axis in (("category", categories, 1), ("method", methods, 0)):
        if len(names) < 2:
            continue
        for name, k, n in zip(names, right.sum(axis), total.sum(axis), strict=True):
            if k in (0, n):
                found.append(Level(factor=factor, level=name, right=int(k), answers=int(n)))
    return tuple(found)


def _notes(
    answers: Sequence[Result],
    counts: Counts,
    categories: Sequence[str],
    methods: Sequence[str],
) -> tuple[str, ...]:
    notes = []
    if (counts.total > 1).any():
        notes.append(
            "methods have several answers to a task: the likelihood-ratio tests, which take them "
            "as unrelated, find differences that are not there; go by the shuffled ones"
        )
    unknown = sum(r.judged and r.category is None for r in answers)
    if unknown:
        notes.append(f"{unknown} answers without a category are left out")
    if len(categories) < 2:
        notes.append(f"one category only ({categories[0]}): it explains nothing")
    if len(methods) < 2:
        notes.append(f"one method only ({methods[0]}): it explains nothing")
    return tuple(notes)


def _label(method: str | None, model: str | None) -> str:
    return " ".join(part for part in (method, model) if part) or "unlabelled"
