"""Cases are dealt so that what decides is tried first, within the planned number."""

import pytest
from scripted import RELU, declare

from kerneltruth.cases.promised import promises_of
from kerneltruth.cases.published import published_case
from kerneltruth.cases.strategies import generate
from kerneltruth.oracle.contract import CONTRACTS
from kerneltruth.oracle.dealing import Deals, deal
from kerneltruth.oracle.kinds import Kinds
from kerneltruth.oracle.obligations import departures, obligations_of
from kerneltruth.oracle.plan import Plan
from kerneltruth.tasks.registry import suites, tasks_of

EVERY_TASK = {task.key: task for suite in suites() for task in tasks_of(suite).values()}
OF_ANY_CASE = {"published", "interface", "memory", "repeatable"}
SCALED = declare(
    "scaled(x[M, N], scale=2.0)",
    lambda x, scale: x * scale,
    attributes={"scale": (2.0, 0.5)},
)


def dealt(task, **plan):
    published = published_case(task, seed=0, device="cpu")
    return deal(task, Plan(**plan), published, device="cpu"), published


def keys(task, case, published):
    return {d.key for d in departures(task, case, published)}


@pytest.mark.slow
@pytest.mark.parametrize("key", EVERY_TASK)
def test_what_decides_and_what_is_promised_is_tried_within_16_cases(key):
    task = EVERY_TASK[key]
    found, published = dealt(task, cases=16, promises=True)
    tried = set().union(*(keys(task, case, published) for case in found.firsts))
    decisive = {d.key for d in obligations_of(task) if d.promised} - OF_ANY_CASE
    assert decisive <= tried
    first = (published, *found.firsts, *found.others)[: found.total]
    in_core = [p for p in promises_of(task) if any(map(p.tried_by, found.others))]
    assert all(any(map(promise.tried_by, first)) for promise in in_core)
    assert found.total == 16


def test_a_small_number_grows_to_what_decides_where_the_plan_is_to_be_whole():
    assert dealt(SCALED, cases=1)[0].total == 1
    whole, _ = dealt(SCALED, cases=1, whole=True)
    assert (
        whole.total
        == 1 + len(whole.firsts)
        == Deals().planned_cases(SCALED, Plan(cases=1, whole=True), "cpu")
    )


def test_what_lies_beyond_the_contract_comes_next():
    found, published = dealt(RELU, cases=16)
    decides = CONTRACTS["core"].decides
    seconds = found.others[:4]
    assert all(any(not decides(d) for d in departures(RELU, case, published)) for case in seconds)
    assert {"transposed", "strided"} <= {c.layout for c in found.others[:10]}


@pytest.mark.parametrize(
    ("key", "attributes", "tries"),
    [
        ("gelu", {"approximate": "tanh"}, lambda case: case.recipe == "exp_edge"),
        ("gelu", {"approximate": "none"}, lambda case: case.recipe == "exp_edge"),
        ("kernelbenchx/lu", {"pivot": False}, lambda case: case.sizes["M"] > case.sizes["N"]),
        ("kernelbenchx/lu", {"pivot": False}, lambda case: case.sizes["M"] < case.sizes["N"]),
    ],
    ids=("tanh at the edges of exp", "none at the edges of exp", "tall", "wide"),
)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_an_attributes_value_meets_promised_values_and_both_orders_of_dims(
    key, attributes, tries, seed
):
    task = EVERY_TASK[key]
    published = published_case(task, seed=seed, device="cpu")
    plan = Plan(cases=16, promises=True, seed=seed)
    found = deal(task, plan, published, device="cpu")
    assert found == deal(task, plan, published, device="cpu")
    judged = (*found.firsts, *found.others)[: found.total - 1]
    assert any(tries(c) for c in judged if attributes.items() <= c.settings.items())


@pytest.mark.parametrize(("contract", "combines"), [("core", True), ("published", False)])
def test_promises_are_combined_where_attributes_decide(contract, combines):
    task = EVERY_TASK["kernelbenchx/lu"]
    offered = {c.identity for c in generate(task, seed=0, count=256)}
    found, _ = dealt(task, cases=16, contract=contract)
    new = [c for c in (*found.firsts, *found.others) if c.identity not in offered]
    assert bool(new) == combines


@pytest.mark.parametrize("key", ["relu", "softmax", "matmul", "kernelbenchx/conv2d"])
def test_each_layout_each_special_recipe_and_each_largest_size_has_a_turn_in_48_cases(key):
    task = EVERY_TASK[key]
    found, published = dealt(task, cases=48)
    kinds = Kinds(task, published, "cpu")
    tried = set()
    for case in (*found.firsts, *found.others)[: found.total - 1]:
        tried |= {k for k in kinds.tried(case, departures(task, case, published))}
    for key in ("layouts", "specials", "shapes"):
        assert {(key, name) for name in kinds.within(key)} <= tried
    recipes = [name for name in kinds.within("values") if ("values", name) in tried]
    # Sums in narrower dtypes keep ordinary values, which takes turns of convolutions.
    assert len(recipes) >= 2 / 3 * len(kinds.within("values"))


def test_cases_about_sizes_take_values_that_had_no_turn():
    found, published = dealt(RELU, cases=48)
    judged = (*found.firsts, *found.others)[: found.total - 1]
    of_sizes = [case for case in judged if case.strategy == "tiles"]
    assert len({case.recipe for case in of_sizes} - {"uniform", "normal"}) >= 2
    # What hides a wrong order, or overflows in a long sum, stays as it was.
    kept = [c for c in judged if c.layout != published.layout or max(c.sizes.values()) > 10_000]
    assert {case.recipe for case in kept} == {"uniform"}


def test_values_that_decide_nothing_take_no_turn_of_others():
    offered = {c.identity for c in generate(RELU, seed=0, count=256)}
    found, _ = dealt(RELU, cases=48, contract="published")
    assert {case.identity for case in (*found.firsts, *found.others)} <= offered


def test_a_third_of_the_other_turns_goes_to_cases_that_try_no_new_kind():
    found, published = dealt(RELU, cases=48)
    kinds = Kinds(RELU, published, "cpu")
    met, new = set(), []
    for case in found.others[:36]:
        tried = {*kinds.tried(case, departures(RELU, case, published))}
        new.append(bool(tried - met))
        met |= tried
    assert sum(not any_new for any_new in new) >= 12


def test_every_case_is_dealt_once():
    found, _ = dealt(RELU, cases=16)
    cases = [case.identity for case in (*found.firsts, *found.others)]
    assert len(cases) == len(set(cases)) >= 48


def test_candidates_of_one_plan_share_a_deal_and_others_have_their_own():
    deals, plan = Deals(), Plan(cases=8)
    published = published_case(SCALED, seed=plan.seed, device="cpu")
    first = deals.deal(SCALED, plan, published, device="cpu")

    assert deals.deal(SCALED, plan, published, device="cpu") is first
    assert first == deal(SCALED, plan, published, device="cpu")
    wider = deals.deal(SCALED, plan, published, device="cpu", blocks=(64,))
    assert wider == deal(SCALED, plan, published, device="cpu", blocks=(64,))
    assert wider != first
