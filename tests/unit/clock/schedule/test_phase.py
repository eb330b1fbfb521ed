"""Which steps of a benchmark may follow each other, and which events of a child."""

from itertools import product

import pytest

from kerneltruth.clock.protocol.sides import ChildEvent, Graphs, Readiness, Side
from kerneltruth.clock.schedule.phase import AFTER, BenchmarkStep, Phase, after, after_failure
from kerneltruth.errors import InternalError


@pytest.mark.parametrize(("phase", "step"), [*product(Phase, BenchmarkStep)])
def test_a_step_follows_or_is_refused(phase, step):
    if (phase, step) in AFTER:
        assert after(phase, step) is not Phase.FAILED
    else:
        with pytest.raises(InternalError, match=f"{step.name} cannot follow {phase.name}"):
            after(phase, step)


@pytest.mark.parametrize("step", [*BenchmarkStep])
def test_nothing_follows_a_failure(step):
    with pytest.raises(InternalError):
        after(Phase.FAILED, step)


@pytest.mark.parametrize("first", [*BenchmarkStep])
def test_nothing_is_measured_before_it_is_prepared(first):
    for steps in product(BenchmarkStep, repeat=3):
        phase, done = Phase.CREATED, []
        for step in (first, *steps):
            try:
                phase = after(phase, step)
            except InternalError:
                continue
            done.append(step)
        if BenchmarkStep.MEASURE in done:
            assert BenchmarkStep.PREPARE in done[: done.index(BenchmarkStep.MEASURE)]


def test_measurements_outlive_a_baseline_that_fails_without_the_candidate():
    assert after_failure(Phase.MEASURED, BenchmarkStep.TIME_ALONE) is Phase.MEASURED
    assert after_failure(Phase.PREPARED, BenchmarkStep.MEASURE) is Phase.FAILED


@pytest.mark.parametrize("first", [*ChildEvent])
def test_a_side_has_buffers_exactly_while_it_is_ready(first):
    for events in product(ChildEvent, repeat=3):
        side = Side(name="eager", child=None)
        for event in (first, *events):
            before = side.readiness
            try:
                side.advance(event, buffers=8 if event is ChildEvent.ALLOCATED else 0)
            except InternalError:
                assert side.readiness is before
            assert (side.buffers > 0) is (side.readiness is Readiness.READY)


def test_captured_graphs_go_with_the_buffers_and_a_refusal_stays():
    side = Side(name="eager", child=None, readiness=Readiness.READY, graphs=Graphs.CAPTURED)
    side.advance(ChildEvent.FREED)
    assert side.graphs is Graphs.UNTRIED
    side.graphs = Graphs.REFUSED
    side.advance(ChildEvent.RESTARTED)
    assert side.graphs is Graphs.REFUSED
