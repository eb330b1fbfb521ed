"""Rehearsals: calls that are made so that a candidate's kernels are compiled before it is timed."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

from kerneltruth.oracle.launches_seen import configs_after
from kerneltruth.runner.arguments import ScalarArgument
from kerneltruth.runner.protocol import Rehearse
from kerneltruth.runner.session import Session
from kerneltruth.runner.timing.messages import Supply

# A rehearsal's share of the device's memory; judging needs the rest.
SPARE = 0.25
# Ends of a rehearsal that leave its child usable for the next one.
_GOES_ON = ("returned", "raised", "compile_failed", "unsupported")


def rehearse(
    child: Session, calls: Iterable[Sequence[Supply | ScalarArgument]], *, budget_s: float
) -> None:
    """Make calls so that they compile into the candidate's cache, in all configurations.

    Stop when the child is lost, or when the seconds for all calls are spent. The rest is compiled
    when needed.
    """
    end = time.monotonic() + budget_s
    for arguments in calls:
        config, configs = 0, 1
        while config < configs:
            left_s = end - time.monotonic()
            if left_s <= 0:
                return
            rehearsal = Rehearse(arguments=tuple(arguments), config=config, spare=SPARE)
            seen = child.request(rehearsal, deadline_s=left_s)
            if seen.ended not in _GOES_ON:
                return
            configs = configs_after(configs, seen.launches)
            config += 1
