"""Pairs: an attribute's value together with promised values or an order of sizes."""

import pytest
from msgspec.structs import replace

from kerneltruth.cases.pairs import Pair, Pairs, paired
from kerneltruth.cases.published import published_case
from kerneltruth.oracle.dealing import deal
from kerneltruth.oracle.plan import Plan
from kerneltruth.tasks.registry import find

GELU, LU, FLOOR = find("gelu"), find("kernelbenchx/lu"), find("kernelbenchx/floor")
EXP_MEAN = find("kernelbenchx/fused_exp_mean")
TANH_AT_EDGES = Pair("approximate", "'tanh'", "exp_edge")


def case_of(task, strategy="attributes", **sizes):
    case = replace(published_case(task, seed=0, device="cpu"), strategy=strategy)
    return case.with_dims(**sizes)


def test_a_case_tries_its_attributes_value_with_its_recipe_and_the_order_of_its_dims():
    case = replace(case_of(GELU, M=3, N=9), recipe="exp_edge").with_attributes(approximate="tanh")
    assert Pairs(GELU, "cpu").tried(case) == {
        TANH_AT_EDGES,
        Pair("approximate", "'tanh'", "M < N"),
    }


def test_a_case_tries_the_way_of_its_call_with_a_further_dtype_that_is_promised():
    case = replace(case_of(FLOOR, M=4, N=4), dtype="int32").with_attributes(_call="out")
    assert Pairs(FLOOR, "cpu").tried(case) == {Pair("_call", "'out'", "int32")}
    unpromised = replace(case, dtype="float16", domain="extended")
    assert Pairs(FLOOR, "cpu").tried(unpromised) == frozenset()


def test_an_unusual_value_meets_the_usual_ones_of_other_attributes():
    pairs = Pairs(EXP_MEAN, "cpu")
    kept = case_of(EXP_MEAN, M=4, N=4).with_attributes(keepdim=True)
    met = {"dim as usual", "dtype as usual", "_call as usual"}
    assert pairs.tried(kept) == {Pair("keepdim", "True", m) for m in met}
    assert kept in [*pairs.changed_in_one(case_of(EXP_MEAN, M=4, N=4))]


@pytest.mark.parametrize("seed", range(3))
def test_more_cases_try_an_unusual_value_where_the_others_are_as_usual(seed):
    published = published_case(EXP_MEAN, seed=seed, device="cpu")
    plan = Plan(seed=seed, cases=96, promises=True)
    dealt = deal(EXP_MEAN, plan, published, device="cpu")
    tried = [c.settings for c in (*dealt.firsts, *dealt.others)[: dealt.total - 1]]
    assert any(settings["dim"] is None and settings["keepdim"] for settings in tried)


def test_a_run_of_16_cases_tries_each_way_of_the_call_with_each_further_dtype_that_is_promised():
    plan = Plan(seed=1, cases=16, promises=True)
    dealt = deal(FLOOR, plan, published_case(FLOOR, seed=1, device="cpu"), device="cpu")
    tried = {
        (c.dtype, c.settings["_call"]) for c in (*dealt.firsts, *dealt.others)[: dealt.total - 1]
    }
    assert {("int32", "plain"), ("int32", "out"), ("float32", "out")} <= tried


@pytest.mark.parametrize(
    "case",
    [
        replace(case_of(GELU, M=4, N=4), recipe="ties"),
        replace(case_of(GELU, M=3, N=9), domain="extended"),
    ],
    ids=("square, with values that no sentence promises", "beyond the prompt"),
)
def test_a_case_that_meets_nothing_tries_no_pair(case):
    assert Pairs(GELU, "cpu").tried(case) == frozenset()


def test_only_a_case_that_is_not_about_sizes_is_turned():
    pairs = Pairs(LU, "cpu")
    (_, turned) = pairs.turned(case_of(LU, M=9, N=5))
    assert (turned.sizes["M"], turned.sizes["N"]) == (5, 9)
    assert len([*pairs.turned(case_of(LU, "boundary", M=9, N=5))]) == 1


def test_attributes_take_the_values_that_add_most():
    pairs = Pairs(GELU, "cpu")
    case = replace(case_of(GELU, M=4, N=4), recipe="exp_edge")
    assert pairs.with_most(case, pairs.tried(case)).settings == {"approximate": "tanh"}
    both = pairs.tried(case) | {TANH_AT_EDGES}
    assert pairs.with_most(case, both) == case


def test_no_more_cases_are_added_than_add_a_pair():
    pairs, published = Pairs(GELU, "cpu"), case_of(GELU, "published", M=4, N=4)
    wide = case_of(GELU, "boundary", M=3, N=9)
    firsts, more = paired(pairs, published, [wide], [wide], most=9)
    assert firsts == [wide]
    assert [c.settings["approximate"] for c in more] == ["tanh"]
    assert paired(pairs, published, [wide], [wide], most=0) == ([wide], [])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_complex_dtype_meets_no_value_that_makes_the_result_real(seed):
    task = find("kernelbenchx/fused_add_mean")
    plan = Plan(seed=seed, cases=96, promises=True)
    dealt = deal(task, plan, published_case(task, seed=seed, device="cuda:0"), device="cuda:0")
    complex_ = [c for c in (*dealt.firsts, *dealt.others) if c.dtype == "complex64"]
    assert complex_
    assert all(c.settings["dtype"] is None for c in complex_)
