"""Tokens, seconds and money of each success; what is unknown is never 0."""

import pytest
from results_for_tests import result

from kerneltruth.analysis.lines import result_of
from kerneltruth.analysis.results import UNKNOWN_SPENT, Spent
from kerneltruth.analysis.spending import spending


def spent(task, outcome, tokens, seconds=None, cost=None, **about):
    return result(task, outcome, spent=Spent(tokens, seconds, cost), **about)


def test_a_success_takes_what_all_attempts_took():
    answers = [
        spent("a", "pass", 100, 2.0, 0.5),
        spent("b", "fail", 300, 4.0, 1.5),
        spent("c", "pass", 200, 3.0, 1.0),
    ]
    (row,) = spending(answers, answers)
    assert (row.attempts, row.right) == (3, 2)
    assert (row.tokens.total, row.tokens.per_success) == (600, 300)
    assert row.seconds.per_success == pytest.approx(4.5)
    assert row.cost.per_success == pytest.approx(1.5)


def test_rounds_that_do_not_count_as_answers_cost_as_well():
    rounds = [
        spent("a", "fail", 100, method="refine", round=0),
        spent("a", "pass", 150, method="refine", round=1),
    ]
    (row,) = spending(rounds, rounds[1:])
    assert (row.attempts, row.right, row.tokens.per_success) == (2, 1, 250)


def test_a_success_takes_the_judges_seconds_between_its_rounds():
    rounds = [
        result("a", "fail", spent=Spent(1, 1.0, None, 4.0), method="geak", round=0),
        result("a", "pass", spent=Spent(1, 1.0, None, 6.0), method="geak", round=1),
    ]
    (row,) = spending(rounds, rounds[1:])
    assert (row.judge_seconds.total, row.judge_seconds.per_success) == (10, 10)


def test_what_one_attempt_took_is_unknown_so_there_is_no_figure_for_a_success():
    answers = [spent("a", "pass", 100), spent("b", "fail", None)]
    (row,) = spending(answers, answers)
    assert (row.tokens.total, row.tokens.unknown, row.tokens.per_success) == (100, 1, None)
    assert (row.cost.total, row.cost.unknown, row.cost.per_success) == (None, 2, None)


def test_without_a_success_there_is_no_figure_for_one():
    answers = [spent("a", "fail", 100)]
    (row,) = spending(answers, answers)
    assert (row.tokens.total, row.tokens.unknown, row.tokens.per_success) == (100, 0, None)


def test_methods_pay_for_their_own_answers():
    answers = [
        spent("a", "pass", 10, method="one_shot"),
        spent("a", "pass", 70, method="refine"),
    ]
    assert [(r.method, r.tokens.per_success) for r in spending(answers, answers)] == [
        ("one_shot", 10),
        ("refine", 70),
    ]


def line(**more):
    attempt = {"task": "relu", "verdict": {"verdict": "pass"}, "cases": 3, "failed": 0}
    return {"key": "a", "attempt": attempt, **more}


def test_a_line_says_what_its_answer_took():
    said = {"prompt_tokens": 30, "completion_tokens": 12, "seconds": 1.5, "cost": None}
    assert result_of(line(spent=said), 0).spent == Spent(42, 1.5, None, None)
    said["judge_seconds"] = 2.5
    assert result_of(line(spent=said), 0).spent.judge_seconds == 2.5


@pytest.mark.parametrize("said", [{}, {"spent": {"prompt_tokens": None, "completion_tokens": 5}}])
def test_a_line_without_tokens_says_nothing_of_them(said):
    assert result_of(line(**said), 0).spent == UNKNOWN_SPENT
