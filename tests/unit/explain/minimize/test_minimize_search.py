import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kerneltruth.explain.minimize.search import MinimizeBudget, minimize


def budget(evaluations=1000, seconds=1.0, clock=lambda: 0.0):
    return MinimizeBudget(evaluations=evaluations, seconds=seconds, clock=clock)


def lower(n):
    yield from (n // 2, n - 1)


def identity(n):
    return n


def test_the_least_failing_value_is_found():
    shrunk = minimize(1000, lower, lambda n: n >= 37, key=identity, budget=budget())
    assert shrunk.value == 37
    assert not shrunk.exhausted


def test_the_trail_leads_from_the_given_value_to_the_least_in_falling_order():
    trail = minimize(100, lower, lambda n: n >= 30, key=identity, budget=budget()).trail
    assert trail == (100, 50, 49, 48, 47, 46, 45, 44, 43, 42, 41, 40, *range(39, 29, -1))


def test_a_value_that_is_not_simpler_is_never_accepted_nor_tested():
    values = []
    minimize(
        5,
        lambda n: (n, n + 1, n * 10),
        lambda n: bool(values.append(n)) or True,
        key=identity,
        budget=budget(),
    )
    assert values == []


def test_no_value_is_tested_twice():
    values = []

    def fails(n):
        values.append(n)
        return n >= 10

    minimize(64, [lower, lower], fails, key=identity, budget=budget())
    assert len(values) == len(set(values))


def test_the_given_value_is_not_tested():
    values = []
    minimize(3, lower, lambda n: bool(values.append(n)), key=identity, budget=budget())
    assert values == [1, 2]


def test_the_search_stops_at_the_evaluation_budget_and_says_so():
    shrunk = minimize(1000, lower, lambda n: n >= 37, key=identity, budget=budget(evaluations=3))
    assert (shrunk.value, shrunk.evaluations, shrunk.exhausted) == (125, 3, True)


def test_the_search_stops_at_the_time_budget_and_says_so():
    ticks = itertools.count()
    shrunk = minimize(
        2**20,
        lower,
        lambda n: True,
        key=identity,
        budget=budget(seconds=5, clock=lambda: next(ticks)),
    )
    assert (shrunk.evaluations, shrunk.exhausted) == (4, True)


def test_no_budget_means_the_value_itself():
    shrunk = minimize(9, lower, lambda n: True, key=identity, budget=budget(evaluations=0))
    assert (shrunk.value, shrunk.exhausted) == (9, True)


def test_passes_repeat_until_none_makes_progress():
    shrunk = minimize(
        (3, 3),
        [lambda v: [(v[0] - 1, v[1])], lambda v: [(v[0], v[1] - 1)]],
        lambda v: v[0] >= v[1] - 1 and min(v) >= 0,
        key=lambda v: (sum(v), v),
        budget=budget(),
    )
    assert shrunk.value == (0, 0)


def test_a_pass_is_not_repeated_for_every_step_of_another():
    values = []

    def fails(v):
        values.append(v)
        return v[0] == 50

    minimize(
        (50, 8),
        [lambda v: [(n, v[1]) for n in range(v[0])], lambda v: [(v[0], v[1] - 1)][: v[1]]],
        fails,
        key=identity,
        budget=budget(),
    )
    assert len(values) == 50 + 8 + 50


def test_a_negative_budget_is_refused():
    with pytest.raises(ValueError, match="not negative"):
        budget(evaluations=-1)


def test_a_predicate_that_raises_is_not_taken_for_an_answer():
    def fails(n):
        raise RuntimeError("lost")

    with pytest.raises(RuntimeError, match="lost"):
        minimize(9, lower, fails, key=identity, budget=budget())


@settings(deadline=None)
@given(st.integers(0, 300), st.sets(st.integers(0, 300)))
def test_what_is_found_fails_and_no_simpler_offer_does(start, failing):
    shrunk = minimize(start, lower, failing.__contains__, key=identity, budget=budget())
    assert shrunk.value in failing | {start}
    assert not [n for n in lower(shrunk.value) if n in failing and n < shrunk.value]


@settings(deadline=None)
@given(st.integers(0, 300), st.sets(st.integers(0, 300)), st.integers(0, 20))
def test_the_trail_falls_within_the_budget_and_only_failing_values_are_on_it(start, failing, most):
    shrunk = minimize(
        start, lower, failing.__contains__, key=identity, budget=budget(evaluations=most)
    )
    assert shrunk.trail == tuple(sorted(set(shrunk.trail), reverse=True))
    assert failing.issuperset(shrunk.trail[1:])
    assert (shrunk.trail[0], shrunk.trail[-1]) == (start, shrunk.value)
    assert shrunk.evaluations <= most
