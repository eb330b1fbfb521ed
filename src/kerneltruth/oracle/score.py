"""One number for a profile, for trainers that need more than pass or fail."""

from __future__ import annotations

import math
from collections.abc import Mapping

from kerneltruth.documents.records import ProfileEntry
from kerneltruth.oracle.obligations import ONLY_WHERE_PROMISED

# What an obligation earns. A refusal does no harm; a wrong result does, even after many right ones.
HELD, REFUSED, BROKEN_AT_MOST = 1.0, 0.5, 0.25
# Shares of a kernel that keeps all that its contract asks, of one that does not, and of the rest.
PASSING, FAILING, BEYOND = 0.9, 0.8, 0.1
# The most that a candidate earns whose own kernels did no work, where they must.
NO_KERNEL_AT_MOST = 0.1


def score(profile: Mapping[str, ProfileEntry]) -> float:
    """Score a profile from 0 to 1, by the mean of what its obligations earn.

    A kernel that holds all that its contract asks earns 0.9, any other one 0.8 times the mean over
    these obligations. What lies beyond the contract adds 0.1 times its mean. Held earns 1,
    refused 0.5, broken up to 0.25 by how many cases held, not tried nothing. To break or refuse one
    more obligation never raises it. Own kernels count only where they are required: then
    a result that is not theirs earns 0.1 at most.
    """
    whole = _of_results({k: e for k, e in profile.items() if k != "kernel"})
    kernel = profile.get("kernel")
    unshown = kernel is not None and kernel.decisive and kernel.status != "held"
    return min(whole, NO_KERNEL_AT_MOST) if unshown else whole


def _of_results(profile: Mapping[str, ProfileEntry]) -> float:
    counted = {k: e for k, e in profile.items() if _is_tried_at_all(k, e)}
    decisive = [_earned(e) for e in counted.values() if e.decisive]
    beyond = [_earned(e) for e in counted.values() if not e.decisive]
    if not decisive:
        return 0.0
    whole = all(e.status == "held" for e in counted.values() if e.decisive)
    base = PASSING if whole else FAILING * _mean(decisive)
    return round(base + BEYOND * _mean(beyond or decisive), 6)


def _is_tried_at_all(key: str, entry: ProfileEntry) -> bool:
    """Tell whether it is ever tried; gradients and attributes that nothing promises are not."""
    never = key in ONLY_WHERE_PROMISED and not (entry.decisive or entry.promised)
    return entry.status != "not_applicable" and not never


def _earned(entry: ProfileEntry) -> float:
    match entry.status:
        case "held":
            return HELD
        case "refused":
            return REFUSED
        case "broken":
            return BROKEN_AT_MOST * entry.cases / (entry.cases + 1)
        case _:
            return 0.0


def _mean(earned: list[float]) -> float:
    # In any order the same: a plain sum is rounded at each step.
    return math.fsum(earned) / len(earned)
