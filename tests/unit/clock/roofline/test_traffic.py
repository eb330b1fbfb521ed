"""What references say of the bytes that a call must write and read."""

import pytest
import torch
from msgspec import structs

from kerneltruth.cases.materialize import benchmark_case, materialize
from kerneltruth.clock.roofline.traffic import needed_bytes, output_bytes, output_shapes
from kerneltruth.clock.roofline.work import work_of
from kerneltruth.tasks.registry import find, tasks_of


def shapes(name, dtype="float32", **sizes):
    task = find(name)
    return output_shapes(task, benchmark_case(task, 0, dtype).with_dims(**sizes))


def needed(name, dtype="float32", kept=(), **sizes):
    task = find(name)
    case = benchmark_case(task, 0, dtype).with_dims(**sizes)
    case = structs.replace(case, recipe="normal")
    return needed_bytes(task, case, materialize(task, case), kept=kept)


def test_the_shape_of_a_product_is_known_without_computing_it():
    assert shapes("matmul", M=10**6, N=10**6, K=10**6) == ((10**6, 10**6),)


def test_two_outputs_have_their_own_dtypes():
    topk = find("topk")
    case = benchmark_case(topk, 0, "bfloat16")
    rows, k = case.sizes["M"], case.settings["k"]
    # Values in bfloat16, indices in int64.
    assert output_bytes(topk, case) == rows * k * (2 + 8)


def test_a_factorization_looks_at_values_and_says_nothing():
    task = find("kernelbenchx/cholesky")
    assert output_bytes(task, benchmark_case(task, 0, "float32")) is None


@pytest.mark.parametrize("suite", ["core", "kernelbenchx", "tritonbench"])
def test_most_tasks_say_what_they_write(suite):
    found = [
        output_bytes(task, benchmark_case(task, 0, task.dtypes[0]))
        for task in tasks_of(suite).values()
    ]
    assert sum(n is not None for n in found) >= 0.85 * len(found)


def test_every_element_of_a_softmax_must_be_read():
    assert needed("softmax", M=8, N=32) == 8 * 32 * 4


def test_only_picked_rows_must_be_read():
    rows = needed("index_select", M=100, N=16, K=5)
    assert 0 < rows <= 5 * 16 * 4


def test_a_relu_shows_about_half_of_what_it_reads():
    assert 0.3 * 4096 < needed("relu", M=32, N=32) < 0.7 * 4096


def test_what_is_the_same_for_every_call_may_stay_in_a_cache():
    both = needed("matmul", M=8, N=16, K=4)
    one = needed("matmul", kept=("tensor2",), M=8, N=16, K=4)
    assert (both, one) == ((8 * 4 + 4 * 16) * 4, 8 * 4 * 4)


def test_a_term_that_an_attribute_drops_is_not_needed():
    task = find("addmm")
    case = benchmark_case(task, 0, "float32").with_attributes(beta=0.0)
    case = structs.replace(case.with_dims(M=4, N=4, K=4), recipe="normal")
    assert needed_bytes(task, case, materialize(task, case)) == 2 * 16 * 4


@pytest.mark.parametrize("name", ["kernelbenchx/index_fill_", "tritonbench/broadcast_tensors"])
def test_what_may_be_returned_in_place_need_not_be_read(name):
    assert needed(name) == 0


@pytest.mark.parametrize("suite", ["core", "kernelbenchx", "tritonbench"])
def test_no_task_must_read_more_than_it_moves(suite):
    # Else a limit could lie above the floor, and a good kernel be called impossible.
    for task in tasks_of(suite).values():
        case = structs.replace(benchmark_case(task, 0, task.dtypes[0]), recipe="normal")
        with torch.random.fork_rng():
            must = needed_bytes(task, case, materialize(task, case))
        moved = work_of(task, case, output_bytes=output_bytes(task, case)).bytes
        assert must <= moved, task.key


def test_a_symmetric_matrix_counts_half():
    task = find("kernelbenchx/symmetric_matrix_vector_norm")
    case = structs.replace(benchmark_case(task, 0, "float32"), recipe="normal")
    inputs = materialize(task, case)
    whole = sum(t.numel() * 4 for t in inputs.tensors.values())
    matrix = max(t.numel() * 4 for t in inputs.tensors.values())
    assert needed_bytes(task, case, inputs) == whole - matrix // 2


def test_a_reference_without_a_gradient_shows_nothing():
    assert needed("floor", M=8, N=8) == 0
