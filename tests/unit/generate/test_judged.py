"""From an attempt to the review that the model gets."""

import re

import pytest
from msgspec.structs import replace

from blank_documents import document
from kerneltruth.cases.recipes import RECIPES
from kerneltruth.documents.case import Case
from kerneltruth.documents.records import (
    Attempt,
    CandidateRef,
    Judgement,
    KernelFact,
    KernelLaunchesRecord,
    ProfileEntry,
)
from kerneltruth.documents.timing import BaselineTime, CandidateTimes, ShapeTimes
from kerneltruth.documents.verdict import CompileError, Failed, Passed, RuntimeFault
from kerneltruth.engine.evaluator import Evaluation
from kerneltruth.generate.judged import counterexample, review_of
from kerneltruth.generate.prompts import load_prompts
from kerneltruth.tasks.registry import find

REF = CandidateRef(sha256="0" * 64, path="softmax.py", language="triton", entry="softmax")
TASK = find("kernelbenchx/softmax")


def attempt(verdict, **fields):
    given = {"cases": 8, "failed": 1, **fields}
    return Attempt(task=TASK.key, candidate=REF, verdict=verdict, **given)


def entry(status, **fields):
    return ProfileEntry(status=status, promised=True, **fields)


def review(made, perf=None):
    return review_of(TASK, Evaluation(attempt=made, perf=perf))


@pytest.fixture
def case():
    return Case(
        task=TASK.key,
        dims=(("M", 1), ("N", 3)),
        attributes=(("dim", -1), ("_rank", 2)),
        recipe="ties",
        literals=(("input", (0.0, 1.0, 89.5)),),
    )


def test_a_small_counterexample_is_shown_as_a_call(case):
    assert counterexample(TASK, case) == (
        "    input = [[0, 1, 89.5]], a float32 tensor of shape (1, 3)\n"
        "    dim = -1\n    dtype = None"
    )


def test_of_a_large_one_shapes_and_kind_of_values_are_shown(case):
    large = replace(case.with_dims(M=7, N=300), layout="transposed", recipe="exp_edge")
    text = counterexample(TASK, large)
    assert "input = a float32 tensor of shape (7, 300)" in text
    assert re.search(r"\(values: from -?[0-9.]+ to [0-9.]+\)", text)
    assert "not contiguous in memory: transposed" in text
    assert "_rank" not in text


def test_a_wrong_result_is_described_with_its_place_and_without_hidden_names(case):
    made = attempt(
        Failed(kind="value", detail="3 of 3 are wrong"),
        minimal=case,
        explanation="Off by the constant factor 2 = _rank.",
    )
    text = review(made)
    assert (text.outcome, text.kind, text.stage, text.passed) == ("fail", "value", "exe", 7)
    assert text.explanation == "Off by the constant factor 2."
    assert "89.5" in text.counterexample


def test_a_source_that_does_not_load_is_described_with_its_reason():
    made = attempt(CompileError(detail="line 3: invalid syntax"), cases=0, failed=0)
    text = review(made)
    assert (text.outcome, text.stage, text.detail) == (
        "compile_error",
        "call",
        "line 3: invalid syntax",
    )


def test_an_exception_is_described_by_name():
    made = attempt(RuntimeFault(error="ValueError", detail="too many values"), cases=1)
    assert review(made).detail == "ValueError: too many values"


def test_the_review_of_a_right_kernel_has_its_times():
    eager = document(BaselineTime, us=4.0, ratio=2.0, low=1.9, high=2.1)
    shape = document(ShapeTimes, summary="M=8", candidate_us=2.0, baselines={"eager": eager})
    perf = CandidateTimes(outcome="timed", shapes=(shape,))
    text = review(attempt(Passed(), failed=0), perf)
    assert text.is_right
    assert text.says_something
    assert text.timings[0].ratio == 2.0


def test_a_kernel_that_is_wrong_where_it_is_timed_is_wrong():
    perf = CandidateTimes(outcome="wrong", detail="fail: 5 of 9 elements are wrong")
    text = review(attempt(Passed(), failed=0), perf)
    assert (text.outcome, text.stage, text.passed) == ("fail", "perf", 8)
    assert "wrong at a shape at which it is timed" in text.explanation


def test_the_review_has_no_doubtful_times():
    perf = CandidateTimes(outcome="timing_suspect", shapes=(document(ShapeTimes),))
    text = review(attempt(Passed(), failed=0), perf)
    assert not text.says_something


@pytest.mark.parametrize("recipe", RECIPES)
def test_no_feedback_names_how_the_judge_draws_values(case, recipe):
    drawn = replace(case.with_dims(M=7, N=300), literals=(), recipe=recipe, seed=987654321)
    failure = Judgement(case=drawn, verdict=Failed(kind="value", detail="3 of 3 are wrong"))
    profile = {
        "published": entry("held"),
        "values": entry("broken", decisive=True, failure=failure),
        "specials": entry("broken", failure=failure),
    }
    made = attempt(
        failure.verdict,
        failure=failure,
        minimal=drawn,
        profile=profile,
        explanation=f"Ordinary values do not show it, only these do: {recipe}, ties.",
    )
    text = load_prompts().feedback(review(made), worse=None)
    assert "Ordinary values do not show it." in text
    assert "(values: from " in text
    assert not re.search(rf"\b({recipe}|{recipe.replace('_', ' ')}|ties)\b", text), text
    assert str(drawn.seed) not in text.split()


def test_feedback_lists_what_is_broken_with_the_worst_first(case):
    wrong = Judgement(case=case, verdict=Failed(kind="nan", detail="1 of 3"))
    raised = Judgement(case=case, verdict=RuntimeFault(error="ValueError", detail="no"))
    profile = {
        "published": entry("held"),
        "shapes": entry("refused", decisive=True, failure=raised),
        "dtypes.float16": entry("broken", decisive=True, failure=wrong),
        "layouts": entry("broken", failure=wrong),
        "specials": entry("refused", failure=raised),
        "kernel": entry("broken"),
    }
    text = load_prompts().feedback(review(attempt(wrong.verdict, profile=profile)), worse=None)
    listed = [line for line in text.splitlines() if line.startswith("- ")]
    assert listed == [
        "- dtypes (float16): broken, nan",
        "- shapes (other sizes): refused, runtime error",
        "- layouts (inputs that are not contiguous): broken, nan",
    ]


def test_a_timed_kernels_review_has_the_facts_about_it():
    ran = KernelLaunchesRecord(name="k", module="m", own=True, launches=1)
    fact = document(KernelFact, own_launches=1, launches=1, runs=(ran,), case="M=8")
    made = attempt(Passed(), failed=0, kernel=fact)
    said = review(made, CandidateTimes(outcome="timed", shapes=())).facts
    assert said == ("one call launches 1 kernel of yours (M=8)",)


def test_a_review_says_what_judging_and_timing_took():
    made = attempt(Passed(), failed=0)
    timed = CandidateTimes(outcome="timed", shapes=(), seconds=2.0)
    for perf, seconds in ((None, 1.5), (timed, 3.5), (CandidateTimes(outcome="wrong"), 1.5)):
        evaluation = Evaluation(attempt=made, perf=perf, seconds=1.5)
        assert review_of(TASK, evaluation).seconds == seconds
