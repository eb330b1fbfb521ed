"""Illusions: what a check certifies and the judge rejects."""

import pytest
from results_for_tests import result, study

from kerneltruth.analysis.illusions import (
    contracts_of,
    illusion_rates,
    illusion_share,
    illusions,
    silently_broken,
)
from kerneltruth.analysis.results import Obliged


def counts(rate):
    return rate.numerator, rate.denominator


RESULTS = [
    result("a", "pass", checks={"kb": "pass"}),
    result("b", "fail", checks={"kb": "pass"}, kind="nan", finding="b.json"),
    result("c", "call:crash", checks={"kb": "fail"}),
    result("d", "pass", checks={"kb": "fail"}),
    result("e", "call:unsupported_here", checks={"kb": "pass"}),
    result("f", "fail", checks={"kb": "error"}),
    result("g", "fail"),
]


def test_an_illusion_is_a_wrong_kernel_of_those_certified():
    (row,) = illusion_rates(study(*RESULTS))
    assert (row.check, counts(row.illusions)) == ("kb", (1, 3))
    assert row.not_judged == 1


def test_undecided_kernels_are_not_in_a_checks_denominator():
    (row,) = illusion_rates(study(*RESULTS))
    assert counts(row.of_wrong) == (1, 2)


def test_a_right_kernel_that_the_check_refuses_is_a_false_alarm():
    (row,) = illusion_rates(study(*RESULTS))
    assert counts(row.false_alarms) == (1, 2)


def test_each_illusion_names_its_finding_and_the_checks_that_it_fools():
    (found,) = illusions(study(*RESULTS, result("h", "unrefereeable", checks={"kb": "pass"})))
    assert (found.task, found.checks, found.kind, found.finding) == (
        "b",
        ("kb",),
        "nan",
        "run/findings/b.json",
    )


def test_an_illusion_names_its_obligations_and_its_contract_says_why_and_by_whom():
    profile = {"published": Obliged("held"), "dtypes.float16": Obliged("broken")}
    made = study(result("b", "fail", checks={"kb": "pass"}, profile=profile, contract="core"))
    (found,) = illusions(made)
    assert (found.contract, found.obligations, found.place) == ("core", ("dtypes",), "core")
    (core,) = contracts_of(made).values()
    assert "a sentence of the prompt" in core.reason
    assert core.source == "the sentences of the task's published prompt, and this project"


def test_an_earlier_version_has_no_contract_to_quote():
    assert contracts_of(study(*RESULTS)) == {}


def test_checks_are_told_apart_and_broken_down():
    results = [
        result("a", "fail", method="x", checks={"kb": "pass", "tb": "fail"}),
        result("a", "fail", method="y", checks={"kb": "fail", "tb": "pass"}),
    ]
    rows = {
        (r.check, r.method): counts(r.illusions)
        for r in illusion_rates(study(*results), ("method",))
    }
    assert rows == {
        ("kb", "x"): (1, 1),
        ("kb", "y"): (0, 0),
        ("tb", "x"): (0, 0),
        ("tb", "y"): (1, 1),
    }


def test_without_any_check_there_is_nothing_to_say():
    assert illusion_rates(study(result())) == ()
    assert illusions(study(result("a", "fail"))) == ()


def test_a_kernel_that_two_checks_pass_is_one_illusion_of_any():
    results = [
        result("a", "fail", checks={"kb": "pass", "tb": "pass"}),
        result("b", "fail", checks={"kb": "fail", "tb": "error"}),
        result("c", "fail", checks={"kb": "error"}),
        result("d", "pass", checks={"kb": "pass"}),
    ]
    assert counts(illusion_share(study(*results))) == (1, 2)


def test_every_round_is_a_kernel_and_not_the_one_that_the_judge_likes_best():
    rounds = [
        result("a", outcome, method="refine", round=n, number=n, checks={"kb": "pass"})
        for n, outcome in enumerate(("fail", "fail", "pass"))
    ]
    (row,) = illusion_rates(study(*rounds))
    assert counts(row.illusions) == (2, 3)


def test_answers_to_one_task_do_not_make_a_rate_of_illusions_surer():
    one = [result(f"t{i}", "fail", checks={"kb": "pass"}) for i in range(5)]
    many = [
        result(f"t{i}", "fail", checks={"kb": "pass"}, number=n)
        for i in range(5)
        for n in range(20)
    ]
    few, more = (illusion_rates(study(*r))[0].illusions for r in (one, many))
    assert more.low == pytest.approx(few.low)


def test_work_done_by_libraries_makes_nothing_silently_wrong():
    ends = {
        "layouts": Obliged(status="broken", decisive=False),
        "kernel": Obliged(status="broken", decisive=False),
        "values": Obliged(status="held", decisive=True),
    }
    assert silently_broken(result(profile=ends)) == ("layouts",)
