"""Rehearsals: which calls are made before a candidate is timed, and when they stop."""

import time

import pytest
from scripted import RELU, case_of, session_of

from kerneltruth.oracle.launches_seen import MAX_CONFIGS
from kerneltruth.oracle.rehearsal import rehearse
from kerneltruth.runner.observation import Launch, Observation
from kerneltruth.runner.timing.messages import Supply


def right(call):
    return call.tensors["x"].clamp(min=0)


def launch(configs=1):
    return Launch(kernel="k", grid=(1,), constants={}, signature={"x": "*fp32"}, configs=configs)


SHAPES = tuple((Supply(name="x", dtype="float32", shape=(n,)),) for n in (8, 9))


def rehearsed(answer, *, budget_s=5.0):
    """Which shapes were rehearsed in which configurations."""
    with session_of(RELU, right, rehearsal=answer) as session:
        session.call(session.cache.get(RELU, case_of(RELU)))
        rehearse(session.child, SHAPES, budget_s=budget_s)
        return [(r.arguments[0].shape[0], r.config) for r in session.runner.rehearsed]


def test_each_shape_is_rehearsed_in_as_many_configurations_as_it_has():
    """Those for a size that nobody checked may have been pruned before."""

    def tuned(message):
        of_small = (launch(configs=2), launch())
        of_large = (launch(), launch(configs=3))
        launches = of_small if message.arguments[0].shape == (8,) else of_large
        return Observation(ended="returned", launches=launches)

    assert rehearsed(tuned) == [(8, 0), (8, 1), (9, 0), (9, 1), (9, 2)]


def test_a_kernel_without_configurations_is_rehearsed_once():
    assert rehearsed(lambda message: Observation(ended="returned")) == [(8, 0), (9, 0)]


def test_there_is_an_end_to_configurations():
    many = Observation(ended="returned", launches=(launch(configs=10**6),))
    assert len(rehearsed(lambda message: many)) == len(SHAPES) * MAX_CONFIGS


@pytest.mark.parametrize(
    ("ended", "count"),
    [("raised", 2), ("unsupported", 2), ("died", 1), ("timeout", 1), ("lost", 1)],
)
def test_what_raises_at_one_shape_is_tried_at_others_and_a_lost_child_is_left_alone(ended, count):
    assert len(rehearsed(lambda message: Observation(ended=ended))) == count


def test_all_rehearsals_share_their_seconds():
    def slow(message):
        time.sleep(0.05)
        return Observation(ended="returned", launches=(launch(configs=64),))

    assert 2 <= len(rehearsed(slow, budget_s=0.2)) <= 5
    assert rehearsed(slow, budget_s=0.0) == []
