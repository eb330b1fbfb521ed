"""Tokens, seconds and money by method, in all and for each right answer. Pure.

A chain of rounds takes what all its rounds take, and is one right answer at most.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from kerneltruth.analysis.groups import METHOD, grouped
from kerneltruth.analysis.results import Result
from kerneltruth.documents.rates import SpendingRow, SpentSum


def spending(distinct: Sequence[Result], answers: Sequence[Result]) -> tuple[SpendingRow, ...]:
    """Return what each method took; `answers` are those of the distinct attempts that count."""
    right = {group: sum(r.correct for r in own) for group, own in grouped(answers, METHOD).items()}
    rows = []
    for group, members in grouped(distinct, METHOD).items():
        successes = right.get(group, 0)
        rows.append(
            SpendingRow(
                method=group[0],
                model=group[1],
                attempts=len(members),
                right=successes,
                tokens=_sum([r.spent.tokens for r in members], successes),
                seconds=_sum([r.spent.seconds for r in members], successes),
                cost=_sum([r.spent.cost for r in members], successes),
                judge_seconds=_sum([r.spent.judge_seconds for r in members], successes),
            )
        )
    return tuple(rows)


def _sum(amounts: Sequence[float | None], successes: int) -> SpentSum:
    known = [amount for amount in amounts if amount is not None]
    unknown = len(amounts) - len(known)
    total = math.fsum(known) if known else None
    whole = total is not None and not unknown and successes > 0
    return SpentSum(
        total=total,
        unknown=unknown,
        per_success=total / successes if whole and total is not None else None,
    )
