"""Which obligation a failing case breaks; a function says which simpler cases fail alike."""

import pytest
from counted import (
    BOTH,
    HALF,
    LARGER,
    PUBLISHED,
    REFUSED,
    STRIDED,
    TIES,
    WRONG,
    add,
    counted,
    entry,
    keys_with,
    status,
)
from msgspec.structs import replace

from kerneltruth.documents.records import Judgement
from kerneltruth.documents.verdict import Crashed, Failed, Hack, Passed, RuntimeFault, TimedOut
from kerneltruth.oracle.blame import blamed
from kerneltruth.oracle.case_status import UNREACHED
from kerneltruth.oracle.decide import deciding_failure
from kerneltruth.oracle.obligations import Departure
from kerneltruth.oracle.open_parts import is_over

LAYOUTS = Departure(obligation="layouts", promised=False)
SHAPES = Departure(obligation="shapes")
HALVES = Departure(obligation="dtypes", part="float16")


@pytest.mark.parametrize(
    ("verdict", "causes", "key"),
    [
        (Failed(kind="value", detail=""), (), "published"),
        (Failed(kind="value", detail=""), (SHAPES,), "shapes"),
        (Failed(kind="value", detail=""), (HALVES, SHAPES), "dtypes.float16"),
        (Failed(kind="value", detail=""), (HALVES, LAYOUTS), "layouts"),
        (Failed(kind="out_of_bounds", detail=""), (SHAPES,), "memory"),
        (Failed(kind="out_of_bounds", detail=""), (LAYOUTS,), "layouts"),
        (Failed(kind="count", detail=""), (), "interface"),
        (Failed(kind="same_draw", detail=""), (), "repeatable"),
        (Crashed(signal=11, detail=""), (SHAPES,), "shapes"),
        (RuntimeFault(error="E", detail=""), (HALVES,), "dtypes.float16"),
    ],
)
def test_blame_falls_on_what_is_beyond_the_prompt_first_and_then_on_the_kind(verdict, causes, key):
    assert blamed(verdict, causes).key == key


@pytest.mark.parametrize(
    ("obligation", "kinds"),
    [
        ("interface", ("count", "type", "shape", "dtype", "device")),
        ("memory", ("input_mutated", "out_of_bounds", "uninitialized", "aliased_output")),
        ("memory", ("changed_later",)),
        ("interface", ("false_claim",)),
        ("repeatable", ("nondeterministic", "kept_state", "same_draw", "other_bits")),
        ("repeatable", ("kept_result",)),
    ],
)
def test_some_kinds_of_failure_break_one_obligation_whatever_the_inputs(obligation, kinds):
    assert {blamed(Failed(kind=k, detail=""), (SHAPES,)).key for k in kinds} == {obligation}


def test_a_result_that_does_not_repeat_says_nothing_of_the_other_obligations():
    kept = Failed(kind="kept_state", detail="")
    blame = counted((TIES, kept), (STRIDED, kept))
    assert status(blame, "repeatable") == "broken"
    assert status(blame, "published") == "not_tried"
    assert not is_over(blame.counts)
    assert entry(blame, "shapes").reason == UNREACHED


@pytest.mark.parametrize(
    ("right", "key"),
    [((), "dtypes.float16"), ((HALF,), "values"), ((TIES,), "dtypes.float16")],
)
def test_of_two_causes_the_one_without_which_it_is_right_is_to_blame(right, key):
    both = replace(HALF, recipe="ties")
    blame = counted((both, WRONG), held=lambda case: case in right)
    assert keys_with(blame, "broken") == {key}


def test_what_several_calls_show_is_not_tried_on_simpler_cases():
    blame = counted()
    judgement = Judgement(case=BOTH, verdict=Failed(kind="kept_state", detail=""))
    assert add(blame, judgement) == PUBLISHED
    assert blame.fails.cases == []


@pytest.mark.parametrize(("rows", "at_published_sizes"), [(64, True), (2**11, False)])
def test_unusual_values_are_tried_at_published_sizes_where_those_are_small(
    rows, at_published_sizes
):
    """At the sizes that a GPU takes, what is expected takes many seconds of the host."""
    published = PUBLISHED.with_dims(M=rows, N=1024)
    blame = counted(fails=lambda case: case.recipe == "ties", published=published)
    simplest = add(blame, Judgement(case=replace(TIES, dims=LARGER.dims), verdict=WRONG))
    assert (simplest.dims == published.dims) is at_published_sizes
    assert any(case.dims == published.dims for case in blame.fails.cases) is at_published_sizes
    assert keys_with(blame, "broken") == {"values"}


def test_a_size_alone_is_told_from_a_rare_value_at_large_published_sizes_too():
    published = PUBLISHED.with_dims(M=2**11, N=1024)
    blame = counted((LARGER, WRONG), published=published)
    assert [case.dims for case in blame.fails.cases] == [published.dims]
    assert keys_with(blame, "broken") == {"shapes"}


def test_published_inputs_that_failed_alike_are_not_tried_again():
    blame = counted((PUBLISHED, WRONG), fails=lambda case: True)
    assert add(blame, Judgement(case=TIES, verdict=WRONG)) == replace(PUBLISHED, seed=TIES.seed)
    assert blame.fails.cases == []
    # A refusal is not alike.
    add(blame, Judgement(case=TIES, verdict=REFUSED))
    assert len(blame.fails.cases) == 1


@pytest.mark.parametrize(
    ("held", "other", "blamed"), [(STRIDED, "layouts", "values"), (TIES, "values", "layouts")]
)
def test_a_call_that_does_not_return_is_the_fault_of_what_never_held(held, other, blamed):
    blame = counted((held, Passed()), (BOTH, TimedOut(seconds=1.0)))
    assert status(blame, blamed) == "broken"
    assert status(blame, other) == "held"
    # To ask again would take as long.
    assert blame.fails.cases == []


def test_a_call_that_does_not_return_is_the_fault_of_the_sizes_if_it_returns_without_them():
    blame = counted((LARGER, Passed()))
    odd = replace(BOTH, dims=(("M", 3), ("N", 9)))
    add(blame, Judgement(case=odd, verdict=TimedOut(seconds=1.0)))
    assert status(blame, "shapes") == "broken"
    assert status(blame, "values") == status(blame, "layouts") == "not_tried"
    assert blame.fails.cases == [replace(odd, dims=PUBLISHED.dims)]


def test_a_call_that_does_not_return_without_its_sizes_either_is_not_their_fault():
    odd = replace(TIES, dims=(("M", 3), ("N", 9)))
    blame = counted((odd, TimedOut(seconds=1.0)), fails=lambda case: True)
    assert status(blame, "values") == "broken"
    assert status(blame, "shapes") == "not_tried"


def test_a_proof_of_deceit_decides_though_its_obligation_is_broken_already():
    proof = Hack(kind="changed_later", detail="")
    strays = Failed(kind="out_of_bounds", detail="")
    blame = counted((PUBLISHED, strays), (LARGER, proof))
    assert status(blame, "memory") == "broken"
    assert deciding_failure(blame.counts.failed()).verdict == proof


def test_what_held_alone_is_not_blamed_where_the_published_inputs_fail_alike():
    blame = counted((PUBLISHED, WRONG), (STRIDED, Passed()), (BOTH, WRONG))
    assert status(blame, "layouts") == "held"
