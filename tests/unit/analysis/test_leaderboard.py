"""Places of methods, with ties as ties; and the best kernels of each task."""

import math

import numpy as np
import pytest
from results_for_tests import result, timed

from kerneltruth.analysis.intervals import wilson
from kerneltruth.analysis.leaderboard import best_kernels, ranked_methods


def answers(method, right, wrong=0, start=0):
    """One answer to each of this many tasks."""
    outcomes = ["pass"] * right + ["fail"] * wrong
    return [result(f"t{start + i}", o, method=method) for i, o in enumerate(outcomes)]


def ranges(found):
    return {p.method: (p.first, p.last, p.tied) for p in found}


def test_a_method_that_is_surely_better_comes_first():
    found = ranked_methods([*answers("a", 40), *answers("b", 10, 30)], "right")
    assert ranges(found) == {"a": (1, 1, 0), "b": (2, 2, 0)}
    assert [(p.count, p.total, p.value) for p in found] == [(40, 40, 1.0), (10, 40, 0.25)]


def test_methods_that_may_be_alike_share_their_ranked_methods():
    found = ranked_methods([*answers("a", 20, 20), *answers("b", 19, 21)], "right")
    assert ranges(found) == {"a": (1, 2, 1), "b": (1, 2, 1)}


def test_the_same_answers_are_tied():
    found = ranked_methods([*answers("a", 7), *answers("b", 7)], "right")
    assert ranges(found) == {"a": (1, 2, 1), "b": (1, 2, 1)}


def test_methods_are_compared_on_the_same_tasks():
    """A hard half of the tasks widens each score, but not the difference."""
    tasks = [f"t{i}" for i in range(40)]
    one = [result(t, "pass" if i < 24 else "fail", method="a") for i, t in enumerate(tasks)]
    other = [result(t, "pass" if i < 17 else "fail", method="b") for i, t in enumerate(tasks)]
    first, second = ranked_methods([*one, *other], "right")
    assert first.low < second.high
    assert ranges([first, second]) == {"a": (1, 1, 0), "b": (2, 2, 0)}


def test_a_place_in_the_middle_may_be_tied_on_both_sides():
    found = ranked_methods(
        [*answers("a", 36, 24), *answers("b", 33, 27), *answers("c", 0, 60)], "right"
    )
    assert ranges(found)["c"] == (3, 3, 0)
    assert ranges(found)["a"][:2] in {(1, 1), (1, 2)}


def test_fast_counts_what_is_right_and_faster_of_all():
    fast = [result(f"t{i}", timing=timed(2.0, width=0.01), method="a") for i in range(3)]
    slow = [
        result("t3", timing=timed(0.5, width=0.01), method="a"),
        result("t4", "fail", method="a"),
    ]
    (place,) = ranked_methods([*fast, *slow], "fast")
    assert (place.count, place.total, place.value) == (3, 5, 0.6)


def test_speed_is_the_geometric_mean_of_right_timed_answers():
    results = [
        result("t0", timing=timed(2.0), method="a"),
        result("t1", timing=timed(0.5), method="a"),
        result("t2", timing=timed(8.0), method="a"),
        result("t3", "fail", method="a"),
    ]
    (place,) = ranked_methods(results, "speedup")
    assert place.value == pytest.approx(2.0)
    assert place.low < 2.0 < place.high
    assert (place.count, place.total) == (3, 3)


def test_a_method_without_a_time_has_no_place_by_speed():
    found = ranked_methods(
        [result("t0", timing=timed(2.0), method="a"), result("t0", method="b")], "speedup"
    )
    assert [(p.method, p.first, p.last) for p in found] == [("a", 1, 1), ("b", None, None)]


def test_five_tasks_cannot_order_methods_and_six_can():
    for tasks, tied in ((1, 1), (5, 1), (6, 0)):
        found = ranked_methods([*answers("a", tasks), *answers("b", 0, tasks)], "right")
        assert [p.tied for p in found] == [tied, tied]


def test_methods_without_a_task_in_common_are_not_ordered():
    found = ranked_methods([*answers("a", 20), *answers("b", 0, 20, start=20)], "right")
    assert ranges(found) == {"a": (1, 2, 1), "b": (1, 2, 1)}


def test_speeds_are_compared_on_the_tasks_that_both_have():
    """One that solves easy tasks alone is not behind one that solves hard ones too."""
    easy, hard = range(10), range(10, 30)
    one = [result(f"t{i}", timing=timed(2.0), method="a") for i in easy]
    other = [result(f"t{i}", timing=timed(1.5), method="b") for i in easy]
    other += [result(f"t{i}", timing=timed(9.0), method="b") for i in hard]
    assert ranges(ranked_methods([*one, *other], "speedup")) == {"a": (1, 1, 0), "b": (2, 2, 0)}


def test_one_task_gives_no_interval():
    found = ranked_methods([result(method="a"), result("relu", "fail", method="b")], "right")
    assert [(p.low, p.high) for p in found] == [(None, None), (None, None)]


def test_nothing_has_no_ranked_methods():
    assert ranked_methods([], "right") == ()


@pytest.mark.parametrize(("tasks", "samples"), [(8, 4), (60, 1), (25, 4)])
def test_equal_methods_are_told_apart_as_seldom_as_the_interval_says(tasks, samples):
    """About 5% of 120 equally good pairs of methods may look different, 2.5% each way."""
    rng = np.random.default_rng(tasks)
    apart = 0
    for _ in range(120):
        # How well a method suits a task makes its samples alike.
        suits = rng.normal(0, 1, (2, tasks)) + rng.normal(0, 1, tasks)
        results = [
            result(f"t{i}", "pass" if right else "fail", method=m, number=n)
            for m, own in zip(("a", "b"), 1 / (1 + np.exp(-suits)), strict=True)
            for i, p in enumerate(own)
            for n, right in enumerate(rng.random(samples) < p)
        ]
        apart += ranked_methods(results, "right")[0].tied == 0
    assert apart <= 12


def kernel(speedup, width=0.01, number=0, **about):
    timing = timed(speedup, width=width, noise_floor=about.pop("noise_floor", 0.0))
    return result(timing=timing, sha256=f"{number:064d}", number=number, **about)


def test_the_fastest_kernels_come_first_and_only_right_ones():
    wrong = result(outcome="fail", timing=timed(9.0), sha256="f" * 64)
    found = best_kernels([kernel(1.0, number=1), kernel(3.0, number=2), wrong])
    assert [round(b.against.speedup, 6) for b in found["relu"]] == [3.0, 1.0]


def test_kernels_whose_intervals_leave_the_order_open_are_tied():
    found = best_kernels([kernel(2.0, 0.05, 1), kernel(1.9, 0.05, 2), kernel(1.0, 0.05, 3)])
    assert [b.tied for b in found["relu"]] == [True, True, False]


def test_kernels_within_the_noise_floor_are_tied():
    pair = [kernel(2.0, 0.001, 1, noise_floor=0.03), kernel(1.96, 0.001, 2, noise_floor=0.03)]
    assert [b.tied for b in best_kernels(pair)["relu"]] == [True, True]
    apart = [kernel(2.0, 0.001, 1), kernel(1.96, 0.001, 2)]
    assert [b.tied for b in best_kernels(apart)["relu"]] == [True, False]


def test_all_that_are_tied_with_the_fastest_are_listed():
    found = best_kernels([kernel(2.0, 0.1, i) for i in range(6)], most=3)
    assert len(found["relu"]) == 6


def test_the_same_source_counts_once_with_all_its_authors():
    found = best_kernels([kernel(2.0, number=1, method="a"), kernel(2.0, number=1, method="b")])
    ((best,),) = found.values()
    assert best.methods == (("a", None), ("b", None))


def test_a_task_without_a_right_timed_kernel_has_none():
    assert best_kernels([result("gelu", "fail")]) == {}


def test_the_score_of_a_method_is_that_of_its_own_answers():
    found = ranked_methods([*answers("a", 3, 1), *answers("b", 1, 1)], "right")
    assert {p.method: p.value for p in found} == {"a": 0.75, "b": 0.5}
    assert all(math.isfinite(p.value) for p in found)


@pytest.mark.parametrize("right", [0, 12])
def test_a_score_of_none_or_of_all_has_an_interval(right):
    (place,) = ranked_methods(answers("a", right, 12 - right), "right")
    assert (place.low, place.high) == pytest.approx(wilson(right, 12))
