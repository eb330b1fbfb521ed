"""What rounds do to answers: rates by round, rescues and losses, repairs, and real speedups. Pure.

A chain that ends early, since it has what it wants or nothing more to spend, stays where it ended:
each round counts every chain.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from kerneltruth.analysis.groups import Group, grouped
from kerneltruth.analysis.intervals import Estimate, Rate, clustered_rate, geometric_mean
from kerneltruth.analysis.reading import answer_of, chains
from kerneltruth.analysis.results import Against, Result
from kerneltruth.analysis.speeds import EAGER
from kerneltruth.clock.statistics.summary import MINIMUM_EFFECT

Chain = tuple[Result, ...]
BY = ("method", "model")


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundRow:
    """All chains of one group after a round.

    Attributes:
        made: chains that have an answer of this round; the others ended before.
        not_judged: chains whose latest answer could not be judged; they are in the denominators.
        call: by each chain's latest answer; likewise `exe`.
        kept: correct by the best answer so far.
        speedup: of the latest answers that are correct and timed.
        steady: of the chains that are correct and timed in every round up to this one, so that
            the same kernels' tasks are compared; None before there are any.
    """

    group: Group
    round: int
    chains: int
    made: int
    not_judged: int
    call: Rate
    exe: Rate
    kept: Rate
    speedup: Estimate
    steady: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Fates:
    """How the chains of one group end; each ends in exactly one way.

    Rounds that could not be judged say nothing: a chain's fate is that of its other rounds.

    Attributes:
        persistent: right in every round.
        rescued: wrong at first, right at the last.
        regained: right at first and at the last, and wrong between.
        lost: right at some time, wrong at the last.
        never: wrong in every round.
        not_judged: chains of which no round could be judged.
        persistent_speedup: of the last answers that are timed; likewise for the rescued.
    """

    group: Group
    chains: int
    persistent: Rate
    rescued: Rate
    regained: Rate
    lost: Rate
    never: Rate
    not_judged: Rate
    persistent_speedup: Estimate
    rescued_speedup: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What happens from one round to the next in one group.

    Attributes:
        steps: pairs of rounds that follow one another.
        not_judged: steps of which one end could not be judged; they begin neither right nor wrong.
        repaired: wrong, then right; of the steps that begin wrong.
        regressed: right, then wrong; of the steps that begin right.
        timed: steps from one correct timed answer to another.
        higher: of them, those whose speedup is higher at all.
        improved: those where it is higher: the interval clears the noise floor, and the clock's
            minimum effect.
        worsened: likewise lower.
        unsure: those whose intervals, or noise floor, leave both open.
        repairs: how often each kind of wrong answer was followed by a right one.
        moves: all steps by what they lead from and to: (before, after, count).
    """

    group: Group
    steps: int
    not_judged: int
    repaired: Rate
    regressed: Rate
    timed: int
    higher: int
    improved: int
    worsened: int
    unsure: int
    repairs: dict[str, int]
    moves: tuple[tuple[str, str, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trajectories:
    """The chains of a study: by round, by how they end, and step by step."""

    rounds: tuple[RoundRow, ...]
    fates: tuple[Fates, ...]
    changes: tuple[Changes, ...]


def trajectories(
    results: Sequence[Result], by: Sequence[str] = BY, *, baseline: str = EAGER
) -> Trajectories:
    """What rounds do, for each group that works in rounds: that has a chain of two or more."""
    rounds: list[RoundRow] = []
    fates: list[Fates] = []
    changes: list[Changes] = []
    in_rounds = [r for r in results if r.round is not None]
    for group, members in grouped(in_rounds, by).items():
        own = chains(members)
        if max((len(chain) for chain in own), default=0) < 2:
            continue
        rounds += _rounds(group, own, baseline)
        fates.append(_fates(group, own, baseline))
        changes.append(_changes(group, own, baseline))
    return Trajectories(rounds=tuple(rounds), fates=tuple(fates), changes=tuple(changes))


def _rounds(group: Group, own: Sequence[Chain], baseline: str) -> list[RoundRow]:
    rows = []
    for number in sorted({r.round or 0 for chain in own for r in chain}):
        so_far = [tuple(r for r in chain if (r.round or 0) <= number) for chain in own]
        begun = [chain for chain in so_far if chain]
        latest = [chain[-1] for chain in begun]
        steady = [c[-1] for c in begun if all(r.speedup(baseline) is not None for r in c)]
        rows.append(
            RoundRow(
                group=group,
                round=number,
                chains=len(own),
                made=sum(r.round == number for r in latest),
                not_judged=sum(not r.judged for r in latest),
                call=_of_chains(so_far, lambda c: bool(c) and c[-1].called, own),
                exe=_of_chains(so_far, lambda c: bool(c) and c[-1].correct, own),
                kept=_of_chains(so_far, lambda c: bool(c) and answer_of(c).correct, own),
                speedup=_speedup(latest, baseline),
                steady=_speedup(steady, baseline),
            )
        )
    return rows


def _of_chains(seen: Sequence[Chain], holds: Callable[[Chain], bool], own: Sequence[Chain]) -> Rate:
    """The share of chains of which something holds, as far as they are seen."""
    return clustered_rate((c[0].task, holds(s)) for s, c in zip(seen, own, strict=True))


def _speedup(results: Sequence[Result], baseline: str) -> Estimate:
    timed = [(r.task, s) for r in results if (s := r.speedup(baseline)) is not None]
    return geometric_mean([s for _, s in timed], [task for task, _ in timed])


def _fates(group: Group, own: Sequence[Chain], baseline: str) -> Fates:
    fates = [fate(chain) for chain in own]

    def share(name: str) -> Rate:
        return clustered_rate((c[0].task, f == name) for c, f in zip(own, fates, strict=True))

    def speedup(name: str) -> Estimate:
        last = [_judged(c)[-1] for c, f in zip(own, fates, strict=True) if f == name]
        return _speedup(last, baseline)

    return Fates(
        group=group,
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
    """How a chain ends, as `Fates` has it."""
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


def _changes(group: Group, own: Sequence[Chain], baseline: str) -> Changes:
    steps = [(a, b) for chain in own for a, b in pairwise(chain)]
    moves = Counter((state(a), state(b)) for a, b in steps)
    judged = [(a, b) for a, b in steps if a.judged and b.judged]
    repairs = Counter(state(a) for a, b in judged if b.correct and not a.correct)
    gains = [
        (gain, max(_floor(a), _floor(b)))
        for a, b in steps
        if (gain := gain_of(a.against(baseline), b.against(baseline))) is not None
    ]
    found = Counter(_call_of(gain, floor) for gain, floor in gains)
    return Changes(
        group=group,
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
    """How an attempt ended, in a word or two: `pass`, `fail value`, `compile_error`."""
    return result.verdict if result.kind is None else f"{result.verdict} {result.kind}"


def gain_of(before: Against | None, after: Against | None) -> Against | None:
    """How much faster the second is than the first, by their speedups over the same baseline.

    Each was measured beside that baseline, so what the device did differently meanwhile cancels.
    """
    if before is None or after is None:
        return None
    gain = after.speedup / before.speedup
    ends = (before.low, before.high, after.low, after.high)
    if any(end is None or end <= 0 for end in ends):
        return Against(speedup=gain, low=None, high=None, standing=None)
    first_low, first_high, second_low, second_high = (math.log(e) for e in ends if e is not None)
    first, second = math.log(before.speedup), math.log(after.speedup)
    below = math.hypot(second - second_low, first_high - first)
    above = math.hypot(second_high - second, first - first_low)
    return Against(
        speedup=gain, low=gain * math.exp(-below), high=gain * math.exp(above), standing=None
    )


def _call_of(gain: Against, noise_floor: float) -> str:
    if gain.low is None or gain.high is None:
        return "unsure"
    room = 1 + max(noise_floor, MINIMUM_EFFECT)
    return "improved" if gain.low > room else "worsened" if gain.high < 1 / room else "unsure"


def _floor(result: Result) -> float:
    return (result.timing.noise_floor or 0.0) if result.timing else 0.0
