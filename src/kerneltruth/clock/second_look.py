"""What looks wrong, looked at once more: claims that are doubted, and baselines that were beaten.

All run on the same device: work that a candidate leaves there between its own laps would make
others look slow. So baselines are timed again when it is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from kerneltruth.clock.contest import Contest
from kerneltruth.clock.contestants import ContestError
from kerneltruth.clock.standing import is_suspect, laps_of

# How often the blocks of a candidate are doubled before it is suspect.
CLOSER_LOOKS = 2
# By which share a baseline may be slower beside a candidate than without it; and where the device's
# power limits them, which a candidate may rightly use more of.
HINDERED = 0.03
HINDERED_CAPPED = 0.1
# Laps of each baseline; and where those say that one was hindered, since a few are quick or slow by
# chance.
FEW_LAPS, MORE_LAPS = 3, 16
# Until a device that was at its power's limit is there again after a pause.
SETTLE_S = 0.3


def look_closer(contest: Contest, disturbance: Callable[[], str | None] = lambda: None) -> None:
    """Run as many blocks again while the judge's clock contradicts the candidate's events.

    Hundreds of candidates are timed in a study, and a busy host blurs that clock: what is only by
    chance rarely outlasts more blocks, and false events do. In these blocks a baseline shows what
    a lap costs beyond its events although nobody hides a thing.
    """
    for _ in range(CLOSER_LOOKS):
        if not is_suspect(contest):
            break
        contest.doubted = True
        wanted = 2 * len(contest.blocks)
        contest.run(partial(_has_blocks, wanted), disturbance, most=wanted)


def _has_blocks(wanted: int, contest: Contest) -> bool:
    return len(contest.blocks) >= wanted


@dataclass(frozen=True, slots=True, kw_only=True)
class SecondLook:
    """Baselines without the candidate.

    Attributes:
        hindered: the names of those that were beaten and are quicker now.
        alone_s: of those that were beaten the seconds of a call, lap by lap; empty where one could
            not go on.
    """

    hindered: tuple[str, ...] = ()
    alone_s: dict[str, list[float]]


def look_again(contest: Contest, beaten: Sequence[str], *, capped: bool = False) -> SecondLook:
    """Time baselines of a contest whose candidate is gone.

    Args:
        contest: its blocks have what baselines took beside the candidate.
        beaten: names of the baselines that it is about.
        capped: whether the device was at its power's limit beside the candidate.
    """
    found = SecondLook(alone_s={})
    for laps, settle_s in ((FEW_LAPS, SETTLE_S if capped else 0.0), (MORE_LAPS, SETTLE_S)):
        try:
            alone = contest.alone(beaten, laps, settle_s=settle_s)
        except ContestError:
            break
        hindered = (n for n in beaten if was_hindered(contest, n, alone[n], capped=capped))
        found = SecondLook(hindered=tuple(hindered), alone_s=alone)
        if not found.hindered:
            break
    return found


def was_hindered(
    contest: Contest, baseline: str, alone_s: Sequence[float], *, capped: bool = False
) -> bool:
    """Whether a baseline was slower beside the candidate than after the candidate's end.

    Where the device's power limits a kernel, its laps scatter by some percent; so three quarters of
    those beside the candidate must have been slower than three quarters of those without it.

    Args:
        contest: with the candidate.
        baseline: the baseline's name.
        alone_s: of its calls in laps without the candidate.
        capped: whether the device was at its power's limit beside the candidate.
    """
    share = HINDERED_CAPPED if capped else HINDERED
    beside = sorted(lap.per_call_s for lap in laps_of(contest, baseline))
    alone = sorted(alone_s)[3 * len(alone_s) // 4]
    return beside[len(beside) // 4] > alone * (1 + share)
