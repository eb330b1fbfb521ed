"""Rounds: rates, fates, repairs, and improvements that clear the noise."""

import math

import pytest
from results_for_tests import result, timed

from kerneltruth.analysis.trajectories import gain_of, trajectories


def counts(rate):
    return rate.numerator, rate.denominator


def chain(task, *outcomes, **about):
    """The rounds of one answer; a number is a right answer with that speedup."""
    found = []
    for number, outcome in enumerate(outcomes):
        more = dict(about)
        if not isinstance(outcome, str):
            more["timing"] = timed(outcome, width=about.get("width", 0.01), noise_floor=0.02)
            outcome = "pass"
        more.pop("width", None)
        found.append(result(task, outcome, method="refine", round=number, **more))
    return found


def test_methods_without_rounds_have_no_trajectory():
    found = trajectories([result(), result(round=0), result("b", round=0)])
    assert (found.rounds, found.fates, found.changes) == ((), (), ())


def test_a_chain_that_ended_stays_as_it_was():
    results = [*chain("a", "fail", "pass"), *chain("b", "pass")]
    first, second = trajectories(results).rounds
    assert (first.made, counts(first.exe)) == (2, (1, 2))
    assert (second.made, counts(second.exe)) == (1, (2, 2))


def test_the_latest_answer_may_be_worse_than_the_best_so_far():
    results = chain("a", "pass", "call:crash")
    second = trajectories(results).rounds[1]
    assert (counts(second.call), counts(second.exe), counts(second.kept)) == (
        (0, 1),
        (0, 1),
        (1, 1),
    )


def test_each_chain_has_one_fate():
    results = [
        *chain("a", "pass", "fail", "pass"),
        *chain("b", "fail", "pass"),
        *chain("c", "fail", "pass", "fail"),
        *chain("d", "pass", "fail"),
        *chain("e", "fail", "call:compile_error"),
        *chain("f", "pass", "call:infra", "pass"),
        *chain("g", "call:infra", "fail"),
        *chain("h", "call:infra", "call:infra"),
    ]
    (fates,) = trajectories(results).fates
    names = ("persistent", "rescued", "regained", "lost", "never", "not_judged")
    assert {name: counts(getattr(fates, name)) for name in names} == {
        "persistent": (1, 8),
        "rescued": (1, 8),
        "regained": (1, 8),
        "lost": (2, 8),
        "never": (2, 8),
        "not_judged": (1, 8),
    }


@pytest.mark.parametrize(
    ("outcomes", "fate"),
    [
        (("pass", "fail", "pass"), "regained"),
        (("call:infra", "pass"), "persistent"),
        (("call:infra", "fail", "pass"), "rescued"),
        (("pass", "call:unsupported_here", "pass"), "persistent"),
        (("pass", "call:infra"), "persistent"),
        (("fail", "call:infra"), "never"),
    ],
)
def test_rounds_that_could_not_be_judged_say_nothing_of_a_chains_fate(outcomes, fate):
    (fates,) = trajectories(chain("a", *outcomes)).fates
    assert counts(getattr(fates, fate)) == (1, 1)


def test_what_follows_a_round_that_could_not_be_judged_is_no_repair():
    results = [*chain("a", "call:infra", "pass"), *chain("b", "pass", "call:infra", "fail")]
    found = trajectories(results)
    (changes,) = found.changes
    assert (counts(changes.repaired), counts(changes.regressed)) == ((0, 0), (0, 0))
    assert (changes.steps, changes.not_judged, changes.repairs) == (3, 3, {})
    assert [row.not_judged for row in found.rounds] == [1, 1, 0]


def test_rescued_and_persistent_kernels_have_speedups_of_their_own():
    results = [*chain("a", 1.0, 4.0), *chain("b", "fail", 0.5), *chain("c", "fail", "pass")]
    (fates,) = trajectories(results).fates
    assert fates.persistent_speedup.value == pytest.approx(4.0)
    assert (fates.rescued_speedup.value, fates.rescued_speedup.count) == (pytest.approx(0.5), 1)


def test_each_round_tells_kernels_that_it_rescues_from_those_right_before():
    # KernelBenchX's Figure 3 by hand: a and b stay right, c and d are rescued, e is lost.
    results = [
        *chain("a", 2.0, 2.0),
        *chain("b", 0.5),
        *chain("c", "fail", 1.0),
        *chain("d", "call:compile_error", 4.0),
        *chain("e", 3.0, "fail"),
        *chain("f", "call:infra", 9.0),
    ]
    first, second = trajectories(results).rounds
    assert (first.rescued, first.persistent, first.rescued_speedup) == (None, None, None)
    assert (counts(second.rescued), counts(second.persistent)) == ((2, 6), (2, 6))
    assert second.rescued_speedup.value == pytest.approx(2.0)
    assert second.persistent_speedup.value == pytest.approx(1.0)
    # All that are right after the round: a, b, c, d and f.
    assert second.speedup.value == pytest.approx((2 * 0.5 * 1 * 4 * 9) ** (1 / 5))


def test_the_mean_of_a_round_may_fall_though_no_kernel_gets_slower():
    # A rescued slow kernel joins: the same kernels' mean tells it apart from a loss.
    results = [*chain("a", 2.0, 2.0), *chain("b", "fail", 0.5)]
    first, second = trajectories(results).rounds
    assert first.speedup.value == pytest.approx(2.0)
    assert second.speedup.value == pytest.approx(1.0)
    assert second.steady.value == pytest.approx(2.0)


def test_repairs_and_regressions_are_counted_of_what_they_begin_with():
    results = [
        *chain("a", "call:compile_error", "pass", "fail", "pass"),
        *chain("b", "pass", "pass"),
    ]
    (changes,) = trajectories(results).changes
    assert (changes.steps, counts(changes.repaired), counts(changes.regressed)) == (
        4,
        (2, 2),
        (1, 2),
    )
    assert changes.repairs == {"compile_error": 1, "fail": 1}
    assert dict(((a, b), n) for a, b, n in changes.moves) == {
        ("compile_error", "pass"): 1,
        ("pass", "fail"): 1,
        ("fail", "pass"): 1,
        ("pass", "pass"): 1,
    }


def test_the_kind_of_a_failure_is_part_of_its_state():
    results = [
        result(method="refine", round=0, outcome="fail", kind="nan"),
        result(method="refine", round=1),
    ]
    assert trajectories(results).changes[0].repairs == {"fail nan": 1}


@pytest.mark.parametrize(
    ("before", "after", "width", "call"),
    [
        (1.0, 2.0, 0.01, "improved"),
        (2.0, 1.0, 0.01, "worsened"),
        (1.0, 1.015, 0.0001, "unsure"),
        (1.0, 1.03, 0.0001, "improved"),
        (1.0, 1.3, 0.5, "unsure"),
        (1.0, 1.0, 0.01, "unsure"),
    ],
)
def test_an_improvement_counts_only_beyond_its_interval_and_the_noise_floor(
    before, after, width, call
):
    (changes,) = trajectories(chain("a", before, after, width=width)).changes
    found = {name: getattr(changes, name) for name in ("improved", "worsened", "unsure")}
    assert found == {**dict.fromkeys(found, 0), call: 1}
    assert (changes.timed, changes.higher) == (1, int(after > before))


def test_a_step_without_intervals_is_undecided():
    results = [
        result(method="refine", round=0, timing=timed(1.0)),
        result(method="refine", round=1, timing=timed(9.0)),
    ]
    (changes,) = trajectories(results).changes
    assert (changes.timed, changes.higher, changes.improved, changes.unsure) == (1, 1, 0, 1)


def test_the_interval_of_a_gain_has_the_widths_of_both_in_squares():
    before, after = timed(1.0, width=0.03).against["eager"], timed(2.0, width=0.04).against["eager"]
    gain = gain_of(before, after)
    assert gain.speedup == pytest.approx(2.0)
    width = math.hypot(math.log(1.03), math.log(1.04))
    assert (math.log(gain.high / 2), math.log(2 / gain.low)) == pytest.approx((width, width))
    assert gain_of(None, after) is None


def test_methods_have_trajectories_of_their_own():
    results = [*chain("a", "fail", "pass"), *chain("a", "pass", "fail", model="other")]
    found = trajectories(results)
    assert [(f.method, f.model) for f in found.fates] == [("refine", "other"), ("refine", None)]
    assert [counts(f.rescued) for f in found.fates] == [(0, 1), (1, 1)]
