"""Speeds of right candidates: speedups, fast_p, shares slower, efficiency. Pure.

A candidate's speedup is the geometric mean of its ratios over the shapes it was timed on. Right
candidates without a time are counted separately, never as 1x.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import median

import numpy as np

from kerneltruth.analysis.groups import grouped, labels
from kerneltruth.analysis.intervals import (
    clustered_rate,
    counted,
    geometric_mean,
    unknown_rate,
)
from kerneltruth.analysis.results import Against, Result
from kerneltruth.documents.rates import EfficiencyRow, FastShare, SpeedupRow

EAGER = "eager"


def baselines_of(results: Sequence[Result]) -> tuple[str, ...]:
    """Return the baselines that anything was timed against, eager first."""
    found = {
        name
        for r in results
        if r.timing is not None
        for shape in r.timing.shapes
        for name in shape.baselines
    }
    return tuple(sorted(found, key=lambda name: (name != EAGER, name)))


def speedups(
    answers: Sequence[Result], baseline: str = EAGER, by: Sequence[str] = ()
) -> tuple[SpeedupRow, ...]:
    """Return speedups of right answers by the dimensions."""
    rows = []
    for group, members in grouped(answers, by).items():
        timed = _timed(members, baseline)
        values = [a.speedup for _, a in timed]
        outcomes = Counter(a.outcome for _, a in timed)
        rows.append(
            SpeedupRow(
                **labels(by, group),
                baseline=baseline,
                correct=sum(r.correct for r in members),
                timed=len(timed),
                mean=geometric_mean(values, [r.task for r, _ in timed]),
                median=median(values) if values else None,
                slower=clustered_rate((r.task, a.speedup < 1) for r, a in timed),
                surely_slower=outcomes["slower"],
                surely_faster=outcomes["faster"],
                ties=outcomes["tie"],
            )
        )
    return tuple(rows)


def fast_p(
    answers: Sequence[Result],
    ps: Sequence[float],
    baseline: str = EAGER,
    by: Sequence[str] = (),
) -> tuple[FastShare, ...]:
    """Return fast_p for each group and p.

    Every correct answer is faster than 0x, timed or not: fast_0 is the rate of correct answers.
    """
    rows = []
    for group, members in grouped(answers, by).items():
        correct = sum(r.correct for r in members)
        against = [r.against(baseline) for r in members]
        timed = [a for a in against if a is not None]
        # A wrong answer is slower than any p; one without a time is as fast as 0x.
        speeds = np.array(
            [
                a.speedup if a is not None else 0.0 if r.correct else -1.0
                for r, a in zip(members, against, strict=True)
            ]
        )
        share = counted([r.task for r in members])
        for p in ps:
            known = bool(timed) or p == 0 or not correct
            fast = speeds > p if p > 0 else speeds >= 0
            rows.append(
                FastShare(
                    **labels(by, group),
                    baseline=baseline,
                    p=p,
                    share=share(fast) if known else unknown_rate(len(members)),
                    surely=_surely(timed, p) if p > 0 else correct,
                    untimed=correct - len(timed),
                )
            )
    return tuple(rows)


def _timed(members: Sequence[Result], baseline: str) -> list[tuple[Result, Against]]:
    return [(r, a) for r in members if (a := r.against(baseline)) is not None]


def _surely(timed: Sequence[Against], p: float) -> int:
    return sum(a.low is not None and a.low > p for a in timed)


def efficiencies(answers: Sequence[Result], by: Sequence[str] = ()) -> tuple[EfficiencyRow, ...]:
    """Return efficiency against the speed of light by the dimensions."""
    rows = []
    for group, members in grouped(answers, by).items():
        found = [(r, e) for r in members if (e := efficiency(r)) is not None]
        values = [e for _, e in found]
        bounds = Counter(
            shape.bound_by
            for r, _ in found
            if r.timing is not None
            for shape in r.timing.shapes
            if shape.bound_by is not None
        )
        rows.append(
            EfficiencyRow(
                **labels(by, group),
                known=len(found),
                mean=geometric_mean(values, [r.task for r, _ in found]),
                median=median(values) if values else None,
                bound_by=dict(sorted(bounds.items())),
            )
        )
    return tuple(rows)


def efficiency(result: Result) -> float | None:
    """Return the efficiency of a right answer; None if it has none."""
    return result.timing.efficiency if result.timing is not None and result.correct else None
