"""Pools: every timed call gets contents of its own, of the same kind as in checked cases."""

import dataclasses

import pytest
import torch
from msgspec.structs import replace

from kerneltruth.cases.materialize import materialize
from kerneltruth.cases.philox import stream
from kerneltruth.cases.pools import DRAWS, Choice, inputs_at, pools_of
from kerneltruth.cases.values import POSITIVE_FLOOR
from kerneltruth.documents.case import Case

from .tasks_for_tests import CROSS_ENTROPY, EVERYTHING, RELU, RMS_NORM, declare

MATRICES = declare(
    "matrices(a[B, N, N]: spd, l[N, N]: lower, t[N, N]: tril, u[N, N]: triu, s[B, N]: stochastic, "
    "v[N, N]: invertible, y[N, N]: symmetric)",
    {"B": "batch", "N": "channel"},
)
WEIGHTS = declare(
    "layer(x[M, N], weight[K, N]: weight, c=1.0)",
    {"M": "batch", "N": "contracted", "K": "channel"},
)
OFFSETS = declare("count(i[N]: index_or(C, -1), x[C])", {"N": "batch", "C": "channel"})
RANGED = declare("ranged(x[M, N])", {"M": "batch", "N": "channel"}, values=(-0.5, 0.25))

ROWS = Case(task="relu", dims=(("M", 3), ("N", 5)), seed=7)
MIXED = Case(task="everything", dims=(("M", 4), ("N", 9)), seed=7)
SQUARES = Case(task="matrices", dims=(("B", 2), ("N", 6)), seed=7)
LAYER = Case(task="layer", dims=(("M", 4), ("N", 6), ("K", 3)), seed=7)


def rng(*purpose):
    return stream(7, *purpose)


def windows(pool, count=24):
    return [pool.window(choice) for choice in pool.choose(rng("choose"), count)]


def test_the_pools_of_a_case_can_be_had_again():
    one, other = pools_of(EVERYTHING, MIXED), pools_of(EVERYTHING, MIXED)
    assert all(torch.equal(one[name].elements, other[name].elements) for name in one)
    assert one["x"].choose(rng("a"), 9) == other["x"].choose(rng("a"), 9)


def test_another_seed_gives_other_pools():
    other = pools_of(RELU, replace(ROWS, seed=8))["x"]
    assert not torch.equal(pools_of(RELU, ROWS)["x"].elements, other.elements)


def test_calls_find_different_contents():
    drawn = windows(pools_of(RELU, ROWS)["x"])
    assert len({tuple(w.flatten().tolist()) for w in drawn}) > 20


def test_windows_have_the_tensors_shape_and_dtype():
    pools = pools_of(EVERYTHING, replace(MIXED, dtype="bfloat16"))
    made = materialize(EVERYTHING, replace(MIXED, dtype="bfloat16")).tensors
    for name, pool in pools.items():
        for window in windows(pool, 3):
            assert (window.shape, window.dtype) == (made[name].shape, made[name].dtype), name


def test_a_window_is_a_copy():
    pool = pools_of(RELU, ROWS)["x"]
    before = pool.elements.clone()
    pool.window(Choice(start=2)).fill_(9)
    assert torch.equal(pool.elements, before)


def test_the_last_window_ends_with_the_pool():
    pool = pools_of(RELU, ROWS)["x"]
    last = pool.window(Choice(start=(pool.windows - 1) * pool.step))
    assert torch.equal(last.flatten(), pool.elements[-15:])


def test_a_pool_mixes_recipes():
    elements = pools_of(RELU, replace(ROWS, dims=(("M", 30), ("N", 50))))["x"].elements
    half = len(elements) // 2
    # Uniform values have an end, normal ones have tails.
    ends = sorted(
        float(part.abs().max() / part.std()) for part in (elements[:half], elements[half:])
    )
    assert ends[0] < 2 < 3 < ends[1]


def test_what_a_tensor_may_hold_is_kept_in_every_window():
    pools = pools_of(EVERYTHING, MIXED)
    drawn = {name: torch.stack(windows(pool)) for name, pool in pools.items()}
    assert ((drawn["p"] >= 0) & (drawn["p"] <= 1)).all()
    assert (drawn["u"].abs() <= 1).all()
    assert (drawn["s"] >= POSITIVE_FLOOR).all()
    assert ((drawn["i"] >= 0) & (drawn["i"] < 9)).all()
    assert drawn["m"].any(dim=-1).all()


def test_class_ids_stay_in_range():
    loss = Case(task="cross_entropy", dims=(("N", 3), ("C", 5)), seed=7)
    drawn = torch.stack(windows(pools_of(CROSS_ENTROPY, loss)["target"], 60))
    assert set(drawn.unique().tolist()) == {0, 1, 2, 3, 4}


def test_a_range_of_the_task_holds_in_every_window():
    drawn = torch.stack(windows(pools_of(RANGED, replace(ROWS, task="ranged"))["x"]))
    assert -0.5 <= float(drawn.min()) < 0 < float(drawn.max()) <= 0.25


def test_structure_is_kept_in_every_window():
    drawn = {n: torch.stack(windows(p)).double() for n, p in pools_of(MATRICES, SQUARES).items()}
    assert torch.equal(drawn["a"], drawn["a"].mT)
    assert (torch.linalg.eigvalsh(drawn["a"]) > 0).all()
    assert torch.equal(drawn["y"], drawn["y"].mT)
    assert torch.equal(drawn["l"], drawn["l"].tril())
    assert torch.equal(drawn["t"], drawn["t"].tril())
    assert torch.equal(drawn["u"], drawn["u"].triu())
    assert torch.allclose(drawn["s"].sum(-1), torch.ones(()).double(), atol=1e-5)
    assert (torch.linalg.cond(drawn["v"]) < 1e5).all()


@pytest.mark.parametrize("name", ["a", "l", "t", "u", "v", "y"])
def test_structured_tensors_are_whole_draws_told_apart_by_a_factor(name):
    pool = pools_of(MATRICES, SQUARES)[name]
    count = pool.window(Choice()).numel()
    assert (pool.windows, pool.step, pool.scaled) == (DRAWS, count, True)
    chosen = pool.choose(rng("many"), 100)
    assert {c.start for c in chosen} == {i * count for i in range(DRAWS)}
    assert len(set(chosen)) > 60


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_factors_are_the_same_numbers_in_every_dtype(dtype):
    chosen = pools_of(MATRICES, SQUARES)["l"].choose(rng("many"), 200)
    factors = torch.tensor([c.factor for c in chosen], dtype=torch.float64)
    assert torch.equal(factors.to(dtype).double(), factors)
    assert ((factors > 0) & (factors <= 1)).all()


def test_rows_that_sum_to_one_and_masks_are_not_scaled():
    assert not pools_of(MATRICES, SQUARES)["s"].scaled
    assert not pools_of(EVERYTHING, MIXED)["m"].scaled


def test_indices_with_a_value_for_none_come_as_whole_draws():
    pool = pools_of(OFFSETS, Case(task="count", dims=(("N", 8), ("C", 5)), seed=7))["i"]
    assert (pool.windows, pool.step, pool.scaled) == (DRAWS, 8, False)


def test_weights_are_the_same_in_every_call():
    pool = pools_of(WEIGHTS, LAYER)["weight"]
    assert (pool.fixed, pool.windows) == (True, 1)
    assert set(pool.choose(rng("w"), 5)) == {Choice()}
    assert pool.window(Choice()).shape == (3, 6)


@pytest.mark.parametrize("name", ["a", "s"])
def test_all_but_the_last_choice_stay_when_another_one_takes_its_place(name):
    pool = pools_of(MATRICES, SQUARES)[name]
    chosen, other = pool.choose(rng("many"), 4), pool.choose(rng("other"), 1)[0]
    changed = chosen.ending_with(other)
    assert list(changed) == [*chosen[:-1], other]
    assert list(chosen) == list(pool.choose(rng("many"), 4))


def test_an_absent_tensor_has_no_pool_and_is_none():
    case = Case(task="rms_norm", dims=(("M", 2), ("N", 4)), absent=("weight",), seed=7)
    pools = pools_of(RMS_NORM, case)
    assert set(pools) == {"x"}
    inputs = inputs_at(RMS_NORM, case, pools, {"x": Choice(start=3)})
    assert inputs.tensors["weight"] is None
    assert torch.equal(inputs.tensors["x"].flatten(), pools["x"].elements[3:11])


def test_attributes_come_with_the_inputs():
    case = Case(task="rms_norm", dims=(("M", 2), ("N", 4)), attributes=(("eps", 0.5),), seed=7)
    inputs = inputs_at(
        RMS_NORM, case, pools_of(RMS_NORM, case), {"x": Choice(), "weight": Choice()}
    )
    assert inputs.scalars["eps"] == 0.5


def test_an_empty_tensor_has_a_pool():
    pool = pools_of(RELU, replace(ROWS, dims=(("M", 0), ("N", 5))))["x"]
    assert [w.shape for w in windows(pool, 2)] == [(0, 5)] * 2


def _lying(declared, example):
    first, *others = declared.arguments
    lies = dataclasses.replace(first, example=example)
    return dataclasses.replace(declared, arguments=(lies, *others))


@pytest.mark.parametrize("example", [((9, 1), (5, 9)), ((3, 12), (5, 1)), ((3, 10), (5, 2))])
def test_a_window_is_the_memory_of_a_tensor_that_lies_as_its_example(example):
    pool = pools_of(_lying(RELU, example), ROWS)["x"]
    choice = Choice(start=4)
    memory = pool.elements[4 : 4 + pool.span]
    window = pool.window(choice)
    assert pool.strides != ()
    assert window.is_contiguous()
    assert torch.equal(window, memory.as_strided((3, 5), pool.strides))


@pytest.mark.parametrize("example", [((2, 1), (6, 72), (6, 12)), ((2, 60), (6, 10), (6, 1))])
def test_whole_draws_stay_whole_however_they_lie(example):
    spd = _lying(MATRICES, example)
    usual, laid = (pools_of(task, SQUARES)["a"] for task in (MATRICES, spd))
    assert laid.strides != ()
    for draw in range(DRAWS):
        one, other = (pool.window(Choice(start=draw * pool.step)) for pool in (usual, laid))
        assert torch.equal(one, other)


def test_weights_and_held_values_lie_as_their_example():
    x, weight, *rest = WEIGHTS.arguments
    lies = dataclasses.replace(weight, example=((3, 1), (6, 3)))
    numbers = torch.arange(18.0).reshape(3, 6)
    held = dataclasses.replace(lies, held=lambda settings: numbers)
    usual = pools_of(WEIGHTS, LAYER)["weight"].window(Choice())
    for spec, expected in ((lies, usual), (held, numbers)):
        pool = pools_of(dataclasses.replace(WEIGHTS, arguments=(x, spec, *rest)), LAYER)["weight"]
        assert pool.strides == (1, 3)
        assert torch.equal(pool.window(Choice()), expected)
