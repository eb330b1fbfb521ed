"""Suspicion never convicts: a suspect candidate is judged again, and that decides."""

import math
from dataclasses import replace

import pytest
from scripted import MATMUL, RELU, returned, session_of

from kerneltruth.documents.verdict import Passed
from kerneltruth.oracle.plan import Plan
from kerneltruth.oracle.second_round import STRICTER, judge_candidate
from kerneltruth.runner.observation import KernelLaunches, KernelWork

CASES = 6
PATCHING = "import torch\ntorch.allclose = None\n"
OWN = KernelLaunches(name="mine", module="f.py", own=True, launches=1)


def right(call):
    return returned(call.tensors["x"].clamp(min=0))


def wrong(call):
    return returned(call.tensors["x"] + 100)


def leaving_a_thread(call):
    return replace(right(call), threads_left=1)


def with_idle_kernels(call):
    seen = right(call)
    elements = math.prod(seen.results[0].shape)
    work = KernelWork(runs=(OWN,), elements=elements, stored=elements)
    return replace(seen, work=work if call.kernels != "run" else None)


def attempt_of(answer, **session):
    made = session_of(RELU, answer, **session)
    *_, ended = judge_candidate(made, Plan(seed=7, cases=CASES, domain="core"))
    return ended.attempt


SUSPECTS = {
    "threads_left": (leaving_a_thread, {}, "1 thread ran on after a call"),
    "replaces_names": (right, {"source": PATCHING}, "torch.allclose (line 2)"),
    "kernels_not_needed": (
        with_idle_kernels,
        {"language": "triton"},
        "launches its own kernels, and is right when they do nothing",
    ),
}


@pytest.mark.parametrize(("fact", "suspect"), SUSPECTS.items(), ids=SUSPECTS)
def test_a_suspect_is_judged_again_on_more_cases_and_passes(fact, suspect):
    answer, session, said = suspect
    attempt = attempt_of(answer, **session)
    assert attempt.verdict == Passed()
    assert [(s.fact, s.detail) for s in attempt.suspicions] == [(fact, said)]
    round_ = attempt.second_round
    assert (round_.reason, round_.verdict, round_.cases) == ("suspect", "pass", STRICTER * CASES)


@pytest.mark.parametrize(("by", "facts"), [(1e-4, ["repetition_differs"]), (1e-7, [])])
def test_an_equal_call_with_another_right_result_is_suspect(by, facts):
    called = set()

    def answer(call):
        a, b = call.tensors["a"], call.tensors["b"]
        again = a.numpy().tobytes() in called
        called.add(a.numpy().tobytes())
        return returned(a @ b * (1 + by * again))

    made = session_of(MATMUL, answer)
    *_, ended = judge_candidate(made, Plan(seed=7, cases=CASES, domain="core", dtypes=("float32",)))
    assert ended.attempt.verdict == Passed()
    assert [s.fact for s in ended.attempt.suspicions] == facts


def test_the_second_round_of_a_suspect_decides():
    made = session_of(RELU, lambda call: answer(call), source=PATCHING)

    def answer(call):
        return (wrong if made.runner.waited else right)(call)

    *_, ended = judge_candidate(made, Plan(seed=7, cases=CASES))
    attempt = ended.attempt
    assert (attempt.verdict.word, attempt.second_round.reason) == ("fail", "suspect")
    assert [s.fact for s in attempt.suspicions] == ["replaces_names"]


def test_calls_that_lost_their_child_are_told_of_once():
    made = session_of(RELU, right)
    made.loaded()
    made.child.lost = 2
    attempt = None
    for event in judge_candidate(made, Plan(seed=7, cases=CASES)):
        attempt = getattr(event, "attempt", None)
    (suspicion,) = attempt.suspicions
    assert (suspicion.fact, suspicion.detail) == ("calls_lost", "2 calls ended with a lost child")


def test_neither_a_plain_candidate_nor_a_wrong_one_is_suspect():
    assert attempt_of(right).suspicions == ()
    assert attempt_of(wrong, source=PATCHING).suspicions == ()
