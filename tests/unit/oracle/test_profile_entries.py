"""What a profile says of each obligation at the end."""

from counted import (
    BOTH,
    LARGER,
    PUBLISHED,
    STRIDED,
    add,
    counted,
    counts_of,
    entry,
)
from msgspec.structs import replace
from scripted import RELU

from kerneltruth.documents.profiles import NO_TURN
from kerneltruth.documents.records import Judgement
from kerneltruth.documents.verdict import Passed, UnsupportedHere
from kerneltruth.oracle.profile import profile_of


def test_entries_stand_in_the_order_of_the_obligations():
    keys = list(profile_of(counts_of()))
    assert keys[:3] == ["published", "shapes", "values"]
    assert keys.index("attributes") < keys.index("layouts") < keys.index("specials")
    assert profile_of(counts_of())["attributes"].status == "not_applicable"


def test_the_published_inputs_say_where_they_are_smaller_than_the_benchmarks():
    small = replace(PUBLISHED, dims=(("M", 2), ("N", 4)))
    blame = counted((small, Passed()), published=small)
    found = entry(blame, "published")
    own = " ".join(f"{symbol}={n}" for symbol, n in RELU.benchmark.dims.items())
    assert found.status == "held"
    assert found.reason == f"tried at M=2 N=4; the benchmark has {own}"


def test_the_published_inputs_at_the_benchmarks_sizes_say_nothing():
    assert entry(counted((PUBLISHED, Passed())), "published").reason is None


def untried(blame, key):
    return entry(blame, key).untried


def test_an_obligation_names_the_kinds_that_had_no_turn_where_others_held():
    blame = counted((STRIDED, Passed()), (BOTH, Passed()))
    others = ("transposed", "row_gaps", "expanded", "misaligned", "offset")
    assert untried(blame, "layouts") == dict.fromkeys(others, NO_TURN)
    assert "ties" not in untried(blame, "values")
    assert "zero_rows" in untried(blame, "values")
    # None of its kinds has held, and its status says so.
    assert untried(blame, "specials") == {}


def test_a_kind_whose_case_could_not_be_judged_says_why():
    blame = counted((STRIDED, Passed()))
    blame.counts.leave_out(replace(STRIDED, layout="offset"), UnsupportedHere(reason="too large"))
    assert untried(blame, "layouts")["offset"] == "too large"


def test_the_largest_size_of_a_dim_is_a_kind_of_its_own():
    most = {"M": 129, "N": 21847}
    blame = counted((LARGER, Passed()))
    assert [*untried(blame, "shapes")] == [f"{symbol}={n}" for symbol, n in most.items()]
    add(blame, Judgement(case=LARGER.with_dims(N=most["N"]), verdict=Passed()))
    assert [*untried(blame, "shapes")] == ["M=129"]
