"""A right kernel that is only slow, in Triton's interpreter, is not blamed for hanging."""

import math
import time
from itertools import count

import pytest
from scripted import RELU, case_of, returned, session_of

from kerneltruth.documents.verdict import Passed, TimedOut, UnsupportedHere
from kerneltruth.oracle.attempt import judge_cases
from kerneltruth.oracle.pace import InterpreterPace
from kerneltruth.oracle.plan import Plan
from kerneltruth.runner.observation import Launch, Observation

pytestmark = pytest.mark.slow


def after(seconds, call, **more):
    """The right answer, some time later on the session's clock."""
    return returned(call.tensors["x"].clamp(min=0), seconds=seconds, **more)


def judge_scripted(answer, *, language="triton", budget_s=3.0, **runner):
    session = session_of(RELU, answer, language=language, **runner)
    # What is expected of the cases is made before, so that it takes none of the time.
    *_, ended = judge_cases(session_of(RELU, lambda call: after(0, call)), Plan())
    assert ended.attempt.verdict == Passed()
    *_, ended = judge_cases(session, Plan(budget_s=budget_s))
    return ended.attempt, session.runner.calls


def paced(*, language="triton", left_s=10.0):
    """A kernel that has taken 0.1 s for 64 elements, with 10 s left."""
    session = session_of(RELU, lambda call: after(0, call), language=language)
    session.allowance.left_s = left_s
    pace = InterpreterPace(session)
    pace.learn(session.cache.get(RELU, case_of(RELU, M=8, N=8)), Passed(), 0.1)
    return pace


LARGE = case_of(RELU, M=64, N=64, recipe="ties", layout="transposed")


def test_cases_of_a_slow_kernel_are_as_large_as_there_is_time_for():
    smaller = paced().fitted(LARGE, 10)
    elements = smaller.sizes["M"] * smaller.sizes["N"]
    assert 64 * 5 / 2 <= elements <= 64 * 10
    assert (smaller.recipe, smaller.layout) == (LARGE.recipe, LARGE.layout)


def test_a_case_stays_where_there_is_time_for_it_or_no_interpreter():
    assert paced().fitted(LARGE, 1) == LARGE
    assert paced(language="torch").fitted(LARGE, 10) == LARGE


def test_configurations_of_the_first_case_take_a_quarter_of_the_time():
    assert paced().affordable(8) == 8
    assert paced().affordable(60) == 25
    assert paced(language="torch").affordable(60) == 60


def test_without_an_end_there_is_time_for_everything():
    pace = paced(left_s=math.inf)
    assert (pace.affordable(60), pace.fitted(LARGE, 10)) == (60, LARGE)


def test_a_kernel_that_is_slow_at_every_size_is_not_supported_here():
    attempt, _ = judge_scripted(lambda call: after(0.2, call))
    assert isinstance(attempt.verdict, UnsupportedHere)
    assert "slow" in attempt.verdict.reason
    assert "--timeout" in attempt.verdict.reason
    assert attempt.failed == 0


def test_elsewhere_than_in_the_interpreter_its_time_is_spent():
    attempt, _ = judge_scripted(lambda call: after(0.2, call), language="torch")
    assert attempt.verdict == TimedOut(seconds=3.0)


def test_a_kernel_that_hangs_at_some_sizes_is_blamed_for_it():
    def answer(call):
        if call.tensors["x"].shape[0] > 8:
            return Observation(ended="timeout")
        return after(0.001, call)

    attempt, _ = judge_scripted(answer, budget_s=None)
    assert isinstance(attempt.verdict, TimedOut)


def test_compiling_takes_a_share_of_the_time_and_no_more():
    numbers = count()

    def answer(call):
        launch = Launch(
            kernel="k", grid=(1,), constants={"n": next(numbers)}, signature={}, configs=1
        )
        return after(0, call, launches=(launch,))

    def compiled(call):
        time.sleep(2.0)
        return Observation(ended="returned")

    attempt, calls = judge_scripted(answer, budget_s=20.0, targets=("sm_90",), compiled=compiled)
    assert attempt.verdict == Passed()
    assert 1 <= sum(call.mode == "compile" for call in calls) <= 3
