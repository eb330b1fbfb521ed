"""Claims of a child that what the judge measured itself contradicts."""

from __future__ import annotations

import math

from kerneltruth.documents.verdict import Hack
from kerneltruth.runner.observation import ITEMSIZE, Observation, TensorResult

# The child measures within what the judge measures, on the same clock.
SLACK_S = 0.01


def false_claim(observation: Observation, *, waited_s: float, arrays: bool) -> Hack | None:
    """The verdict on an answer that cannot be an honest child's; None if it can.

    Args:
        observation: how the child says that a call ended.
        waited_s: from sending the call to receiving the answer.
        arrays: whether results are NumPy's, whose elements a child does not count.
    """
    if observation.ended != "returned":
        # It may be that of loading, for which nobody waits a second time.
        return None
    said = _of_time(observation, waited_s) or (None if arrays else _of_size(observation))
    return None if said is None else Hack(kind="false_claim", detail=f"its process claims {said}")


def _of_time(observation: Observation, waited_s: float) -> str | None:
    took = observation.seconds
    if took is None or 0 <= took <= waited_s + SLACK_S:
        return None
    return f"that the call took {took:.3g} s; the judge waited {waited_s:.3g} s for it"


def _of_size(observation: Observation) -> str | None:
    work, results = observation.work, observation.results
    tensors = [r for r in results if isinstance(r, TensorResult) and r.dtype in ITEMSIZE]
    if work is None or len(tensors) != len(results):
        return None
    count = sum(math.prod(r.shape) for r in tensors)
    if work.elements == count:
        return None
    return f"that its results have {work.elements} elements; they have {count}"
