"""A session: what the child is called with, and what is learned from launches."""

import time

import pytest
import torch
from scripted import RELU, case_of, returned, session_of

from kerneltruth.cases.materialize import materialize
from kerneltruth.documents.verdict import Passed
from kerneltruth.oracle.arguments import Surroundings, poison_of
from kerneltruth.oracle.candidate_session import MAX_CONFIGS
from kerneltruth.runner.observation import Launch, Observation
from kerneltruth.runner.timing.messages import Supply


def right(call):
    return call.tensors["x"].clamp(min=0)


def launch(**constants):
    return Launch(
        kernel="k",
        grid=(1,),
        constants=constants,
        signature={"x": "*fp32"},
        configs=constants.pop("configs", 1),
    )


def launching(*launches):
    return lambda call: returned(right(call), launches=launches)


def expected(session, **case):
    return session.cache.get(RELU, case_of(RELU, **case))


def test_a_call_gives_the_ruling_the_observation_and_where_the_inputs_lay():
    session = session_of(RELU, right)
    ruling, observation, placed = session.call(expected(session))
    assert ruling.verdict == Passed()
    assert observation.ended == "returned"
    assert list(placed) == ["x"]


def test_the_candidate_is_loaded_once_and_only_when_it_is_needed():
    session = session_of(RELU, right)
    assert session.runner.opened == []
    session.call(expected(session))
    session.call(expected(session))
    assert session.runner.opened == ["run"]


def test_leaving_a_session_ends_its_children():
    session = session_of(
        RELU, launching(launch()), compiled=lambda call: Observation(ended="returned")
    )
    with session:
        session.call(expected(session))
        session.compile(expected(session), (launch(),), 0)
        assert session.runner.opened == ["run", "compile"]
    assert session.runner.opened == []


@pytest.mark.parametrize("ends_first", [False, True])
def test_the_next_may_begin_before_children_have_ended_or_not(ends_first):
    with session_of(RELU, right, ends_first=ends_first) as session:
        session.call(expected(session))
    assert session.runner.waited == [ends_first]


def test_a_call_can_have_other_surroundings():
    session = session_of(RELU, right)
    expectation = expected(session, layout="transposed")
    session.call(expectation)
    session.call(expectation, around=Surroundings(small_poison=True))
    session.call(expectation, around=Surroundings(small_guards=True))
    session.call(expectation, around=Surroundings(contiguous=frozenset(["x"])))
    plain, poisoned, guarded, contiguous = session.runner.calls
    assert {c.poison for c in session.runner.calls} == {poison_of(expectation.case, 0)}
    assert [c.small_poison for c in session.runner.calls] == [False, True, False, False]
    assert [c.small_guards for c in session.runner.calls] == [False, False, True, False]
    assert plain.arguments == poisoned.arguments != guarded.arguments
    assert plain.arguments[0].strides == guarded.arguments[0].strides == (1, 3)
    assert contiguous.arguments[0].strides == (5, 1)
    for call in session.runner.calls:
        assert torch.equal(call.tensors["x"], plain.tensors["x"])


def test_block_sizes_come_from_the_source_and_from_launches():
    session = session_of(
        RELU, launching(launch(BLOCK=64, FLAG=True, eps=0.5)), source="BLOCK = 32\n"
    )
    assert session.blocks == {32}
    session.call(expected(session))
    assert session.blocks == {32, 64}


def test_the_number_of_configurations_is_learned_from_launches_up_to_a_limit():
    session = session_of(RELU, launching(launch(configs=5), launch(configs=10**6)))
    session.call(expected(session))
    assert session.configs == MAX_CONFIGS


def test_given_inputs_are_run_and_not_judged():
    session = session_of(RELU, lambda call: call.tensors["x"] * 0)
    case = case_of(RELU)
    observation, placed = session.run(case, materialize(RELU, case), poison=1)
    assert observation.ended == "returned"
    assert list(placed) == ["x"]
    assert session.runner.calls[0].poison == poison_of(case, 1)


SHAPES = tuple((Supply(name="x", dtype="float32", shape=(n,)),) for n in (8, 9))


def rehearsed(answer, *, budget_s=5.0):
    """Which shapes were rehearsed in which configurations."""
    with session_of(RELU, right, rehearsal=answer) as session:
        session.call(expected(session))
        session.rehearse(SHAPES, budget_s=budget_s)
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
