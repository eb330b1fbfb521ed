"""What looks wrong, looked at once more: claims that are doubted, and baselines that were beaten.

All run on the same device: work that a candidate leaves there between its own laps would make
others look slow. So baselines are timed again when it is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from kerneltruth.clock.integrity.doubt import is_suspect, was_hindered
from kerneltruth.clock.protocol.sides import ContestError
from kerneltruth.clock.schedule.benchmark import Contest

# How often the blocks of a candidate are doubled before it is suspect.
CLOSER_LOOKS = 2
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
