"""Floors and limits of declared tasks, on a device of round numbers."""

from dataclasses import replace

import pytest
from msgspec import structs

from kerneltruth.cases.materialize import benchmark_case
from kerneltruth.clock.roofline.work import (
    Ceilings,
    Floor,
    Limit,
    floor,
    impossible,
    limit_of,
    regime,
    work_of,
)
from kerneltruth.errors import InternalError
from kerneltruth.tasks.registry import find
from kerneltruth.tasks.spec import task

# 1 TB/s copied, 1.1 TB/s read; rates of 10, 80, 160 and 320 TFLOP/s.
DEVICE = Ceilings(
    device="round numbers",
    copy_bytes_per_s=1e12,
    read_bytes_per_s=1.1e12,
    flops={
        "float32": 1e13,
        "tf32": 8e13,
        "float16": 1.6e14,
        "bfloat16": 1.6e14,
        "int8": 3.2e14,
    },
    l2_bytes=50 * 10**6,
)
RELU, MATMUL = find("relu"), find("matmul")


def case_of(task, dtype="float32", **sizes):
    return benchmark_case(task, 0, dtype).with_dims(**sizes)


def product(m, n, k, dtype="float32"):
    return case_of(MATMUL, dtype, M=m, N=n, K=k)


def test_ordinary_arithmetic_on_half_precision_runs_two_at_a_time():
    found = floor(RELU, case_of(RELU, "bfloat16", M=1000, N=500), DEVICE)
    assert found.flops_per_s == 2e13


def test_work_reads_each_input_once_and_writes_each_output_once():
    case = case_of(RELU, M=1000, N=500)
    assert work_of(RELU, case, output_bytes=2_000_000).bytes == 4_000_000
    assert work_of(RELU, case).bytes == 2_000_000
    assert work_of(RELU, case).flops == 500_000


def test_half_precision_moves_half_the_bytes():
    case = case_of(RELU, "bfloat16", M=1000, N=500)
    assert work_of(RELU, case, output_bytes=1_000_000).bytes == 2_000_000


def test_a_tasks_own_count_of_bytes_knows_the_size_of_an_element():
    pick = task(
        "pick(input[T]: index(V), weight[V, D])",
        category="Index",
        dims={"T": "batch", "V": "batch", "D": "channel"},
        reference=lambda input, weight: weight[input],
        description="...",
        flops="0",
        bytes="(8 + 2*itemsize*D)*T",
        benchmark={"T": 10, "V": 1000, "D": 64},
    )
    assert work_of(pick, case_of(pick)).bytes == 10 * (8 + 2 * 4 * 64)
    assert work_of(pick, case_of(pick, "float16")).bytes == 10 * (8 + 2 * 2 * 64)


def test_an_absent_tensor_is_not_read():
    norm = find("layer_norm")
    whole = case_of(norm)
    optional = next(s.name for s in norm.tensors if s.optional)
    assert optional not in work_of(norm, structs.replace(whole, absent=(optional,))).read


def test_an_elementwise_kernel_is_bound_by_memory():
    found = floor(RELU, case_of(RELU, M=1000, N=500), DEVICE, output_bytes=2_000_000)
    assert found.seconds == pytest.approx(4e-6)
    assert found.bound_by == "memory"
    assert found.efficiency(8e-6) == pytest.approx(0.5)


def test_a_large_product_is_bound_by_its_operations_in_tf32():
    found = floor(MATMUL, product(4096, 4096, 4096), DEVICE, output_bytes=4 * 4096**2)
    assert found.seconds == pytest.approx(2 * 4096**3 / 8e13)
    assert (found.bound_by, found.format) == ("compute", "tf32")
    assert found.flops_per_s == 8e13


def test_a_half_precision_product_has_its_own_rate():
    found = floor(MATMUL, product(4096, 4096, 4096, "float16"), DEVICE)
    assert found.seconds == pytest.approx(2 * 4096**3 / 1.6e14)


def test_without_matrix_units_measured_ordinary_arithmetic_counts():
    plain = replace(DEVICE, flops={"float32": 1e13})
    found = floor(MATMUL, product(4096, 4096, 4096), plain)
    assert (found.seconds, found.format) == (pytest.approx(2 * 4096**3 / 1e13), "float32")


def test_without_any_rate_only_bytes_count():
    bare = replace(DEVICE, flops={})
    found = floor(MATMUL, product(4096, 4096, 4096), bare)
    assert (found.bound_by, found.format) == ("memory", None)


def test_what_fits_into_a_warm_cache_costs_no_traffic():
    case = case_of(RELU, M=1000, N=500)
    found = floor(RELU, case, DEVICE, output_bytes=2_000_000, cold=False)
    assert found.bound_by == "compute"
    assert found.seconds == pytest.approx(500_000 / 1e13)


def test_a_task_that_moves_nothing_has_a_floor_of_zero():
    fill = find("kernelbenchx/index_fill_")
    found = floor(fill, benchmark_case(fill, 0, "float32"), DEVICE)
    assert found.seconds == 0


@pytest.mark.parametrize(
    ("seconds", "launch_s", "expected"),
    [
        (12e-6, None, "memory"),
        (12e-6, 9e-6, "memory"),
        (40e-6, 5e-6, "latency"),
        (40e-6, 25e-6, "launch"),
        (40e-6, None, "latency"),
    ],
)
def test_the_regime_follows_from_time_floor_and_launch(seconds, launch_s, expected):
    bound = Floor(seconds=1e-5, bound_by="memory", bytes=1, flops=1, format="float32")
    assert regime(seconds, bound, launch_s=launch_s) == expected


@pytest.mark.parametrize(
    ("name", "dtype", "plain"),
    [
        ("kernelbenchx/matmul", "float32", True),
        ("kernelbenchx/matmul", "float16", False),
        ("kernelbenchx/softmax", "float32", False),
    ],
)
def test_products_of_float32_have_a_rate_without_matrix_units_too(name, dtype, plain):
    task = find(name)
    found = floor(task, benchmark_case(task, 0, dtype), DEVICE)
    assert found.plain_flops_per_s == (DEVICE.flops["float32"] if plain else None)


def test_a_rate_of_an_unknown_format_is_refused():
    with pytest.raises(InternalError, match="fp8"):
        replace(DEVICE, flops={"fp8": 1.0})


def limit(task, case, **known):
    return limit_of(task, case, DEVICE, **known)


def test_reads_from_memory_limit_a_call_and_writes_do_not():
    found = limit(RELU, case_of(RELU, M=1000, N=500), read_bytes=2_000_000)
    assert found.seconds == pytest.approx(0.75 * 2e6 / 1.1e12)
    assert "2000000 bytes" in found.why


def test_without_a_measured_read_rate_a_fifth_more_than_copying_is_allowed():
    slower = replace(DEVICE, read_bytes_per_s=None)
    found = limit_of(RELU, case_of(RELU), slower, read_bytes=1_200_000)
    assert found.seconds == pytest.approx(0.75e-6)


def test_an_elementwise_kernel_is_not_limited_by_what_its_formula_counts():
    gelu = find("gelu")
    assert limit(gelu, case_of(gelu), output_elements=10**9).seconds == 0


def test_a_product_is_limited_in_the_fastest_format_any_bound_admits():
    found = limit(MATMUL, product(4096, 4096, 4096), output_elements=4096**2)
    # Half, two levels of Strassen, three quarters of float16's rate.
    least = 0.75 * 0.5 * 0.765 * 2 * 4096**3 / 1.6e14
    assert found.seconds == pytest.approx(least)


def test_the_limit_of_a_product_is_far_below_the_floor_of_a_good_kernel():
    case = product(4096, 4096, 4096)
    good = floor(MATMUL, case, DEVICE, output_bytes=4 * 4096**2).seconds
    assert limit(MATMUL, case, output_elements=4096**2).seconds < 0.2 * good


def test_a_format_that_was_not_measured_lifts_the_limit():
    unknown = replace(DEVICE, flops={"float32": 1e13, "tf32": 8e13})
    case = product(4096, 4096, 4096)
    assert limit_of(MATMUL, case, unknown, output_elements=4096**2).seconds == 0


def test_a_product_that_is_summed_afterwards_needs_few_operations():
    # sum(a @ b) over columns is a @ sum(b).
    summed = task(
        "product_sum(a[M, K], b[K, N])",
        category="MatrixMultiply",
        dims={"M": "batch", "K": "contracted", "N": "reduced"},
        reference=lambda a, b: (a @ b).sum(-1),
        description="...",
        flops="2*M*N*K",
        benchmark={"M": 4096, "N": 4096, "K": 4096},
    )
    case = benchmark_case(summed, 0, "float32")
    honest_s = (2 * 4096**2 + 4096**2) / 1.6e14
    assert limit(summed, case, output_elements=4096).seconds < honest_s


def test_a_convolution_may_save_arithmetic_by_a_transform():
    conv = find("kernelbenchx/conv2d")
    case = benchmark_case(conv, 0, "float32")
    counted = work_of(conv, case).flops / 1.6e14
    found = limit(conv, case, output_elements=10**9).seconds
    assert 0 < found <= counted / 4


@pytest.mark.parametrize("name", ["attention", "causal_attention"])
def test_attention_may_skip_what_a_causal_mask_hides(name):
    found = find(name)
    case = benchmark_case(found, 0, "float32")
    elements = case.sizes["M"] * case.sizes["D"]
    counted = work_of(found, case).flops / 1.6e14
    assert limit(found, case, output_elements=elements).seconds < counted / 2


def test_another_attribute_than_the_default_may_save_the_product():
    addmm = find("addmm")
    case = benchmark_case(addmm, 0, "float32")
    assert limit(addmm, case, output_elements=64 * 64).seconds > 0
    off = case.with_attributes(alpha=0.0)
    assert limit(addmm, off, output_elements=64 * 64).seconds == 0


def test_chains_and_triangles_have_no_limit():
    for name in ("kernelbenchx/fused_transformer_block", "kernelbenchx/tensordot_rsqrt"):
        found = find(name)
        case = benchmark_case(found, 0, "float32")
        assert limit(found, case, output_elements=10**6).seconds == 0


def test_a_time_below_the_limit_is_named_and_one_above_is_not():
    least = Limit(seconds=1e-6, why="4 bytes of input cannot be read from memory in less")
    assert impossible(1.1e-6, least) is None
    assert "9e-07 s is below the limit of 1e-06 s: 4 bytes" in impossible(0.9e-6, least)


def test_nothing_is_impossible_where_nothing_is_known():
    found = limit(RELU, case_of(RELU))
    assert found.seconds == 0
    assert impossible(1e-12, found) is None
