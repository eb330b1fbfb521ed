"""Seconds per call are a slope, whatever the exchange around the calls costs."""

import math

import pytest

from kerneltruth.commands.stopwatch import (
    MOST_ELEMENTS,
    MOST_REPEATS,
    NotTimedError,
    seconds_per_call,
    timed_case,
)
from kerneltruth.tasks.registry import tasks_of


@pytest.mark.parametrize("each", [5e-6, 1e-3, 0.2])
def test_the_cost_of_the_exchange_is_left_out(each):
    asked = []

    def exchange(repeats):
        asked.append(repeats)
        return 0.01 + each * repeats

    assert seconds_per_call(exchange) == pytest.approx(each, rel=1e-6)
    assert max(asked) <= MOST_REPEATS


def test_a_single_slow_exchange_does_not_decide():
    turns = iter(range(10_000))

    def exchange(repeats):
        return 1e-3 * repeats + (0.5 if next(turns) == 12 else 0.0)

    assert seconds_per_call(exchange) == pytest.approx(1e-3, rel=0.01)


def test_calls_that_take_no_time_are_not_given_one():
    with pytest.raises(NotTimedError, match="too short"):
        seconds_per_call(lambda repeats: 0.01)


def test_every_task_of_the_suite_has_a_shape_to_be_timed():
    for task in tasks_of("kernelbenchx").values():
        case = timed_case(task)
        assert task.allows(case.sizes, case.settings, to_time=True), task.key
        shapes = [task.shape(s, case.sizes, case.settings) for s in task.tensors]
        assert sum(math.prod(shape) for shape in shapes) <= MOST_ELEMENTS
