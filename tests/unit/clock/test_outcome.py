"""The word from facts alone: which doubt makes a tie of a difference."""

from dataclasses import replace

import pytest

from kerneltruth.clock.comparison import Comparison
from kerneltruth.clock.outcome import (
    Conclusion,
    OutcomeFacts,
    conclude,
    contradicts,
    doubt_on_any_shape,
    nearly_tied,
)
from kerneltruth.clock.statistics.summary import Interval


def ratio(estimate, *, name="eager", suspect=False, width=1.005):
    return Comparison(
        baseline=name,
        baseline_s=1.0,
        ratio=Interval(estimate=estimate, low=estimate / width, high=estimate * width),
        suspect=suspect,
    )


FASTER, TIE, SLOWER = (OutcomeFacts(first=ratio(r)) for r in (1.5, 1.0, 0.5))

# All doubts at once; each step removes the one before, and the next in order is the reason.
STEPS = [
    ({}, "timing_suspect"),
    ({"first": ratio(1.5)}, "processes_differ"),
    ({"confirmation": None}, "timing_suspect"),
    ({"flags": ("not_graded", "below_floor")}, "below_floor"),
    ({"flags": ("not_graded", "host_bound")}, "not_graded"),
    ({"flags": ("host_bound",)}, "baseline_hindered"),
    ({"hindered": False}, "wrong"),
]


def test_of_several_doubts_the_first_in_order_makes_a_tie_of_a_gain():
    facts = OutcomeFacts(
        first=ratio(1.5, suspect=True),
        confirmation=ratio(1.0),
        flags=("not_graded", "below_floor", "timing_suspect"),
        hindered=True,
        candidate="wrong",
    )
    for change, doubt in STEPS:
        facts = replace(facts, **change)
        assert conclude(facts) == Conclusion("tie", doubt)
    assert conclude(replace(facts, candidate=None)) == Conclusion("faster")


@pytest.mark.parametrize(
    ("facts", "outcome"), [(FASTER, "faster"), (TIE, "tie"), (SLOWER, "slower")]
)
def test_without_a_doubt_the_interval_has_the_word(facts, outcome):
    assert conclude(facts) == Conclusion(outcome)
    assert conclude(replace(facts, confirmation=facts.first)) == Conclusion(outcome)


DOUBTED = {"flags": ("timing_suspect",), "hindered": True, "candidate": "timing_suspect"}


@pytest.mark.parametrize(("facts", "outcome"), [(TIE, "tie"), (SLOWER, "slower")])
def test_what_is_no_gain_stays_as_it_is_whatever_is_doubted(facts, outcome):
    assert conclude(replace(facts, **DOUBTED)) == Conclusion(outcome)
    suspect = replace(facts.first, suspect=True)
    assert conclude(replace(facts, first=suspect)) == Conclusion(outcome)


@pytest.mark.parametrize("first", [FASTER, SLOWER])
@pytest.mark.parametrize("again", [1.0, "opposite", "suspect"])
def test_a_difference_that_other_processes_do_not_show_is_a_tie(first, again):
    if again == "opposite":
        other = (SLOWER if first is FASTER else FASTER).first
    else:
        other = ratio(1.5, suspect=True) if again == "suspect" else ratio(1.0)
    assert conclude(replace(first, confirmation=other)) == Conclusion("tie", "processes_differ")


def test_a_tie_is_a_tie_whatever_other_processes_show():
    assert conclude(replace(TIE, confirmation=ratio(1.5))) == Conclusion("tie")


def test_ratios_near_1_that_are_no_ties_are_looked_at_again():
    found = [
        ratio(1.05, name="a"),
        ratio(0.95, name="b"),
        ratio(1.05, name="c", width=1.1),
        ratio(1.2, name="d"),
        ratio(1.05, name="e", suspect=True),
    ]
    assert nearly_tied(found, 0.1) == ("a", "b")
    assert nearly_tied(found, 0.0) == ()


@pytest.mark.parametrize(
    ("flags", "found"),
    [
        ((), False),
        (("host_bound",), False),
        (("baseline_hindered",), True),
        (("baseline_hindered", "host_bound"), False),
        (("timing_suspect", "host_bound"), True),
        (("baseline_hindered", "below_floor", "host_bound"), True),
    ],
)
def test_a_baseline_that_shares_its_host_with_others_makes_nobody_suspect(flags, found):
    assert contradicts(flags) is found


def test_a_wrong_result_says_more_than_times_that_contradict_each_other():
    flags = [(), ("timing_suspect",)]
    assert doubt_on_any_shape(wrong=True, flags=flags) == "wrong"
    assert doubt_on_any_shape(wrong=False, flags=flags) == "timing_suspect"
    assert doubt_on_any_shape(wrong=False, flags=[(), ("throttled",)]) is None
