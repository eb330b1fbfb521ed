"""Generated cases: allowed, reproducible, varied, and cheap where a kernel is interpreted."""

from collections import Counter
from math import prod

import pytest

from kerneltruth.cases.layouts import LAYOUTS
from kerneltruth.cases.materialize import materialize
from kerneltruth.cases.recipes import OWN, RECIPES
from kerneltruth.cases.strategies import STRATEGIES, generate
from kerneltruth.errors import UserError
from kerneltruth.tasks import spec as declarations
from kerneltruth.tasks.registry import find

from .tasks_for_tests import (
    ALL,
    CONV,
    CROSS_ENTROPY,
    FLAT,
    IN_PLACE,
    MATMUL,
    RELU,
    RMS_NORM,
    declare,
)

by_task = pytest.mark.parametrize("task", ALL, ids=lambda t: t.name)


def _cases(task, count=60, **more):
    return list(generate(task, seed=more.pop("seed", 1), count=count, **more))


@by_task
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_every_case_is_allowed_by_its_task(task, device):
    cases = _cases(task, 100, device=device)
    assert len(cases) >= 40
    for case in cases:
        assert task.allows(case.sizes, case.settings)


@by_task
def test_every_case_can_be_made(task):
    for case in _cases(task, 40):
        inputs = materialize(task, case)
        for tensor_spec in task.tensors:
            if tensor_spec.name not in case.absent:
                shape = task.shape(tensor_spec, case.sizes, case.settings)
                assert tuple(inputs.tensors[tensor_spec.name].shape) == shape


def test_the_same_seed_gives_the_same_cases_and_another_seed_others():
    assert _cases(RMS_NORM) == _cases(RMS_NORM)
    assert _cases(RMS_NORM) != _cases(RMS_NORM, seed=2)


def test_no_case_comes_twice():
    assert max(Counter(c.identity for c in _cases(FLAT, 150)).values()) == 1


def test_block_sizes_change_the_tiles_only():
    without, with_blocks = _cases(RELU), _cases(RELU, blocks=(48,))
    for a, b in zip(without, with_blocks, strict=True):
        assert a == b or a.strategy == "tiles" == b.strategy


@by_task
def test_the_first_case_is_contiguous_core_and_odd(task):
    first = _cases(task, 1)[0]
    assert (first.domain, first.layout, first.recipe, first.dtype) == (
        "core",
        "contiguous",
        "uniform",
        "float32",
    )
    assert all(n % 2 or n == 6 for n in first.sizes.values())


@by_task
def test_the_domain_is_what_the_contract_says(task):
    for case in _cases(task, 100):
        shapes = [task.shape(s, case.sizes, case.settings) for s in task.tensors]
        core = (
            case.dtype in task.dtypes
            and case.layout == "contiguous"
            and RECIPES[case.recipe].domain == "core"
            and all(prod(shape) for shape in shapes)
        )
        assert case.domain == ("core" if core else "extended")


@by_task
def test_the_core_domain_can_be_requested_alone(task):
    assert {c.domain for c in _cases(task, 50, domain="core")} == {"core"}


def test_every_published_boundary_is_reached_soon():
    cases = _cases(RMS_NORM, 40, strategies=("boundary",))
    assert {1, 3, 7, 256, 1025} <= {c.sizes["N"] for c in cases}
    assert {1, 3, 7} <= {c.sizes["M"] for c in cases}
    cuda = _cases(RMS_NORM, 40, strategies=("boundary",), device="cuda")
    assert {1, 3, 7, 256, 1025} <= {c.sizes["M"] for c in cuda}


def test_tiles_stand_on_both_sides_of_each_block():
    for task, symbol in ((RELU, "N"), (MATMUL, "M"), (MATMUL, "K"), (CROSS_ENTROPY, "C")):
        cases = _cases(task, 40, strategies=("tiles",), blocks=(32, 64))
        sizes = {c.sizes[symbol] for c in cases}
        assert {31, 32, 33, 63, 64, 65, 129} <= sizes


def test_tiles_have_blocks_of_their_own_where_none_are_known():
    sizes = {c.sizes["N"] for c in _cases(RELU, 30, strategies=("tiles",))}
    assert {129, 127, 257, 1025} <= sizes


def test_regular_sizes_are_powers_of_two():
    for case in _cases(MATMUL, 20, strategies=("regular",)):
        assert case.dtype in MATMUL.dtypes
        assert all(n & (n - 1) == 0 for n in case.sizes.values())


def test_a_single_dtype_is_the_first_and_may_be_spelled_with_a_space():
    assert {c.dtype for c in _cases(FLAT, 9, strategies=("single dtype",))} == {"float32"}


def test_layouts_reach_every_layout_with_rows_and_columns_to_tell():
    cases = _cases(RMS_NORM, 12, strategies=("layouts",))
    assert {c.layout for c in cases} == set(LAYOUTS) - {"contiguous", "channels_last"}
    assert min(min(c.sizes.values()) for c in cases) >= 3


def test_images_have_their_channels_last_first_of_all():
    assert _cases(CONV, 1, strategies=("layouts",))[0].layout == "channels_last"


def test_strided_inputs_have_one_dim_where_the_task_has_such_a_form():
    task = declare(
        "f(x[*shape])",
        {"M": "batch", "N": "channel"},
        where={"shape": declarations.Variants("_rank", {2: "M, N", 1: "M * N"})},
    )
    cases = _cases(task, 6, strategies=("layouts",))
    assert {c.settings["_rank"] for c in cases if c.layout == "strided"} == {1}


def test_nothing_is_expanded_where_there_is_no_batch_or_the_input_is_written():
    for task in (FLAT, IN_PLACE):
        assert "expanded" not in {c.layout for c in _cases(task, 12, strategies=("layouts",))}


def test_a_task_without_layouts_gets_contiguous_inputs_only():
    task = declare("plain(x[N])", {"N": "channel"}, layouts=False)
    assert {c.layout for c in _cases(task, 40)} == {"contiguous"}
    assert _cases(task, 5, strategies=("layouts",)) == []


def test_attributes_take_every_value_and_optional_tensors_are_left_out():
    cases = _cases(CROSS_ENTROPY, 10, strategies=("attributes",))
    assert {c.settings["reduction"] for c in cases} == {"mean", "sum", "none"}
    assert {c.absent for c in cases} == {(), ("weight",)}


def test_structured_cases_use_every_core_recipe():
    used = {c.recipe for c in _cases(RELU, 30, strategies=("structured",))}
    core = {name for name, recipe in RECIPES.items() if recipe.domain == "core"}
    # Offsets tell something behind a product only, and are tried where a task promises them.
    assert used == core - {"uniform", OWN, "common_offset", "channel_offsets"}


def test_each_dim_is_one_and_where_allowed_zero_once():
    cases = _cases(CROSS_ENTROPY, 20, strategies=("empty",))
    assert {c.sizes["N"] for c in cases} >= {0, 1}
    assert 0 not in {c.sizes["C"] for c in cases}
    assert 1 in {c.sizes["C"] for c in cases}
    assert {c.domain for c in cases if c.sizes["N"] == 0} == {"extended"}


@by_task
def test_zero_sizes_come_from_the_empty_strategy_only(task):
    for case in _cases(task, 100):
        assert 0 not in case.sizes.values() or case.strategy == "empty"


def test_dtypes_rotate_and_extended_ones_are_marked():
    cases = _cases(FLAT, 60)
    assert {c.dtype for c in cases} == {"float32", "float16", "bfloat16", "float64", "int32"}
    assert {c.domain for c in cases if c.dtype in ("float64", "int32")} == {"extended"}


def test_dtypes_can_be_restricted():
    assert {c.dtype for c in _cases(FLAT, 20, dtypes=("bfloat16",))} == {"bfloat16"}
    assert {c.dtype for c in _cases(FLAT, 20, dtypes=("int32",))} == {"int32"}


def test_a_dtype_that_the_task_lacks_is_answered_with_those_it_has():
    with pytest.raises(UserError, match="it has float32, float16, bfloat16"):
        generate(RELU, seed=1, count=1, dtypes=("int8",))


def test_an_unknown_strategy_is_answered_with_the_nearest():
    with pytest.raises(UserError, match="'boundry'; nearest: boundary"):
        generate(RELU, seed=1, count=1, strategies=("boundry",))


@by_task
def test_on_the_cpu_a_case_is_small_except_a_few(task):
    cases = _cases(task, 60)
    sizes = [max(prod(task.shape(s, c.sizes, c.settings)) for s in task.tensors) for c in cases]
    assert max(sizes) <= 2**17
    assert sum(n > 4096 for n in sizes) <= 8
    rows = [c.sizes["M"] for c in cases if "M" in c.sizes and not task.contracted()]
    assert sum(n > 17 for n in rows) <= 3


def test_a_few_cases_are_large_enough_for_a_short_grid_to_show():
    assert max(c.sizes["M"] * c.sizes["N"] for c in _cases(RELU, 60)) > 2**16
    assert max(c.sizes["M"] * c.sizes["N"] for c in _cases(RELU, 60, device="cuda")) > 2**18
    assert max(c.sizes["N"] for c in _cases(RMS_NORM, 60)) > 4096
    assert {"bfloat16"} <= {c.dtype for c in _cases(MATMUL, 60) if c.sizes["K"] > 1000}


def test_impossible_constraints_are_counted_and_end():
    task = declare("never(x[N])", {"N": "channel"}, constraints=("N < 0",))
    cases = generate(task, seed=1, count=10)
    assert list(cases) == []
    assert cases.skipped["default: no sizes satisfy the task's constraints"] > 0


def test_divisibility_is_repaired_rather_than_skipped():
    cases = generate(CONV, seed=1, count=60)
    assert {c.settings["groups"] for c in cases} == {1, 2, 3}
    constraints = [n for reason, n in cases.skipped.items() if "constraints" in reason]
    assert sum(constraints) <= 6


def test_every_strategy_has_a_turn_among_the_first_forty():
    cases = _cases(CROSS_ENTROPY, 40, thresholds=(100,))
    assert {c.strategy for c in cases} == set(STRATEGIES)


def test_sizes_stand_on_both_sides_of_each_threshold():
    cases = _cases(MATMUL, 40, strategies=("thresholds",), thresholds=(100, 1000), device="cuda")
    assert {99, 100, 101, 999, 1000, 1001} <= {c.sizes["K"] for c in cases}
    assert [max(c.sizes.values()) for c in cases[:2]] == [101, 101]
    assert _cases(MATMUL, 5, strategies=("thresholds",)) == []


def test_thresholds_change_no_other_case():
    plain, more = _cases(RELU, 40), _cases(RELU, 60, thresholds=(5000,))
    others = [c for c in more if c.strategy != "thresholds"]
    assert plain[:30] == others[:30]


def test_a_dim_may_allow_more_than_cases_try():
    declared = declarations.task(
        "f(x[N, N])",
        category="Math",
        dims={"N": declarations.Dim(symbol="N", role="reduced", low=1, tried=65)},
        reference=lambda x: x,
        description="x",
        flops="N*N",
        benchmark={"N": 4},
    )
    sizes = [case.sizes["N"] for case in generate(declared, seed=0, count=60, device="cuda")]
    assert max(sizes) == 65
    assert declared.allows({"N": 4096}, {})


def test_a_dtype_is_not_combined_with_sizes_that_its_task_excludes():
    task = find("scatter_add")
    cases = [*generate(task, seed=1, count=200, device="cpu")]
    ratios = {d: [c.sizes["K"] / c.sizes["N"] for c in cases if c.dtype == d] for d in task.dtypes}
    assert 0 < max(ratios["bfloat16"]) <= 16 < max(ratios["float16"]) <= 128
    assert max(ratios["float32"]) > 128
