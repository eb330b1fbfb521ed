"""Deviance of correctness: how much category and method explain beyond chance. Pure.

Logistic models of single answers: on category, on method, on both, and with their interaction. The
saturated likelihood of single answers is 1, so the explained share 1 - D/D0 equals McFadden's R2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kerneltruth.analysis.groups import methods_of
from kerneltruth.analysis.intervals import CONFIDENCE
from kerneltruth.analysis.logistic import Fit, MissingPackage, fit_all
from kerneltruth.analysis.resampling import (
    PERMUTATIONS,
    RESAMPLES,
    Counts,
    Shares,
    balanced,
    bootstrap_shares,
    debiased,
    interaction_p,
    p_value,
    shares,
    shuffled_categories,
    shuffled_methods,
)
from kerneltruth.analysis.results import Result
from kerneltruth.documents.effects import (
    AddedTerm,
    DevianceTables,
    DevianceTerm,
    ModelName,
    SeparatedLevel,
)


def deviance_of(
    answers: Sequence[Result],
    *,
    seed: int = 0,
    permutations: int = PERMUTATIONS,
    resamples: int = RESAMPLES,
) -> DevianceTables:
    """Analyse the deviance of correctness on category and method; without complexity."""
    judged = [r for r in answers if r.judged and r.category is not None]
    refusal = _nothing(answers, judged)
    if refusal is not None:
        return DevianceTables(unavailable=refusal, complexity=())
    categories = tuple(sorted({r.category for r in judged if r.category is not None}))
    methods = tuple(_label(*pair) for pair in methods_of(judged))
    counts = counts_of(judged, categories, methods)
    try:
        fits = fit_all(*counts.table())
    except MissingPackage as missing:
        return DevianceTables(unavailable=str(missing), complexity=())
    observed = shares(*counts.table())
    spread = bootstrap_shares(counts, seed=seed, resamples=resamples)
    permuted = _permuted(counts, seed, permutations)
    return DevianceTables(
        answers=len(judged),
        right=sum(r.correct for r in judged),
        tasks=len(counts.category),
        categories=len(categories),
        methods=len(methods),
        not_judged=sum(not r.judged for r in answers),
        null_deviance=fits["null"].deviance,
        terms=tuple(_terms(fits, observed, spread, permuted)),
        steps=tuple(_steps(fits, observed, permuted)),
        separated=_separated(counts, categories, methods),
        permutations=permutations,
        resamples=resamples,
        notes=_notes(answers, counts, categories, methods),
        complexity=(),
    )


def counts_of(
    judged: Sequence[Result], categories: Sequence[str], methods: Sequence[str]
) -> Counts:
    """Count right and all answers by task and method; a task in two categories is two."""
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
class _Permuted:
    """Explained shares by chance: of permuted categories, and of permuted methods.

    Attributes:
        even: the observed shares of balanced counts, as `methods` has them.
        interaction: its p-value; None without both factors.
    """

    categories: Shares | None
    methods: Shares | None
    even: Shares
    interaction: float | None


def _permuted(counts: Counts, seed: int, permutations: int) -> _Permuted:
    several = counts.categories > 1, counts.total.shape[1] > 1
    return _Permuted(
        categories=shuffled_categories(counts, seed=seed + 1, permutations=permutations)
        if several[0]
        else None,
        methods=shuffled_methods(counts, seed=seed + 2, permutations=permutations)
        if several[1]
        else None,
        even=shares(*balanced(counts).table()),
        interaction=interaction_p(counts, seed=seed + 3, permutations=permutations)
        if all(several)
        else None,
    )


def _terms(
    fits: dict[str, Fit], observed: Shares, spread: Shares, permuted: _Permuted
) -> list[DevianceTerm]:
    null = fits["null"]
    plan: tuple[tuple[ModelName, str, Shares | None], ...] = (
        ("category", "category", permuted.categories),
        ("method", "method", permuted.methods),
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
        seen = permuted.even if share == "method" else observed
        ends = debiased(explained, getattr(spread, share), CONFIDENCE)
        likelihood = -fit.deviance / 2
        terms.append(
            DevianceTerm(
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


def _steps(fits: dict[str, Fit], observed: Shares, permuted: _Permuted) -> list[AddedTerm]:
    both = fits.get("category + method")
    if both is None:
        return []
    by_category = _p_of_gain(observed, permuted.categories, "method")
    by_method = _p_of_gain(permuted.even, permuted.methods, "category")
    steps = [
        ("category", fits["method"], "method", both, by_category),
        ("method", fits["category"], "category", both, by_method),
    ]
    if "category * method" in fits:
        full = fits["category * method"]
        steps.append(("interaction", both, "category + method", full, permuted.interaction))
    return [
        AddedTerm(
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


def _p_of_gain(observed: Shares, permuted: Shares | None, than: str) -> float | None:
    """Return the permutation p-value of adding a factor to the other one."""
    if permuted is None:
        return None
    seen, by_chance = (np.asarray(s.both - getattr(s, than)) for s in (observed, permuted))
    return p_value(float(seen), by_chance)


def _nothing(answers: Sequence[Result], judged: Sequence[Result]) -> str | None:
    """Return why there is nothing to analyse, or None."""
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
) -> tuple[SeparatedLevel, ...]:
    right, total = counts.table()
    found = []
    for factor, names, axis in (("category", categories, 1), ("method", methods, 0)):
        if len(names) < 2:
            continue
        for name, k, n in zip(names, right.sum(axis), total.sum(axis), strict=True):
            if k in (0, n):
                found.append(
                    SeparatedLevel(factor=factor, level=name, right=int(k), answers=int(n))
                )
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
