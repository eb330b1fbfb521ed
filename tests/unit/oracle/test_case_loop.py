"""The course of a session: which cases are judged, when it stops, and what it comes to."""

from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from scripted import RELU, declare, returned, session_of

from kerneltruth.documents.verdict import (
    CompileError,
    Crashed,
    Infra,
    Passed,
    RuntimeFault,
    TimedOut,
    UnsupportedHere,
)
from kerneltruth.oracle.attempt import AttemptEnded, CaseJudged, judge_cases
from kerneltruth.oracle.launches_seen import CONFIGS_ON_FIRST_CASE
from kerneltruth.oracle.plan import Plan
from kerneltruth.oracle.repeated_calls import RightCases
from kerneltruth.runner.observation import Binary, Launch, Observation


def right(call):
    return call.tensors["x"].clamp(min=0)


def judge_scripted(answer, declared=RELU, cases=6, plan=None, **runner):
    session = session_of(declared, answer, **runner)
    *judged, ended = judge_cases(session, replace(plan or Plan(), cases=cases))
    assert isinstance(ended, AttemptEnded)
    assert all(isinstance(event, CaseJudged) for event in judged)
    return ended.attempt, [event.judgement for event in judged], session


def test_a_right_candidate_passes_every_case_that_was_planned():
    attempt, judged, _ = judge_scripted(right)
    assert attempt.verdict == Passed()
    assert (attempt.cases, attempt.failed, len(judged)) == (6, 0, 6)
    assert len({j.case.identity for j in judged}) == 6


def test_one_draw_shows_that_a_right_candidate_keeps_nothing():
    _, judged, session = judge_scripted(right)
    after = session.runner.calls[len(judged) :]
    # Other contents come before the draw in its memory; then the first case is called once more.
    assert [len(call.earlier) for call in after] == [3, 0]


def test_a_child_that_is_lost_again_and_again_is_given_no_further_case():
    lost = Observation(ended="lost", message="no memory")
    attempt, judged, _ = judge_scripted(lambda call: lost, cases=48)
    assert (attempt.verdict, len(judged)) == (Infra(reason="no memory"), 8)
    assert "8 calls were lost" in {entry.reason for entry in attempt.profile.values()}


def test_a_child_that_is_lost_a_few_times_gets_all_cases():
    calls = []

    def sometimes(call):
        calls.append(call)
        return Observation(ended="lost", message="x") if len(calls) % 8 == 0 else right(call)

    attempt, judged, _ = judge_scripted(sometimes, cases=40)
    assert (len(judged), attempt.verdict.word) == (45, "infra")


def test_the_same_plan_gives_the_same_cases():
    cases = [[j.case for j in judge_scripted(right)[1]] for _ in range(2)]
    assert cases[0] == cases[1]
    other = [j.case for j in judge_scripted(right, plan=Plan(seed=1))[1]]
    assert other != cases[0]


def test_the_core_domain_alone_is_judged_where_the_plan_says_so():
    _, judged, _ = judge_scripted(right, cases=20, plan=Plan(domain="core"))
    assert {j.case.domain for j in judged} == {"core"}
    assert {j.case.layout for j in judged} == {"contiguous"}


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({}, ["pass"] * 6),
        ({"results_changed": True}, ["pass"] * 6 + ["hack"]),
        ({"inputs_changed": ("x",)}, ["pass"] * 6 + ["hack"]),
    ],
)
def test_what_changes_after_the_last_call_is_a_hack(changed, words):
    late = Observation(ended="returned", **changed)
    attempt, judged, _ = judge_scripted(right, after_last=late)
    assert [j.verdict.word for j in judged] == words
    assert attempt.verdict.word == words[-1]


@pytest.mark.parametrize(
    ("large", "kept"), [((True,), [0]), ((True, False, True, False), [1, 3]), ((True, True), [1])]
)
def test_a_large_case_is_called_again_only_where_there_is_no_other(large, kept):
    right = RightCases()
    for number, is_large in enumerate(large):
        right.keep(SimpleNamespace(is_large=is_large, number=number))
    assert [expectation.number for expectation in right.kept] == kept


def test_a_candidate_that_is_wrong_everywhere_is_not_tried_to_the_end():
    attempt, judged, _ = judge_scripted(lambda call: call.tensors["x"] + 100, cases=48)
    assert attempt.cases == attempt.failed <= len(judged) <= 14
    assert attempt.verdict.kind == "value"


def test_every_case_is_judged_if_the_plan_does_not_stop():
    attempt, judged, _ = judge_scripted(
        lambda call: call.tensors["x"] + 100, plan=Plan(stop_at_first=False)
    )
    assert (attempt.cases, attempt.failed) == (6, 6)
    assert attempt.failure == judged[0]


def test_a_failure_carries_the_digests_that_a_replay_compares():
    attempt, _, _ = judge_scripted(lambda call: call.tensors["x"] + 100)
    failure = attempt.failure
    assert set(failure.digests) == {"x"}
    assert failure.reference_digest
    assert failure.output_digest
    assert failure.reference_digest != failure.output_digest


def test_a_dependence_that_the_probes_find_is_the_verdict():
    attempt, _, _ = judge_scripted(lambda call: call.tensors["x"] + 100 + call.small_poison)
    assert attempt.verdict.kind == "uninitialized"


def test_a_refusal_in_the_extended_domain_is_declined_and_replaced():
    def contiguous_only(call):
        (argument,) = call.arguments
        if argument.strides != (argument.shape[1], 1):
            return Observation(ended="raised", error="ValueError", message="not contiguous")
        return right(call)

    attempt, judged, _ = judge_scripted(contiguous_only, cases=20)
    assert attempt.verdict == Passed()
    assert attempt.cases == 20
    assert {why for _, why in attempt.declined} == {"ValueError: not contiguous"}
    assert len(judged) == 20 + len(attempt.declined)


def test_a_candidate_that_declines_everything_is_not_passed():
    refusal = Observation(ended="unsupported", message="no such instruction")
    attempt, _, _ = judge_scripted(lambda call: refusal)
    assert attempt.verdict == UnsupportedHere(reason="no such instruction")
    assert attempt.cases == 0
    assert set(attempt.skipped) == {"no such instruction"}


def sometimes(answer, share):
    """Right, but in every so-many-th of the calls."""
    calls = []

    def respond(call):
        calls.append(call)
        return answer if len(calls) % share == 0 else right(call)

    return respond


@pytest.mark.parametrize("ended", ["unsupported", "lost"])
def test_what_the_child_says_of_itself_leaves_no_pass(ended):
    claim = Observation(ended=ended, message="not here")
    attempt, _, _ = judge_scripted(sometimes(claim, 5), cases=20)
    expected = {"unsupported": UnsupportedHere, "lost": Infra}[ended]
    assert isinstance(attempt.verdict, expected)
    assert attempt.verdict.reason == "not here (in 4 of 24 cases, as its process reported)"
    assert attempt.skipped == {"not here": 4}


def test_a_failure_counts_whatever_the_child_says_of_other_cases():
    claim = Observation(ended="unsupported", message="not here")
    attempt, _, _ = judge_scripted(
        lambda call: claim if call.tensors["x"].shape[0] > 8 else call.tensors["x"] + 100, cases=20
    )
    assert attempt.verdict.kind == "value"


def test_a_dtype_that_numpy_lacks_is_no_claim_of_the_child():
    attempt, judged, _ = judge_scripted(right, language="numpy", cases=20)
    assert attempt.verdict == Passed()
    assert set(attempt.skipped) == {"NumPy has no dtype bfloat16"}
    assert "bfloat16" not in {j.case.dtype for j in judged}


def test_on_a_gpu_nothing_is_unsupported_by_an_interpreter():
    claim = Observation(ended="unsupported", error="UnsupportedHere", message="not here")
    attempt, _, _ = judge_scripted(lambda call: claim, language="triton", device="cuda:0")
    assert attempt.verdict == RuntimeFault(error="UnsupportedHere", detail="not here")


def test_a_kernel_that_declines_nearly_everything_is_not_passed():
    refusal = Observation(ended="raised", error="ValueError", message="no")
    plan = Plan(strategies=("layouts", "nan_injected", "adversarial", "empty"))
    attempt, _, _ = judge_scripted(lambda call: refusal, cases=20, plan=plan)
    assert isinstance(attempt.verdict, RuntimeFault | UnsupportedHere)
    judged = iter(range(1000))
    few = lambda call: right(call) if next(judged) < 3 else refusal
    attempt, _, _ = judge_scripted(few, cases=20, plan=replace(plan, strategies=("nan_injected",)))
    # Nor is one that refuses plain inputs after a while.
    assert attempt.verdict == RuntimeFault(error="ValueError", detail="no")


def doubled(call):
    return right(call).double()


def test_right_values_of_another_dtype_fail_where_the_dtype_is_promised():
    attempt, judged, _ = judge_scripted(doubled, cases=20)
    core = [j for j in judged if j.case.domain == "core"]
    assert (attempt.verdict.kind, attempt.verdict.output) == ("dtype", "out")
    assert attempt.failure.case == core[0].case
    assert attempt.failure.output_digest is not None
    assert (attempt.cases, attempt.failed) == (20, len(core))
    (note,) = attempt.interface
    assert (note.kind, note.cases, note.core) == ("dtype", 20, len(core))
    assert sum(count.failed for count in attempt.dtypes.values()) == len(core)


def test_right_values_of_another_dtype_beyond_the_core_are_a_note():
    attempt, _, _ = judge_scripted(
        lambda call: doubled(call) if strided(call) else right(call), cases=20
    )
    assert attempt.verdict == Passed()
    (note,) = attempt.interface
    assert (note.kind, note.core, note.first.domain) == ("dtype", 0, "extended")


def strided(call):
    (argument,) = call.arguments
    return argument.strides != (argument.shape[1], 1)


def test_a_wrong_value_outweighs_a_wrong_dtype_that_was_seen_before():
    half = lambda call: 100 * (call.arguments[0].dtype == "float16")
    attempt, judged, _ = judge_scripted(lambda call: doubled(call) + half(call), cases=20)
    assert attempt.verdict.kind == "value"
    assert len(judged) > 1
    assert attempt.interface


@pytest.mark.parametrize(
    ("source", "ends"),
    [
        ("def relu(x):\n    y = x + 1\n", True),
        ("def relu(x):\n    def inner():\n        return x\n    inner()\n", True),
        ("def relu(x):\n    pass\n", True),
        ("def relu(x):\n    if x is None:\n        return x\n", False),
        ("relu = lambda x: None\n", False),
    ],
)
def test_an_answer_that_was_cut_off_is_said_to_be(source, ends):
    attempt, _, _ = judge_scripted(lambda call: returned(), source=source)
    assert attempt.verdict.kind == "type"
    assert ("the source never returns a value" in attempt.verdict.detail) == ends


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
def test_a_candidate_that_does_not_load_is_judged_by_that_alone(loaded, verdict):
    attempt, judged, session = judge_scripted(right, loaded=loaded)
    assert attempt.verdict == verdict
    assert (judged, session.runner.calls) == ([], [])


def test_a_case_that_the_operator_refuses_is_counted_as_skipped():
    def picky(x):
        if x.shape[1] == 257:
            raise ValueError("not that size")
        return torch.relu(x)

    attempt, judged, _ = judge_scripted(right, declare("relu(x[M, N])", picky), cases=4)
    assert attempt.verdict == Passed()
    assert attempt.cases == len(judged) == 4
    assert attempt.skipped == {"the operator rejects the case: ValueError: not that size": 1}


def test_a_case_whose_bound_accepts_wrong_results_is_counted_and_the_candidate_not_run_on_it():
    vague = declare("relu(x[M, N])", torch.relu, admissible=(lambda x: x * 9 + 9,))
    attempt, _, session = judge_scripted(right, vague, cases=3)
    assert attempt.verdict.word == "unrefereeable"
    assert sum(attempt.unrefereeable.values()) > 0
    # No bound is needed where there is no element.
    assert all(0 in call.arguments[0].shape for call in session.runner.calls)


def test_the_worst_ratio_is_over_the_cases_that_passed():
    attempt, judged, _ = judge_scripted(lambda call: right(call) * (1 + 2**-22), cases=4)
    ratios = [j.stats.max_bound_ratio for j in judged if j.stats.max_bound_ratio is not None]
    assert attempt.worst_ratio == max(ratios)


def autotuned(configs):
    launches = (Launch(kernel="k", grid=(1,), constants={}, signature={}, configs=configs),)
    return lambda call: returned(right(call), launches=launches)


def test_configurations_take_turns_and_the_first_case_sees_several():
    _, judged, _ = judge_scripted(autotuned(3), cases=9)
    assert [j.config for j in judged[:3]] == [0, 1, 2]
    assert len({j.case.identity for j in judged[:3]}) == 1
    assert Counter(j.config for j in judged) == {0: 3, 1: 3, 2: 3}


def test_the_first_case_does_not_run_under_every_one_of_many_configurations():
    _, judged, _ = judge_scripted(autotuned(40), cases=CONFIGS_ON_FIRST_CASE + 2)
    first = judged[0].case.identity
    assert sum(j.case.identity == first for j in judged) == CONFIGS_ON_FIRST_CASE


def wrong_under(config, configs, wrong=lambda call: right(call) + 100):
    launches = (Launch(kernel="k", grid=(1,), constants={}, signature={}, configs=configs),)
    return lambda call: returned(
        (wrong if call.config == config else right)(call), launches=launches
    )


def test_a_configuration_that_is_wrong_breaks_what_it_is_wrong_in_and_is_named():
    attempt, judged, _ = judge_scripted(wrong_under(2, 3), cases=12)
    failure = attempt.failure
    assert (failure.config, failure.case.identity) == (2, judged[0].case.identity)
    # What a replay compares is there, as of any failure.
    assert failure.output_digest is not None
    assert failure.digests
    assert attempt.profile["published"].status == "broken"


def test_other_configurations_that_are_right_say_nothing_of_the_wrong_one():
    def strided(call):
        return right(call) + 100 * (call.arguments[0].strides[-1] != 1)

    attempt, _, _ = judge_scripted(wrong_under(1, 2, wrong=strided), cases=48)
    assert attempt.profile["layouts"].status == "broken"
    assert attempt.profile["layouts"].failure.config == 1
    assert attempt.profile["published"].status == attempt.profile["values"].status == "held"


def test_a_kernel_that_is_wrong_under_one_configuration_and_elsewhere_in_layouts_shows_both():
    launches = (Launch(kernel="k", grid=(1,), constants={}, signature={}, configs=2),)

    def answer(call):
        dense = call.arguments[0].strides[-1] == 1
        wrong = call.config == 1 or not dense
        return returned(right(call) + 100 * wrong, launches=launches)

    attempt, _, _ = judge_scripted(answer, cases=48)
    broken = {key for key, entry in attempt.profile.items() if entry.status == "broken"}
    assert {"published", "layouts"} <= broken
    assert attempt.profile["values"].cases > 0


def test_a_kernel_that_does_not_compile_for_a_target_fails_in_the_core_domain():
    refused = Observation(
        ended="returned",
        binaries=(Binary(kernel="k", target="sm_90", ok=False, error="no registers"),),
    )
    attempt, _, _ = judge_scripted(autotuned(1), targets=("sm_90",), compiled=lambda call: refused)
    assert attempt.verdict == CompileError(detail="k: no registers", target="sm_90")


def test_nothing_is_compiled_where_the_plan_says_so():
    _, _, session = judge_scripted(autotuned(1), targets=("sm_90",), plan=Plan(compile=False))
    assert {call.mode for call in session.runner.calls} == {"run"}


def test_the_cases_are_counted_by_dtype_and_no_dtype_loses_one():
    attempt, judged, _ = judge_scripted(right, cases=20)
    seen = Counter(j.case.dtype for j in judged)
    assert {d: c.cases for d, c in attempt.dtypes.items()} == seen
    assert all((c.returned, c.failed) == (c.cases, 0) for c in attempt.dtypes.values())


def test_a_wrong_answer_and_one_that_never_came_count_apart_in_their_dtype():
    wrong, judged, _ = judge_scripted(lambda call: call.tensors["x"] + 100)
    assert {*wrong.dtypes} == {j.case.dtype for j in judged}
    assert all(c.cases == c.returned == c.failed for c in wrong.dtypes.values())
    died = Observation(ended="died", message="signal 11", signal=11)
    for count in judge_scripted(lambda call: died)[0].dtypes.values():
        assert (count.returned, count.failed) == (0, count.cases)


def test_all_calls_of_a_candidate_end_when_its_time_is_spent():
    wrong = lambda call: returned(call.tensors["x"] + 100 + call.small_poison, seconds=0.5)
    attempt, judged, session = judge_scripted(wrong, cases=48, plan=Plan(budget_s=2.0))

    assert len(session.runner.calls) <= 6
    assert (attempt.verdict.word, attempt.failed) == ("fail", 1)
    assert attempt.failure.output_digest is not None
    assert [j.verdict.word for j in judged] == ["fail"]
    untried = [e for e in attempt.profile.values() if e.status == "not_tried"]
    assert any(entry.reason.endswith("2 s, is spent") for entry in untried)


def test_a_call_that_the_candidates_time_ends_is_not_tried():
    def hangs_at_last(call):
        if len(session.runner.calls) < 3:
            return right(call)
        return Observation(ended="timeout")

    session = session_of(RELU, hangs_at_last)
    *judged, ended = judge_cases(session, Plan(cases=48, budget_s=2.0))

    assert [j.judgement.verdict for j in judged] == [Passed()] * 2
    assert ended.attempt.verdict == TimedOut(seconds=2.0)
    assert ended.attempt.failed == 0
