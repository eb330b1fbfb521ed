"""What each method asks next, from what came of a chain so far."""

import pytest

from blank_documents import document
from kerneltruth.documents.timing import BaselineTime, CandidateTimes, GradedCalls, ShapeTimes
from kerneltruth.errors import UserError
from kerneltruth.generate.chat import Reply
from kerneltruth.generate.prompts import load_prompts
from kerneltruth.generate.review import Review, ShapeTiming, timings_of
from kerneltruth.generate.trajectory import method_of
from kerneltruth.generate.turns import Turn, best_of

PROMPTS = load_prompts()


def wrong(passed=0, **words):
    return Review(outcome="fail", stage="exe", passed=passed, cases=passed + 1, **words)


def broken(outcome="compile_error", **words):
    return Review(outcome=outcome, stage="call", **words)


def right(*ratios):
    timings = tuple(
        ShapeTiming(shape="M=1", candidate_us=1, eager_us=r, ratio=r, low=r, high=r) for r in ratios
    )
    return Review(outcome="pass", stage="exe", passed=16, cases=16, timings=timings)


def turns_of(*reviews):
    return [Turn(reply=Reply(text=f"answer {i}"), review=r) for i, r in enumerate(reviews)]


def ask(method, turns):
    return method.next("suite/relu", 3, turns, "the brief", PROMPTS)


def test_the_first_request_is_the_brief():
    request = ask(method_of("one_shot", samples=None, rounds=None), [])
    assert (request.task, request.sample, request.round) == ("suite/relu", 3, 0)
    assert [m.role for m in request.messages] == ["system", "user"]
    assert request.messages[1].content == "the brief"


@pytest.mark.parametrize("name", ["one_shot", "best_of_n"])
def test_methods_without_rounds_end_after_one_answer(name):
    method = method_of(name, samples=None, rounds=None)
    assert ask(method, turns_of(None)) is None
    assert not method.asks_the_judge


def test_a_wrong_answer_is_shown_with_what_is_wrong():
    review = wrong(explanation="The last row is 0.", counterexample="    x = [[1]]", passed=7)
    request = ask(method_of("refine", samples=None, rounds=3), turns_of(review))
    assert request.round == 1
    assert [m.role for m in request.messages] == ["system", "user", "assistant", "user"]
    assert request.messages[2].content == "answer 0"
    feedback = request.messages[3].content
    assert "The last row is 0." in feedback
    assert "x = [[1]]" in feedback
    assert "7 other inputs" in feedback


def test_a_kernel_that_does_not_compile_is_shown_the_error():
    request = ask(
        method_of("refine", samples=None, rounds=3), turns_of(broken(detail="line 3: invalid"))
    )
    assert "does not compile" in request.messages[3].content
    assert "line 3: invalid" in request.messages[3].content


def test_a_right_kernel_without_timing_ends_the_chain():
    assert ask(method_of("refine", samples=None, rounds=4), turns_of(right())) is None


def test_the_feedback_on_a_right_kernel_has_its_speed_and_its_limit():
    timing = ShapeTiming(
        shape="M=4096",
        candidate_us=20.0,
        eager_us=10.0,
        ratio=0.5,
        low=0.48,
        high=0.52,
        bound_by="memory",
        efficiency=0.31,
    )
    review = Review(outcome="pass", stage="perf", passed=16, cases=16, timings=(timing,))
    request = ask(method_of("refine", samples=None, rounds=4), turns_of(review))
    feedback = request.messages[3].content
    assert "M=4096: 20.0 us, PyTorch takes 10.0 us (2.00 times slower than it; 31%" in feedback
    assert "memory traffic" in feedback


def test_the_best_answer_is_shown_and_a_worse_one_mentioned():
    turns = turns_of(wrong(passed=5), broken(detail="no such name"))
    request = ask(method_of("refine", samples=None, rounds=4), turns)
    assert request.round == 2
    assert request.messages[2].content == "answer 0"
    assert "does not compile or load (no such name)" in request.messages[3].content
    assert "Start again from the version above" in request.messages[3].content


def test_rounds_end_the_chain():
    turns = turns_of(wrong(), wrong(), wrong())
    assert ask(method_of("refine", samples=None, rounds=3), turns) is None


@pytest.mark.parametrize("outcome", ["infra", "unsupported_here", "unrefereeable"])
def test_without_a_verdict_there_is_nothing_to_say(outcome):
    turns = turns_of(Review(outcome=outcome, stage="call"))
    assert ask(method_of("refine", samples=None, rounds=4), turns) is None


@pytest.mark.parametrize(
    ("reviews", "best"),
    [
        ((broken(), wrong()), 1),
        ((wrong(), broken()), 0),
        ((wrong(passed=9), wrong(passed=2)), 0),
        ((wrong(passed=2), wrong(passed=2)), 1),
        ((right(1.5), right(1.2)), 0),
        ((right(1.2, 1.2), right(3.0, 0.1)), 0),
        ((right(), wrong(passed=15)), 0),
        ((broken("crash"), broken("runtime_error")), 1),
        ((broken("timeout"), broken("compile_error")), 0),
    ],
)
def test_the_best_is_right_before_wrong_then_further_then_faster_then_later(reviews, best):
    assert best_of(turns_of(*reviews)) == best


def test_defaults_are_ten_samples_and_four_rounds():
    assert method_of("best_of_n", samples=None, rounds=None).samples == 10
    refine = method_of("refine", samples=None, rounds=None)
    assert (refine.samples, refine.rounds, refine.asks_the_judge) == (1, 4, True)


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("ten_shot", {}, "must be one of one_shot, best_of_n, refine, geak, import"),
        ("one_shot", {"rounds": 3}, "only refine and geak work in rounds, not one_shot; leave out"),
        ("best_of_n", {"rounds": 3}, "only refine and geak work in rounds"),
        ("refine", {"rounds": 1}, "refine needs 2 or more"),
        ("one_shot", {"samples": 5}, "one_shot asks once"),
    ],
)
def test_options_that_a_method_has_not_are_refused(name, options, said):
    with pytest.raises(UserError, match=said):
        method_of(name, **{"samples": None, "rounds": None, **options})


def test_timings_are_read_off_a_perf_stage():
    eager = {"eager": document(BaselineTime, us=4.0, ratio=2.0, low=1.9, high=2.1)}
    doubted = document(GradedCalls, not_graded="RuntimeError: no")
    shapes = (
        document(ShapeTimes, summary="M=8", candidate_us=2.0, baselines=eager, bound_by="launch"),
        document(ShapeTimes, summary="M=7", candidate_us=2.0, baselines=eager, graded=doubted),
        document(ShapeTimes, summary="M=9", candidate_us=2.0),
    )
    (timing,) = timings_of(CandidateTimes(outcome="timed", shapes=shapes))
    assert (timing.shape, timing.ratio, timing.bound_by) == ("M=8", 2.0, "launch")
    assert timings_of(CandidateTimes(outcome="not_run")) == timings_of(None) == ()
