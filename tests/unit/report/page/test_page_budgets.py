"""pass@k against the budget of samples, as a table and as a curve."""

import pytest
from page_material import material_of, result

from kerneltruth.report.page.document import page_document
from kerneltruth.report.page.rates import budgets


def samples(task, outcomes, method="best_of_n"):
    return [result(task, word, method=method, sample=i) for i, word in enumerate(outcomes)]


@pytest.mark.parametrize(
    ("count", "each", "found"),
    [
        (1, 0, (1,)),
        (3, 0, (1, 2, 3)),
        (7, 0, (1, 2, 5, 7)),
        (10, 0, (1, 2, 5, 10)),
        (4, 16, (1, 2, 3, 4)),
        (9, 4, (1, 2, 3, 4, 5, 6, 7, 8, 9)),
        (20, 16, (*range(1, 17), 20)),
        (30, 16, (*range(1, 17), 20, 25, 30)),
    ],
)
def test_budgets_end_at_the_most_samples_that_a_task_has(count, each, found):
    assert budgets(samples("core/relu", ["fail"] * count), each=each) == found


def test_samples_without_a_verdict_are_no_budget():
    assert budgets(samples("core/relu", ["fail", "infra", "infra"])) == (1,)


def test_the_table_and_the_curve_go_to_the_last_sample():
    page = page_document(
        material_of(
            *samples("core/relu", ["pass", "fail", "fail"]),
            *samples("core/gelu", ["fail", "fail", "fail"]),
            result("core/relu", "pass", method="greedy"),
        )
    )
    heads = [c.label for c in page.pass_at.columns]
    assert heads == ["method", "pass@1", "pass@2", "pass@3"]
    lines = {line.label: line.points for line in page.budget.shares}
    assert [p.y for p in lines["best_of_n \u00b7 m"]] == pytest.approx([83.33, 66.67, 50], abs=0.01)
    assert [p.x for p in lines["best_of_n \u00b7 m"]] == pytest.approx([0, 63.09, 100])
    (point,) = lines["greedy \u00b7 m"]
    assert (point.x, point.y, point.said) == (0, 0, "greedy \u00b7 m, pass@1: 100%")
    assert page.budget.said.startswith("best_of_n \u00b7 m: 16.7% with 1; best_of_n")


def test_one_sample_a_task_makes_no_curve():
    page = page_document(material_of(result("core/relu", "pass")))
    assert (page.pass_at, page.budget) == (None, None)
