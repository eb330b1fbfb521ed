"""Sizes far beyond the others, as far as a problem takes them."""

from kerneltruth.suites.kernelbench.extremes import long
from kerneltruth.suites.kernelbench.search import Search

from .problems import outline


def long_sets(constants, attempt):
    made = Search(constants, attempt, seed=7)
    made.run()
    return [f.constants for f in long(made)]


def test_each_size_is_also_tried_far_beyond_the_others():
    found = long_sets({"rows": 64, "columns": 32}, lambda c: outline(c.values()))
    assert found == [
        {"rows": 1025, "columns": 2},
        # An interpreter may run a program for each of these rows.
        {"rows": 129, "columns": 1},
        {"rows": 2, "columns": 1025},
    ]


def test_a_long_size_keeps_to_the_multiples_that_a_problem_takes():
    def attempt(constants):
        return outline(constants.values()) if constants["width"] % 8 == 0 else None

    assert long_sets({"width": 64}, attempt) == [{"width": 1032}]


def test_sizes_that_must_be_equal_are_long_together():
    def attempt(constants):
        equal = constants["rows"] == constants["columns"]
        return outline((1, *constants.values())) if equal else None

    assert long_sets({"rows": 64, "columns": 64}, attempt) == [{"rows": 129, "columns": 129}]


def test_a_size_that_no_set_moves_is_not_made_long():
    def attempt(constants):
        return outline(constants.values()) if constants["heads"] == 16 else None

    found = long_sets({"rows": 64, "heads": 16}, attempt)
    assert found
    assert {f["heads"] for f in found} == {16}


def test_a_problem_that_cannot_be_small_has_no_long_sets():
    assert long_sets({"size": 64}, lambda c: outline(c.values(), flops=2**30)) == []
