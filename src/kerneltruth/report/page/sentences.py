"""What the runs say, in at most three sentences by rule from the tables. Pure.

A sentence compares only what an interval or a test tells apart, and leaves out what was not
measured.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from kerneltruth.analysis.leaderboard import ranked_methods
from kerneltruth.analysis.results import Result
from kerneltruth.analysis.speeds import EAGER, speedups
from kerneltruth.documents.analysis import AnalyzeDocument
from kerneltruth.documents.estimates import RateRecord
from kerneltruth.documents.survival import SurvivalCurve
from kerneltruth.report.page.wording import (
    count,
    label,
    method_label,
    percent,
    share_interval,
    share_said,
    times,
    times_interval,
)

MOST_FAILURES = 3
_FAILURES = {
    "fail": "give a wrong result",
    "hack": "cheat",
    "compile_error": "do not load or compile",
    "runtime_error": "raise an error",
    "crash": "crash",
    "timeout": "time out",
}


def sentences(found: AnalyzeDocument, answers: Sequence[Result]) -> list[str]:
    """Say how many answers are right, what else is known of them, and how fast right ones are."""
    if not answers or found.audit is not None:
        return []
    first = f"{_right(found.rates.overall.exe)}{_best_method(answers)}."
    measured = [*_certified(found.survival.overall), *_speed(answers)]
    return [first, *([] if len(measured) > 1 else _failures(answers)), *measured]


def _right(rate: RateRecord) -> str:
    if rate.rate is None:
        return f"The results of {count(rate.denominator)} answers were not tried"
    return f"{share_said(rate)} answers are right: {_share(rate)}"


def _best_method(answers: Sequence[Result]) -> str:
    """Name a method that is significantly better than others, or say that none is."""
    ranked = [m for m in ranked_methods(answers, "right") if m.value is not None]
    if len(ranked) < 2:
        return ""
    worse = [len(ranked) - (m.last or len(ranked)) for m in ranked]
    if not any(worse):
        return "; between no two methods is the difference significant"
    best = max(range(len(ranked)), key=worse.__getitem__)
    name = (
        f"{method_label(ranked[best].method, ranked[best].model)} ({percent(ranked[best].value)})"
    )
    others = (
        "every other method"
        if worse[best] == len(ranked) - 1
        else (f"{count(worse[best])} of the {count(len(ranked) - 1)} other methods")
    )
    return f"; {name} is significantly better than {others}"


def _certified(curves: Sequence[SurvivalCurve]) -> Iterator[str]:
    """Say what remains of the kernels of the peer check whose kernels hold best, and worst."""
    last = {c.check: c.steps[-1].remain for c in curves if c.steps[-1].remain.denominator}
    if not last:
        return
    best, worst = max(last, key=lambda c: _rate(last[c])), min(last, key=lambda c: _rate(last[c]))
    said = (
        f"{_share(last[best])} of the {count(last[best].denominator)} kernels that {label(best)} "
        "certifies are tried and break nothing"
    )
    if (last[worst].high or 0.0) < (last[best].low or 0.0):
        rest = f"{count(last[worst].denominator)} that {label(worst)} certifies"
        said = f"{said}, and {_share(last[worst])} of the {rest}"
    elif len(last) > 1:
        said = f"{said}, the largest share of any peer check here"
    yield f"{said}."


def _rate(rate: RateRecord) -> float:
    return rate.rate or 0.0


def _share(rate: RateRecord) -> str:
    interval = share_interval(rate)
    return f"{percent(rate.rate)} ({interval})" if interval else percent(rate.rate)


def _failures(answers: Sequence[Result]) -> list[str]:
    others = Counter(r.verdict for r in answers if not r.correct)
    known = [(word, n) for word, n in others.most_common() if word in _FAILURES][:MOST_FAILURES]
    if not known:
        return []
    (word, most), *rest = known
    named = [f"{count(most)} of the other {count(others.total())} answers {_FAILURES[word]}"]
    named += [f"{count(n)} {_FAILURES[word]}" for word, n in rest]
    if left := others.total() - sum(n for _, n in known):
        named.append(f"{count(left)} end otherwise")
    return [f"{', '.join(named)}."]


def _speed(answers: Sequence[Result]) -> Iterator[str]:
    row = speedups(answers, EAGER)[0]
    if not row.timed or row.mean.value is None:
        return
    low, high = row.mean.low, row.mean.high
    how = f"have a mean speedup of {times(row.mean.value)} over eager PyTorch"
    if low is not None and high is not None:
        how = "faster than" if low > 1 else "slower than" if high < 1 else "not told apart from"
        shown = f"{times(row.mean.value)}, {times_interval(row.mean)}"
        how = f"are {how} eager PyTorch (geometric mean of speedups {shown})"
    outcomes = f"{count(row.surely_faster)} are faster, {count(row.surely_slower)} slower"
    said = f"On average, the {count(row.timed)} right kernels with a time {how}"
    yield f"{said}; {outcomes}, {count(row.ties)} tied."
