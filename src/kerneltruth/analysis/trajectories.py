"""Refinement: rates by round, rescues and losses, repairs, speedups. Pure.

A chain may end early, with success or with its budget spent. It then keeps its last result: each
round counts every chain.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise

from kerneltruth.analysis.groups import METHOD, Group, grouped
from kerneltruth.analysis.intervals import clustered_rate, geometric_mean
from kerneltruth.analysis.reading import answer_of, chains
from kerneltruth.analysis.results import Against, Result
from kerneltruth.clock.statistics.summary import MINIMUM_EFFECT
from kerneltruth.documents.effects import ChainFates, RefinementTables, RoundChanges, RoundRates
from kerneltruth.documents.estimates import EstimateRecord, RateRecord

Chain = tuple[Result, ...]


def trajectories(results: Sequence[Result]) -> RefinementTables:
    """Count the effects of rounds, for each method with a chain of two rounds or more."""
    rounds: list[RoundRates] = []
    fates: list[ChainFates] = []
    changes: list[RoundChanges] = []
    in_rounds = [r for r in results if r.round is not None]
    for group, members in grouped(in_rounds, METHOD).items():
        own = chains(members)
        if max((len(chain) for chain in own), default=0) < 2:
            continue
        rounds += _rounds(group, own)
        fates.append(_fates(group, own))
        changes.append(_changes(group, own))
    return RefinementTables(rounds=tuple(rounds), fates=tuple(fates), changes=tuple(changes))


def _rounds(group: Group, own: Sequence[Chain]) -> list[RoundRates]:
    rows: list[RoundRates] = []
    # By chain: the latest answer of the round before.
    before: list[Result | None] = []
    for number in sorted({r.round or 0 for chain in own for r in chain}):
        so_far = [tuple(r for r in chain if (r.round or 0) <= number) for chain in own]
        begun = [chain for chain in so_far if chain]
        latest = [chain[-1] for chain in begun]
        steady = [c[-1] for c in begun if all(r.speedup() is not None for r in c)]
        now = [chain[-1] if chain else None for chain in so_far]
        steps = [_step(a, b) for a, b in zip(before, now, strict=True)] if rows else []
        before = now
        rows.append(
            RoundRates(
                method=group[0],
                model=group[1],
                round=number,
                chains=len(own),
                made=sum(r.round == number for r in latest),
                not_judged=sum(not r.judged for r in latest),
                call=_of_chains(so_far, lambda c: bool(c) and c[-1].called, own),
                exe=_of_chains(so_far, lambda c: bool(c) and c[-1].correct, own),
                kept=_of_chains(so_far, lambda c: bool(c) and answer_of(c).correct, own),
                speedup=_speedup(latest),
                steady=_speedup(steady),
                rescued=_of_steps(steps, "rescued", own),
                persistent=_of_steps(steps, "persistent", own),
                rescued_speedup=_speed_of_steps(steps, "rescued", now),
                persistent_speedup=_speed_of_steps(steps, "persistent", now),
            )
        )
    return rows


def _of_chains(
    seen: Sequence[Chain], holds: Callable[[Chain], bool], own: Sequence[Chain]
) -> RateRecord:
    """Return the share of chains for which something holds, as far as they are seen."""
    return clustered_rate((c[0].task, holds(s)) for s, c in zip(seen, own, strict=True))


def _step(before: Result | None, now: Result | None) -> str:
    """Return what a round does to a chain's latest answer; "" for neither of the two words."""
    if before is None or now is None or not now.correct or not before.judged:
        return ""
    return "persistent" if before.correct else "rescued"


def _of_steps(steps: Sequence[str], word: str, own: Sequence[Chain]) -> RateRecord | None:
    """Return the share of chains with this step; None of the first round."""
    hits = [(c[0].task, step == word) for step, c in zip(steps, own, strict=bool(steps))]
    return clustered_rate(hits) if steps else None


def _speed_of_steps(
    steps: Sequence[str], word: str, now: Sequence[Result | None]
) -> EstimateRecord | None:
    found = [r for step, r in zip(steps, now, strict=bool(steps)) if r and step == word]
    return _speedup(found) if steps else None


def _speedup(results: Sequence[Result]) -> EstimateRecord:
    timed = [(r.task, s) for r in results if (s := r.speedup()) is not None]
    return geometric_mean([s for _, s in timed], [task for task, _ in timed])


def _fates(group: Group, own: Sequence[Chain]) -> ChainFates:
    fates = [fate(chain) for chain in own]

    def share(name: str) -> RateRecord:
        return clustered_rate((c[0].task, f == name) for c, f in zip(own, fates, strict=True))

    def speedup(name: str) -> EstimateRecord:
        last = [_judged(c)[-1] for c, f in zip(own, fates, strict=True) if f == name]
        return _speedup(last)

    return ChainFates(
        method=group[0],
        model=group[1],
        chains=len(own),
        persistent=share("persistent"),
        rescued=share("rescued"),
        regained=share("regained"),
        lost=share("lost"),
        never=share("never"),
        not_judged=share("not_judged"),
        persistent_speedup=speedup("persistent"),
        rescued_speedup=speedup("rescued"),
    )


def fate(chain: Chain) -> str:
    """Return how a chain ends: a field of `ChainFates`."""
    right = [r.correct for r in _judged(chain)]
    if not right:
        return "not_judged"
    if not any(right):
        return "never"
    if not right[-1]:
        return "lost"
    return "persistent" if all(right) else "regained" if right[0] else "rescued"


def _judged(chain: Chain) -> Chain:
    return tuple(r for r in chain if r.judged)


def _changes(group: Group, own: Sequence[Chain]) -> RoundChanges:
    steps = [(a, b) for chain in own for a, b in pairwise(chain)]
    moves = Counter((state(a), state(b)) for a, b in steps)
    judged = [(a, b) for a, b in steps if a.judged and b.judged]
    repairs = Counter(state(a) for a, b in judged if b.correct and not a.correct)
    gains = [
        (gain, max(_floor(a), _floor(b)))
        for a, b in steps
        if (gain := gain_of(a.against(), b.against())) is not None
    ]
    found = Counter(_call_of(gain, floor) for gain, floor in gains)
    return RoundChanges(
        method=group[0],
        model=group[1],
        steps=len(steps),
        not_judged=len(steps) - len(judged),
        repaired=clustered_rate((a.task, b.correct) for a, b in judged if not a.correct),
        regressed=clustered_rate((a.task, not b.correct) for a, b in judged if a.correct),
        timed=len(gains),
        higher=sum(gain.speedup > 1 for gain, _ in gains),
        improved=found["improved"],
        worsened=found["worsened"],
        unsure=found["unsure"],
        repairs=dict(repairs.most_common()),
        moves=tuple((before, after, count) for (before, after), count in moves.most_common()),
    )


def state(result: Result) -> str:
    """Return how an attempt ended: `pass`, `fail value`, `compile_error`."""
    return result.verdict if result.kind is None else f"{result.verdict} {result.kind}"


def gain_of(before: Against | None, after: Against | None) -> Against | None:
    """Return the second's speedup over the first, by their speedups over one baseline.

    Each was measured beside that baseline, so changes of the device in between cancel.
    """
    if before is None or after is None:
        return None
    gain = after.speedup / before.speedup
    ends = (before.low, before.high, after.low, after.high)
    if any(end is None or end <= 0 for end in ends):
        return Against(speedup=gain, low=None, high=None, outcome=None)
    first_low, first_high, second_low, second_high = (math.log(e) for e in ends if e is not None)
    first, second = math.log(before.speedup), math.log(after.speedup)
    below = math.hypot(second - second_low, first_high - first)
    above = math.hypot(second_high - second, first - first_low)
    return Against(
        speedup=gain, low=gain * math.exp(-below), high=gain * math.exp(above), outcome=None
    )


def _call_of(gain: Against, noise_floor: float) -> str:
    if gain.low is None or gain.high is None:
        return "unsure"
    room = 1 + max(noise_floor, MINIMUM_EFFECT)
    return "improved" if gain.low > room else "worsened" if gain.high < 1 / room else "unsure"


def _floor(result: Result) -> float:
    return (result.timing.noise_floor or 0.0) if result.timing else 0.0
