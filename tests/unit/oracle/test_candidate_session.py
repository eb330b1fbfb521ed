"""A session: what the child is called with."""

import pytest
import torch
from scripted import RELU, case_of, session_of

from kerneltruth.cases.materialize import materialize
from kerneltruth.documents.verdict import Passed
from kerneltruth.oracle.arguments import Surroundings, poison_of
from kerneltruth.runner.observation import Launch, Observation


def right(call):
    return call.tensors["x"].clamp(min=0)


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
    session = session_of(RELU, right, compiled=lambda call: Observation(ended="returned"))
    launch = Launch(kernel="k", grid=(1,), constants={}, signature={"x": "*fp32"})
    with session:
        session.call(expected(session))
        session.compile(expected(session), (launch,), 0)
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


def test_given_inputs_are_run_and_not_judged():
    session = session_of(RELU, lambda call: call.tensors["x"] * 0)
    case = case_of(RELU)
    observation, placed = session.call_unjudged(case, materialize(RELU, case), poison=1)
    assert observation.ended == "returned"
    assert list(placed) == ["x"]
    assert session.runner.calls[0].poison == poison_of(case, 1)


def test_a_wait_for_a_processor_is_not_the_candidates_time():
    session = session_of(RELU, lambda call: Observation(ended="timeout"))
    session.loaded()
    session.allowance.left_s = 9.0

    with session.allowance.spent():
        session.runner.spent_s += 6.0
        session.child.queued_s += 4.0

    assert session.allowance.left_s == 7.0
