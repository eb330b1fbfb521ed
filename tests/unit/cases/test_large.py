"""Which calls beyond 2^31 are planned, and what they need of a device."""

import pytest

from kerneltruth.cases.large import LIMIT, has_rows, large_calls, row_dim
from kerneltruth.cases.strategies import generate
from kerneltruth.tasks.core import TASKS
from kerneltruth.tasks.spec import task as declare_task


def _declared(signature, dims, **more):
    return declare_task(
        signature,
        category="Test",
        dims=dims,
        reference=lambda **_: None,
        description="",
        flops="1",
        benchmark=dict.fromkeys(dims, 8),
        **more,
    )


def _first(task):
    return next(generate(task, count=1, seed=0, strategies=("default",)))


def _planned(task, outputs, **more):
    case = _first(task)
    return list(large_calls(task, case, row_dim(task, case), outputs, **more))


def test_the_first_call_has_more_than_2_31_elements_and_the_last_as_many_bytes():
    first, half, last = _planned(TASKS["relu"], [257], narrower=["float16"])
    assert [c.unit for c in (first, half, last)] == ["elements", "elements", "bytes"]
    assert [c.case.dtype for c in (first, half, last)] == ["float32", "float16", "float32"]
    assert LIMIT < first.rows * 257 < LIMIT * 1.001
    assert LIMIT < last.rows * 257 * 4 < LIMIT * 1.001


def test_a_call_needs_memory_for_operands_and_half_as_much_beside():
    (first, *_) = _planned(TASKS["lerp"], [257])
    operands = 3 * first.rows * 257 * 4
    assert first.free_bytes == int(1.5 * operands) + 2**30


def test_each_further_call_needs_less_memory():
    for name in ("relu", "softmax", "addcmul", "layer_norm"):
        needed = [c.free_bytes for c in _planned(TASKS[name], [257], narrower=["float16"])]
        assert needed == sorted(needed, reverse=True)
        assert len(set(needed)) == 3


def test_rows_are_judged_at_both_ends_and_around_each_limit():
    (call, *_) = _planned(TASKS["relu"], [257])
    covered = {row for start, count in call.ranges for row in range(start, start + count)}
    assert {0, call.rows - 1, LIMIT // 257, LIMIT // (257 * 4)} <= covered
    assert len(covered) == len(call.judged) < 100


def test_an_offset_that_wraps_meets_another_row_of_the_block():
    (call, *_) = _planned(TASKS["relu"], [257])
    drawn = call.block.sizes["M"]
    assert all((wrap // 257) % drawn for wrap in (2**30, 2**31, 2**32))


def test_rows_of_one_element_have_ranges_of_many():
    task = _declared("f(x[N])", {"N": "spatial"})
    (call, *_) = _planned(task, [1])
    assert call.rows > LIMIT
    assert call.ranges[-1] == (call.rows - 64, 64)


@pytest.mark.parametrize("name", ["matmul", "attention", "amax", "scatter_add", "gcd", "gram"])
def test_products_sums_over_rows_and_limited_dims_have_none(name):
    task = TASKS[name]
    assert row_dim(task, _first(task)) is None


def test_a_tensor_of_the_rows_in_another_place_has_none():
    turned = _declared("f(x[M, N], y[N, M])", {"M": "batch", "N": "channel"})
    assert row_dim(turned, _first(turned)) is None


def test_an_index_into_the_rows_has_none():
    task = _declared("f(x[M, N], i[K]: index(M))", {"M": "batch", "N": "channel", "K": "batch"})
    assert row_dim(task, _first(task)) is None


def test_a_weight_has_no_rows_of_the_call():
    task = TASKS["layer_norm"]
    case = _first(task)
    specs = {spec.name: spec for spec in task.tensors}
    assert has_rows(task, specs["x"], case, "M")
    assert not has_rows(task, specs["weight"], case, "M")


def test_rows_too_long_to_be_drawn_give_no_call():
    task = _declared("f(x[M, N])", {"M": "batch", "N": "spatial"})
    case = _first(task).with_dims(N=2**17)
    assert not list(large_calls(task, case, "M", [2**17]))
