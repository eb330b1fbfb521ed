"""Analysis of deviance: against statsmodels on single answers, and where nothing can be fitted."""

import sys

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
import statsmodels.formula.api as smf
from msgspec.structs import replace
from results_for_tests import result
from scipy.stats import chi2

from kerneltruth.analysis.deviance import deviance_of

QUICK = {"permutations": 49, "resamples": 50}


def answers(seed=0, tasks=60, categories=5, methods=("a", "b", "c"), effect=1.0):
    """One answer of each method to each task."""
    rng = np.random.default_rng(seed)
    ease = rng.normal(0, effect, categories)
    skill = rng.normal(0, effect, len(methods))
    found = []
    for task in range(tasks):
        for number, method in enumerate(methods):
            p = 1 / (1 + np.exp(-ease[task % categories] - skill[number]))
            outcome = "pass" if rng.random() < p else "fail"
            category = f"c{task % categories}"
            found.append(result(f"t{task}", outcome, method=method, category=category))
    return found


@pytest.fixture(scope="module")
def data():
    return answers()


@pytest.fixture(scope="module")
def frame(data):
    rows = [(int(r.correct), r.category, r.method) for r in data]
    return pd.DataFrame(rows, columns=["y", "category", "method"])


@pytest.fixture(scope="module")
def table(data):
    return deviance_of(data, **QUICK)


FORMULAS = {
    "category": "y ~ C(category)",
    "method": "y ~ C(method)",
    "category + method": "y ~ C(category) + C(method)",
    "category * method": "y ~ C(category) * C(method)",
}


@pytest.mark.parametrize("model", FORMULAS)
def test_each_model_is_statsmodels_fit_of_single_answers(table, frame, model):
    theirs = smf.glm(FORMULAS[model], frame, family=sm.families.Binomial()).fit()
    term = next(t for t in table.terms if t.model == model)
    assert term.df == theirs.df_model
    assert term.deviance == pytest.approx(theirs.deviance, rel=1e-8)
    assert table.null_deviance == pytest.approx(theirs.null_deviance, rel=1e-8)
    assert term.explained == pytest.approx(1 - theirs.deviance / theirs.null_deviance)
    assert term.mcfadden == pytest.approx(theirs.pseudo_rsquared(kind="mcf"))
    assert term.mcfadden_adjusted == pytest.approx(1 - (theirs.llf - term.df) / theirs.llnull)
    assert term.per_df == pytest.approx(term.explained / theirs.df_model)
    left, all_ = theirs.df_resid, len(frame) - 1
    adjusted = 1 - (theirs.deviance / left) / (theirs.null_deviance / all_)
    assert term.adjusted == pytest.approx(adjusted)
    drop = theirs.null_deviance - theirs.deviance
    assert term.p_likelihood == pytest.approx(chi2.sf(drop, theirs.df_model))


def test_the_explained_share_of_a_category_has_its_closed_form(table, frame):
    def deviance(y):
        p = y.mean()
        return -2 * len(y) * (p * np.log(p) + (1 - p) * np.log(1 - p)) if 0 < p < 1 else 0.0

    left = frame.groupby("category")["y"].apply(deviance).sum()
    category = next(t for t in table.terms if t.model == "category")
    assert category.explained == pytest.approx(1 - left / deviance(frame["y"]))


def test_steps_are_likelihood_ratio_tests_of_nested_models(table):
    left = {t.model: (t.deviance, t.df) for t in table.terms}
    for step in table.steps:
        larger = "category * method" if step.added == "interaction" else "category + method"
        drop = left[step.to][0] - left[larger][0]
        assert step.drop == pytest.approx(drop)
        assert step.df == left[larger][1] - left[step.to][1]
        assert step.p_likelihood == pytest.approx(chi2.sf(drop, step.df))
    assert [s.added for s in table.steps] == ["category", "method", "interaction"]


def test_chance_is_given_for_single_factors_and_intervals_for_every_model(table):
    assert [t.by_chance is not None for t in table.terms] == [True, True, False, False]
    category, method, *_ = table.terms
    assert 0 < category.by_chance < category.explained
    assert 0 < method.by_chance < 0.05
    assert all(0 <= t.low <= t.high < 1 for t in table.terms)
    assert category.p_permutation == pytest.approx(2 / 50)
    assert (table.permutations, table.resamples) == (49, 50)


def test_the_counts_are_those_of_the_answers(table, data):
    assert (table.answers, table.tasks, table.categories, table.methods) == (180, 60, 5, 3)
    assert table.right == sum(r.correct for r in data)
    assert (table.separated, table.notes, table.not_judged) == ((), (), 0)


def test_what_could_not_be_judged_is_left_out_and_counted(data):
    lost = [replace(data[0], call="infra", exe="not_run", verdict="infra")]
    found = deviance_of([*lost, *data[1:]], **QUICK)
    assert (found.answers, found.not_judged) == (179, 1)


def test_an_unsolved_category_is_reported_and_penalized(data):
    # As quantization in KernelBenchX: none of 30 right.
    hard = [
        result(f"q{i}", "fail", category="quantization", method=m) for i in range(10) for m in "abc"
    ]
    found = deviance_of([*data, *hard], **QUICK)
    (level,) = found.separated
    assert (level.factor, level.level, level.right, level.answers) == (
        "category",
        "quantization",
        0,
        30,
    )
    category = next(t for t in found.terms if t.model == "category")
    assert category.penalized is not None
    assert category.penalized < category.explained
    assert next(t for t in found.terms if t.model == "method").penalized is None


def test_the_deviance_of_a_separated_table_is_the_limit_of_the_likelihood(data):
    hard = [result(f"q{i}", "fail", category="q", method="a") for i in range(9)]
    found = deviance_of([*data, *hard], **QUICK)
    alone = deviance_of(data, **QUICK)
    # What is certain adds nothing to the deviance that is left.
    assert found.terms[0].deviance == pytest.approx(alone.terms[0].deviance, abs=1e-4)


@pytest.mark.parametrize(
    ("results", "reason"),
    [
        ([], "none of 0 answers"),
        ([result(category=None)], "none of 1 answers"),
        ([result("a", "call:infra")], "none of 1 answers"),
        ([result("a"), result("b", category="Loss")], "all 2 answers are right"),
        ([result("a", "fail"), result("b", "fail", category="Loss")], "all 2 answers are wrong"),
        ([result("a", "fail"), result("b")], "one category and one method"),
    ],
)
def test_where_there_is_nothing_to_explain_it_says_so(results, reason):
    found = deviance_of(results, **QUICK)
    assert reason in found.unavailable


def test_one_category_alone_leaves_the_method(data):
    found = deviance_of([replace(r, category="Math") for r in data], **QUICK)
    assert [t.model for t in found.terms] == ["method"]
    assert found.notes == ("one category only (Math): it explains nothing",)
    assert found.steps == ()


def test_one_method_alone_leaves_the_category(data):
    found = deviance_of([r for r in data if r.method == "a"], **QUICK)
    assert [t.model for t in found.terms] == ["category"]
    assert found.notes == ("one method only (a): it explains nothing",)


def test_a_method_is_told_apart_by_its_model(data):
    found = deviance_of([replace(r, model=r.method, method="m") for r in data], **QUICK)
    assert found.methods == 3


def test_answers_without_a_category_are_left_out_and_reported(data):
    found = deviance_of([*data, result("x", category=None)], **QUICK)
    assert found.notes == ("1 answers without a category are left out",)


def test_methods_that_share_no_category_leave_no_interaction(data):
    apart = [r for r in data if (r.method == "a") == (r.category in ("c0", "c1"))]
    found = deviance_of(apart, **QUICK)
    both, full = (t for t in found.terms if t.model.startswith("category "))
    assert both.df == 5
    assert full.df == 7


def test_without_statsmodels_it_says_how_to_install_it(data, monkeypatch):
    for name in [name for name in sys.modules if name.startswith("statsmodels")] + ["statsmodels"]:
        monkeypatch.setitem(sys.modules, name, None)
    found = deviance_of(data, **QUICK)
    assert found.unavailable == "needs statsmodels: pip install 'kerneltruth[study]'"


def test_the_same_seed_gives_the_same_analysis(data):
    one, again = (deviance_of(data, seed=3, **QUICK) for _ in range(2))
    assert one == again
