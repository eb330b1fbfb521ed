"""Illusions: what a check certifies and the judge rejects."""

from results_for_tests import result

from kerneltruth.analysis.illusions import illusion_rates, illusions


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
    (row,) = illusion_rates(RESULTS)
    assert (row.check, counts(row.illusions)) == ("kb", (1, 3))
    assert row.not_judged == 1


def test_what_a_check_could_not_decide_is_not_among_what_it_was_asked():
    (row,) = illusion_rates(RESULTS)
    assert counts(row.of_wrong) == (1, 2)


def test_a_right_kernel_that_the_check_refuses_is_a_false_alarm():
    (row,) = illusion_rates(RESULTS)
    assert counts(row.false_alarms) == (1, 2)


def test_each_illusion_names_its_finding_and_the_checks_that_it_fools():
    (found,) = illusions([*RESULTS, result("h", "unrefereeable", checks={"kb": "pass"})])
    assert (found.task, found.checks, found.kind, found.finding) == ("b", ("kb",), "nan", "b.json")


def test_checks_are_told_apart_and_broken_down():
    results = [
        result("a", "fail", method="x", checks={"kb": "pass", "tb": "fail"}),
        result("a", "fail", method="y", checks={"kb": "fail", "tb": "pass"}),
    ]
    rows = {(r.check, r.group): counts(r.illusions) for r in illusion_rates(results, ("method",))}
    assert rows == {
        ("kb", ("x",)): (1, 1),
        ("kb", ("y",)): (0, 0),
        ("tb", ("x",)): (0, 0),
        ("tb", ("y",)): (1, 1),
    }


def test_without_any_check_there_is_nothing_to_say():
    assert illusion_rates([result()]) == ()
    assert illusions([result("a", "fail")]) == ()
