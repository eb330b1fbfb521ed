"""A trial: what the child is called with, what is learned from launches, what is compiled."""

import pytest
from scripted import RELU, case_of, returned, trial_of

from kerneltruth.cases.materialize import materialize
from kerneltruth.oracle.arguments import poison_of
from kerneltruth.oracle.trial import MAX_CONFIGS
from kerneltruth.oracle.verdict import Passed
from kerneltruth.runner.protocol import Binary, Blank, Launch, Observation


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


def expected(trial, **case):
    return trial.cache.get(RELU, case_of(RELU, **case))


def test_a_call_gives_the_ruling_the_observation_and_where_the_inputs_lay():
    trial = trial_of(RELU, right)
    ruling, observation, placed = trial.call(expected(trial))
    assert ruling.verdict == Passed()
    assert observation.ended == "returned"
    assert list(placed) == ["x"]


def test_the_candidate_is_loaded_once_and_only_when_it_is_needed():
    trial = trial_of(RELU, right)
    assert trial.runner.opened == []
    trial.call(expected(trial))
    trial.call(expected(trial))
    assert trial.runner.opened == ["run"]


def test_leaving_a_trial_ends_its_children():
    trial = trial_of(RELU, launching(launch()), compiled=lambda call: Observation(ended="returned"))
    with trial:
        trial.call(expected(trial))
        trial.compile(expected(trial), (launch(),), 0)
        assert trial.runner.opened == ["run", "compile"]
    assert trial.runner.opened == []


@pytest.mark.parametrize("ends_first", [False, True])
def test_the_next_may_begin_before_children_have_ended_or_not(ends_first):
    with trial_of(RELU, right, ends_first=ends_first) as trial:
        trial.call(expected(trial))
    assert trial.runner.waited == [ends_first]


def test_poison_and_guards_choose_other_surroundings():
    trial = trial_of(RELU, right)
    expectation = expected(trial)
    trial.call(expectation)
    trial.call(expectation, poison=1)
    trial.call(expectation, guards=1)
    plain, poisoned, guarded = trial.runner.calls
    assert plain.poison == guarded.poison == poison_of(expectation.case, 0)
    assert poisoned.poison == poison_of(expectation.case, 1)
    assert plain.arguments == poisoned.arguments != guarded.arguments


def test_block_sizes_come_from_the_source_and_from_launches():
    trial = trial_of(RELU, launching(launch(BLOCK=64, FLAG=True, eps=0.5)), source="BLOCK = 32\n")
    assert trial.blocks == {32}
    trial.call(expected(trial))
    assert trial.blocks == {32, 64}


def test_the_number_of_configurations_is_learned_from_launches_up_to_a_limit():
    trial = trial_of(RELU, launching(launch(configs=5), launch(configs=10**6)))
    trial.call(expected(trial))
    assert trial.configs == MAX_CONFIGS


def test_given_inputs_are_run_and_not_judged():
    trial = trial_of(RELU, lambda call: call.tensors["x"] * 0)
    case = case_of(RELU)
    observation, placed = trial.run(case, materialize(RELU, case), poison=1)
    assert observation.ended == "returned"
    assert list(placed) == ["x"]
    assert trial.runner.calls[0].poison == poison_of(case, 1)


def compiling(**binary):
    found = Binary(kernel="k", target="sm_90", ok=True)
    made = Observation(
        ended="returned", binaries=(found, Binary(kernel="k", target="sm_80", **binary))
    )
    return trial_of(RELU, launching(launch()), compiled=lambda call: made)


def test_a_launch_is_compiled_once():
    trial = compiling(ok=True)
    for _ in range(2):
        assert trial.compile(expected(trial), (launch(BLOCK=8),), 0) is None
    assert len(trial.runner.calls) == 1
    trial.compile(expected(trial), (launch(BLOCK=16),), 0)
    assert len(trial.runner.calls) == 2
    assert len(trial.binaries) == 4


def test_the_first_target_that_refuses_is_named():
    trial = compiling(ok=False, error="too much shared memory")
    refused = trial.compile(expected(trial), (launch(),), 0)
    assert (refused.target, refused.detail) == ("sm_80", "k: too much shared memory")


def test_nothing_launched_is_nothing_to_compile():
    trial = compiling(ok=True)
    assert trial.compile(expected(trial), (), 0) is None
    assert trial.runner.opened == []


@pytest.mark.parametrize("configs", [1, 3])
def test_all_configurations_are_rehearsed_whatever_comes_of_it(configs):
    trial = trial_of(RELU, launching(launch(configs=configs)))
    arguments = (Blank(name="x", dtype="float32", shape=(8, 8)),)
    with trial:
        trial.call(expected(trial))
        trial.rehearse(arguments)
        rehearsed = trial.runner.rehearsed
    assert [r.config for r in rehearsed] == [*range(configs)]
    assert {r.arguments for r in rehearsed} == {arguments}
