"""Probes: what a wrong result depends on beside its inputs, told by asking again."""

import itertools

import pytest
import torch
from scripted import RELU, case_of, tensor_in, trial_of

from kerneltruth.oracle.probes import REPEATS, Probes, probe
from kerneltruth.oracle.verdict import Crashed, Failed, Passed
from kerneltruth.runner.protocol import Observation


def probed(answer):
    trial = trial_of(RELU, answer)
    expectation = trial.cache.get(RELU, case_of(RELU))
    ruling, _, _ = trial.call(expectation)
    trial.runner.calls.clear()
    return probe(trial, expectation, ruling, config=2), trial.runner.calls


def wrong(call):
    return call.tensors["x"] + 100


def test_what_is_wrong_in_the_same_way_each_time_depends_on_nothing_else():
    found, _ = probed(wrong)
    assert found == Probes()


def test_an_output_that_changes_by_itself_is_nondeterministic():
    count = itertools.count()
    found, calls = probed(lambda call: wrong(call) + next(count))
    assert found == Probes(nondeterministic=True)
    assert len(calls) == 1


def test_an_output_that_changes_once_in_a_few_repeats_is_nondeterministic():
    turns = iter([0, 0, 1])
    found, calls = probed(lambda call: wrong(call) + next(turns))
    assert found == Probes(nondeterministic=True)
    assert len(calls) == REPEATS


def test_an_output_that_follows_the_poison_was_never_written():
    found, _ = probed(lambda call: wrong(call) + call.poison[0])
    assert found == Probes(poison_dependent=True)


def test_an_output_that_follows_the_guards_was_read_out_of_bounds():
    def beyond(call):
        (argument,) = call.arguments
        return tensor_in(argument) + 100 + argument.buffer[0]

    found, _ = probed(beyond)
    assert found == Probes(guard_dependent=True)


def test_every_probe_asks_for_the_configuration_that_failed():
    _, calls = probed(wrong)
    assert {call.config for call in calls} == {2}


def test_without_an_output_there_is_nothing_to_probe():
    found, calls = probed(lambda call: Observation(ended="died", signal=11))
    assert found == Probes()
    assert calls == []


@pytest.mark.parametrize(
    ("probes", "kind"),
    [
        (Probes(nondeterministic=True), "nondeterministic"),
        (Probes(poison_dependent=True), "uninitialized"),
        (Probes(guard_dependent=True), "out_of_bounds"),
        (Probes(), "value"),
    ],
)
def test_a_cause_takes_the_place_of_the_symptom(probes, kind):
    refined = probes.refine(Failed(kind="value", detail="1 of 2 elements are wrong", output="y"))
    assert (refined.kind, refined.output) == (kind, "y")
    assert refined.detail.startswith("1 of 2 elements are wrong")


def test_what_is_no_symptom_of_a_dependence_stays_as_it_is():
    found = Probes(nondeterministic=True)
    for verdict in (Passed(), Crashed(signal=11, detail=""), Failed(kind="shape", detail="")):
        assert found.refine(verdict) == verdict


def test_a_nan_that_repeats_is_no_dependence():
    found, _ = probed(lambda call: torch.full((3, 5), torch.nan))
    assert found == Probes()
