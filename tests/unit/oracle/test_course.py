"""The course of a trial: which cases are judged, when it stops, and what it comes to."""

from collections import Counter
from dataclasses import replace

import pytest
import torch
from scripted import RELU, declare, returned, trial_of

from kerneltruth.oracle.attempt import AttemptEnded, CaseJudged
from kerneltruth.oracle.course import CONFIGS_ON_FIRST_CASE, Plan, try_candidate
from kerneltruth.oracle.verdict import (
    CompileError,
    Crashed,
    Infra,
    Passed,
    TimedOut,
    UnsupportedHere,
    word,
)
from kerneltruth.runner.protocol import Binary, Launch, Observation


def right(call):
    return call.tensors["x"].clamp(min=0)


def tried(answer, declared=RELU, cases=6, plan=None, **runner):
    trial = trial_of(declared, answer, **runner)
    *judged, ended = try_candidate(trial, replace(plan or Plan(), cases=cases))
    assert isinstance(ended, AttemptEnded)
    assert all(isinstance(event, CaseJudged) for event in judged)
    return ended.attempt, [event.judgement for event in judged], trial


def test_a_right_candidate_passes_every_case_that_was_planned():
    attempt, judged, _ = tried(right)
    assert attempt.verdict == Passed()
    assert (attempt.cases, attempt.failed, len(judged)) == (6, 0, 6)
    assert len({j.case.identity for j in judged}) == 6


def test_the_same_plan_gives_the_same_cases():
    cases = [[j.case for j in tried(right)[1]] for _ in range(2)]
    assert cases[0] == cases[1]
    other = [j.case for j in tried(right, plan=Plan(seed=1))[1]]
    assert other != cases[0]


def test_the_core_domain_alone_is_judged_where_the_plan_says_so():
    _, judged, _ = tried(right, cases=20, plan=Plan(domain="core"))
    assert {j.case.domain for j in judged} == {"core"}
    assert {j.case.layout for j in judged} == {"contiguous"}


def test_the_first_failure_ends_the_trial():
    attempt, judged, _ = tried(lambda call: call.tensors["x"] + 100)
    assert (attempt.cases, attempt.failed, len(judged)) == (1, 1, 1)
    assert attempt.verdict.kind == "value"


def test_every_case_is_judged_if_the_plan_does_not_stop():
    attempt, judged, _ = tried(lambda call: call.tensors["x"] + 100, plan=Plan(stop_at_first=False))
    assert (attempt.cases, attempt.failed) == (6, 6)
    assert attempt.failure == judged[0]


def test_a_failure_carries_the_digests_that_a_replay_compares():
    attempt, _, _ = tried(lambda call: call.tensors["x"] + 100)
    failure = attempt.failure
    assert set(failure.digests) == {"x"}
    assert failure.reference_digest
    assert failure.output_digest
    assert failure.reference_digest != failure.output_digest


def test_a_dependence_that_the_probes_find_is_the_verdict():
    attempt, _, _ = tried(lambda call: call.tensors["x"] + 100 + call.small)
    assert attempt.verdict.kind == "uninitialized"


def test_a_refusal_in_the_extended_domain_is_declined_and_replaced():
    def contiguous_only(call):
        (argument,) = call.arguments
        if argument.strides != (argument.shape[1], 1):
            return Observation(ended="raised", error="ValueError", message="not contiguous")
        return right(call)

    attempt, judged, _ = tried(contiguous_only, cases=20)
    assert attempt.verdict == Passed()
    assert attempt.cases == 20
    assert {why for _, why in attempt.declined} == {"ValueError: not contiguous"}
    assert len(judged) == 20 + len(attempt.declined)


def test_a_candidate_that_declines_everything_is_not_passed():
    refusal = Observation(ended="unsupported", message="no such instruction")
    attempt, _, _ = tried(lambda call: refusal)
    assert attempt.verdict == UnsupportedHere(reason="no such instruction")
    assert attempt.cases == 0
    assert set(attempt.skipped) == {"no such instruction"}


@pytest.mark.parametrize(
    ("loaded", "verdict"),
    [
        (Observation(ended="unsupported", message="no CUDA"), UnsupportedHere(reason="no CUDA")),
        (Observation(ended="lost"), Infra(reason="the worker was lost")),
        (Observation(ended="timeout"), TimedOut(seconds=30.0)),
        (
            Observation(ended="died", signal=6, message="abort"),
            Crashed(signal=6, detail="while loading: abort"),
        ),
        (
            Observation(ended="load_failed", error="SyntaxError", message="line 3"),
            CompileError(detail="SyntaxError: line 3"),
        ),
    ],
)
def test_a_candidate_that_does_not_load_is_judged_by_that_alone(loaded, verdict, monkeypatch):
    monkeypatch.setattr("kerneltruth.oracle.course.load_allowance", lambda candidate: 30.0)
    attempt, judged, trial = tried(right, loaded=loaded)
    assert attempt.verdict == verdict
    assert (judged, trial.runner.calls) == ([], [])


def test_a_case_that_the_operator_refuses_is_counted_as_skipped():
    def picky(x):
        if x.shape[1] == 257:
            raise ValueError("not that size")
        return torch.relu(x)

    attempt, judged, _ = tried(right, declare("relu(x[M, N])", picky), cases=4)
    assert attempt.verdict == Passed()
    assert attempt.cases == len(judged) == 4
    assert attempt.skipped == {"the operator rejects the case: ValueError: not that size": 1}


def test_a_case_without_teeth_is_counted_and_the_candidate_not_run_on_it():
    vague = declare("relu(x[M, N])", torch.relu, admissible=(lambda x: x * 9 + 9,))
    attempt, _, trial = tried(right, vague, cases=3)
    assert word(attempt.verdict) == "unrefereeable"
    assert sum(attempt.unrefereeable.values()) > 0
    assert trial.runner.calls == []


def test_the_worst_ratio_is_over_the_cases_that_passed():
    attempt, judged, _ = tried(lambda call: right(call) * (1 + 2**-22), cases=4)
    ratios = [j.stats.max_bound_ratio for j in judged if j.stats.max_bound_ratio is not None]
    assert attempt.worst_ratio == max(ratios)


def autotuned(configs):
    launches = (Launch(kernel="k", grid=(1,), constants={}, signature={}, configs=configs),)
    return lambda call: returned(right(call), launches=launches)


def test_configurations_take_turns_and_the_first_case_sees_several():
    _, judged, _ = tried(autotuned(3), cases=9)
    assert [j.config for j in judged[:3]] == [0, 1, 2]
    assert len({j.case.identity for j in judged[:3]}) == 1
    assert Counter(j.config for j in judged) == {0: 3, 1: 3, 2: 3}


def test_the_first_case_does_not_run_under_every_one_of_many_configurations():
    _, judged, _ = tried(autotuned(40), cases=CONFIGS_ON_FIRST_CASE + 2)
    first = judged[0].case.identity
    assert sum(j.case.identity == first for j in judged) == CONFIGS_ON_FIRST_CASE


def test_a_kernel_that_does_not_compile_for_a_target_fails_in_the_core_domain():
    refused = Observation(
        ended="returned",
        binaries=(Binary(kernel="k", target="sm_90", ok=False, error="no registers"),),
    )
    attempt, _, _ = tried(autotuned(1), targets=("sm_90",), compiled=lambda call: refused)
    assert attempt.verdict == CompileError(detail="k: no registers", target="sm_90")


def test_nothing_is_compiled_where_the_plan_says_so():
    _, _, trial = tried(autotuned(1), targets=("sm_90",), plan=Plan(compile=False))
    assert {call.mode for call in trial.runner.calls} == {"run"}


def test_the_cases_are_counted_by_dtype_and_no_dtype_loses_one():
    attempt, judged, _ = tried(right, cases=20)
    seen = Counter(j.case.dtype for j in judged)
    assert {d: c.cases for d, c in attempt.dtypes.items()} == seen
    assert all((c.returned, c.failed) == (c.cases, 0) for c in attempt.dtypes.values())


def test_a_wrong_answer_and_one_that_never_came_count_apart_in_their_dtype():
    wrong, judged, _ = tried(lambda call: call.tensors["x"] + 100)
    (count,) = wrong.dtypes.values()
    assert list(wrong.dtypes) == [judged[0].case.dtype]
    assert (count.cases, count.returned, count.failed) == (1, 1, 1)
    died = Observation(ended="died", message="signal 11", signal=11)
    (count,) = tried(lambda call: died)[0].dtypes.values()
    assert (count.cases, count.returned, count.failed) == (1, 0, 1)
