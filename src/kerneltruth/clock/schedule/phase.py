"""The order in which the steps of a benchmark may follow each other."""

from __future__ import annotations

from enum import Enum

from kerneltruth.errors import InternalError


class Phase(Enum):
    """How far a benchmark has come."""

    CREATED = "nothing has run"
    WARMED_UP = "every side has compiled"
    PREPARED = "every side has its buffers, and graphs if there are any"
    MEASURED = "the blocks suffice"
    CANDIDATE_GONE = "baselines have run without the candidate"
    FAILED = "a side could not go on before the blocks sufficed"


class BenchmarkStep(Enum):
    """The next step of a benchmark."""

    WARM_UP = "have every side compile"
    PREPARE = "estimate calls, allocate buffers, capture graphs"
    MEASURE = "run blocks"
    TIME_WARM_CACHES = "time calls on inputs that the caches hold"
    LOOP = "make the calls of a side for long, once they are timed"
    TIME_ALONE = "time baselines without the candidate"


# The phase after a step that succeeds; steps that are missing here are mistakes of the caller.
AFTER = {
    (Phase.CREATED, BenchmarkStep.WARM_UP): Phase.WARMED_UP,
    (Phase.WARMED_UP, BenchmarkStep.WARM_UP): Phase.WARMED_UP,
    (Phase.CREATED, BenchmarkStep.PREPARE): Phase.PREPARED,
    (Phase.WARMED_UP, BenchmarkStep.PREPARE): Phase.PREPARED,
    (Phase.PREPARED, BenchmarkStep.MEASURE): Phase.MEASURED,
    (Phase.MEASURED, BenchmarkStep.MEASURE): Phase.MEASURED,
    (Phase.PREPARED, BenchmarkStep.TIME_WARM_CACHES): Phase.PREPARED,
    (Phase.MEASURED, BenchmarkStep.TIME_WARM_CACHES): Phase.MEASURED,
    (Phase.MEASURED, BenchmarkStep.LOOP): Phase.MEASURED,
    (Phase.PREPARED, BenchmarkStep.TIME_ALONE): Phase.CANDIDATE_GONE,
    (Phase.MEASURED, BenchmarkStep.TIME_ALONE): Phase.CANDIDATE_GONE,
    (Phase.CANDIDATE_GONE, BenchmarkStep.TIME_ALONE): Phase.CANDIDATE_GONE,
}
# Measurements are complete before these steps: a side that fails then spoils none.
OPTIONAL = frozenset({BenchmarkStep.LOOP, BenchmarkStep.TIME_ALONE})


def after(phase: Phase, step: BenchmarkStep) -> Phase:
    """Return the phase after a step that succeeds.

    Raises:
        InternalError: the step cannot follow.
    """
    found = AFTER.get((phase, step))
    if found is None:
        raise InternalError(f"{step.name} cannot follow {phase.name}")
    return found


def after_failure(phase: Phase, step: BenchmarkStep) -> Phase:
    """Return the phase after a step that fails."""
    return phase if step in OPTIONAL else Phase.FAILED
