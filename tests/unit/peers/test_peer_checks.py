"""The peers' checks draw, compare and conclude as the peers do, known blind spots included."""

import pytest
import torch

from kerneltruth.peers import (
    CHECKS,
    DrawCache,
    NoAnswer,
    run_all,
    run_check,
)
from kerneltruth.peers.draws import Setting
from kerneltruth.peers.protocols import gpuemu_tolerance
from kerneltruth.tasks.registry import tasks_of
from kerneltruth.tasks.spec import Benchmark, Output, task

CHECK = {check.name: check for check in CHECKS}
NAMES = tuple(CHECK)

RELU = task(
    "relu(x[M, N])",
    category="Activation",
    dims={"M": "batch", "N": "channel"},
    reference=lambda x: torch.relu(x),
    description="max(x, 0).",
    flops="M*N",
    benchmark={"M": 4, "N": 64},
    tolerance={"float32": 1e-5, "float16": 1e-3},
)
SOFTMAX = task(
    "softmax(x[M, N])",
    category="Activation",
    dims={"M": "batch", "N": "reduced"},
    reference=lambda x: torch.softmax(x, -1),
    description="softmax over the last dim.",
    flops="5*M*N",
    benchmark={"M": 2, "N": 4096},
)
TWO_OUTPUTS = task(
    "min_max(x[M, N])",
    category="Reduce",
    dims={"M": "batch", "N": "reduced"},
    reference=lambda x: (x.amin(-1), x.amax(-1)),
    description="smallest and largest of each row.",
    flops="2*M*N",
    outputs=(Output(name="low"), Output(name="high")),
    constraints=("N > 0",),
    benchmark={"M": 4, "N": 64},
)
LOOKUP = task(
    "lookup(index[T]: index(V), table[V])",
    category="Index",
    dims={"T": "batch", "V": "channel"},
    reference=lambda index, table: table[index],
    description="table[index].",
    flops="0",
    constraints=("V > 0",),
    benchmark={"T": 16, "V": 16},
)
ROOT = task(
    "root(x[N])",
    category="Math",
    dims={"N": "batch"},
    reference=lambda x: torch.sqrt(x),
    description="Square root, NaN below 0.",
    flops="N",
    benchmark=Benchmark(dims={"N": 64}, distribution="normal"),
)


class Kernel:
    """Answers draws with a formula of the inputs, and keeps the draws."""

    def __init__(self, formula):
        self.formula = formula
        self.draws = []

    def __call__(self, draw):
        self.draws.append(draw)
        given = [t for t in draw.inputs.tensors.values() if t is not None]
        found = self.formula(*given)
        return found if isinstance(found, tuple | NoAnswer) else (found,)


def outcome(name, of, formula, dtype="float32", seed=0):
    return run_check(CHECK[name], of, dtype, seed, Kernel(formula))


def draws_of(name, of, formula, dtype="float32", seed=0):
    kernel = Kernel(formula)
    run_check(CHECK[name], of, dtype, seed, kernel)
    return kernel.draws


def relu_in_float32(x):
    return torch.relu(x.float()).to(x.dtype)


def test_there_are_ten_checks():
    assert NAMES == (
        "kernelbench",
        "kernelbench-v0",
        "kernelbench-verified",
        "kernelbenchx",
        "tritonbench",
        "backendbench",
        "flashinfer-bench",
        "robust-kbench",
        "gpuemu",
        "one-shape",
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_correct_kernel_passes_every_check(name):
    assert run_all(RELU, Kernel(relu_in_float32), 0)[name].verdict == "pass"


@pytest.mark.parametrize("name", [n for n in NAMES if n != "tritonbench"])
def test_a_kernel_that_is_wrong_everywhere_fails_every_check_but_one(name):
    assert run_all(RELU, Kernel(lambda x: x.abs() + 1), 0)[name].verdict == "fail"


# Blind spots


def test_zeros_pass_a_softmax_over_many_columns_at_a_hundredth():
    assert outcome("kernelbench-v0", SOFTMAX, torch.zeros_like).verdict == "pass"


def test_zeros_fail_the_same_softmax_at_the_tolerance_of_float32():
    assert outcome("kernelbench", SOFTMAX, torch.zeros_like).verdict == "fail"


def test_zeros_pass_the_softmax_in_half_precision_so_the_check_passes():
    result = run_all(SOFTMAX, Kernel(torch.zeros_like), 0)["kernelbench"]
    assert result.verdict == "pass"
    assert [(d, o.verdict) for d, o in result.by_dtype.items()] == [
        ("float32", "fail"),
        ("float16", "pass"),
    ]


def test_a_copy_of_the_input_passes_relu_on_positive_inputs():
    assert outcome("kernelbench", RELU, torch.clone).verdict == "pass"


@pytest.mark.parametrize("name", ["kernelbench-verified", "flashinfer-bench", "one-shape"])
def test_a_copy_of_the_input_fails_relu_where_inputs_are_negative(name):
    assert outcome(name, RELU, torch.clone).verdict == "fail"


@pytest.mark.parametrize("name", ["robust-kbench", "one-shape"])
def test_a_shape_that_broadcasts_is_not_seen(name):
    assert outcome(name, RELU, lambda x: torch.relu(x)[None]).verdict == "pass"


@pytest.mark.parametrize("name", ["kernelbench", "kernelbenchx", "flashinfer-bench", "gpuemu"])
def test_a_shape_that_broadcasts_is_seen_where_shapes_are_compared(name):
    assert outcome(name, RELU, lambda x: torch.relu(x)[None]).verdict == "fail"


def test_a_kernel_that_prints_nothing_and_computes_nothing_passes_tritonbench():
    assert outcome("tritonbench", RELU, lambda x: x.new_empty(0)).verdict == "pass"


# Tolerances


@pytest.mark.parametrize(
    ("name", "dtype", "passes", "fails"),
    [
        ("kernelbench", "float32", 0.9e-4, 3e-4),
        ("kernelbench", "float16", 0.8e-2, 3e-2),
        ("kernelbench-v0", "float32", 0.9e-2, 3e-2),
        ("kernelbench-verified", "float32", 0.9e-3, 4e-2),
        ("kernelbenchx", "float32", 0.9e-5, 1e-3),
        ("kernelbenchx", "float16", 3e-3, 0.5),
        ("backendbench", "bfloat16", 0.4e-2, 0.5),
        ("robust-kbench", "float32", 0.9e-5, 3e-5),
        ("gpuemu", "float32", 0.9e-5, 1.2e-5),
        ("one-shape", "float32", 0.9e-5, 4e-2),
    ],
)
def test_an_error_passes_below_the_tolerance_and_fails_above(name, dtype, passes, fails):
    assert outcome(name, RELU, lambda x: torch.relu(x) + passes, dtype).verdict == "pass"
    assert outcome(name, RELU, lambda x: torch.relu(x) + fails, dtype).verdict == "fail"


def test_flashinfer_lets_a_large_relative_error_of_a_small_value_pass():
    assert outcome("flashinfer-bench", SOFTMAX, torch.zeros_like).verdict == "pass"


def test_gpuemu_takes_the_published_tolerance():
    assert gpuemu_tolerance(RELU, "float16") == 1e-3


def test_gpuemu_takes_the_tolerance_of_the_family_where_none_is_published():
    assert gpuemu_tolerance(SOFTMAX, "float16") == 5e-2


def test_quantization_is_judged_by_similarity():
    quantize = task(
        "quantize(x[N])",
        category="Quantization",
        dims={"N": "batch"},
        reference=lambda x: (x * 20).round().clamp(-128, 127).to(torch.int8),
        description="int8.",
        flops="N",
        outputs=(Output(dtype="int8"),),
        benchmark={"N": 1024},
    )

    def one_element_off_by_one(x):
        result = quantize.reference(x)
        result[0] += 1
        return result

    assert outcome("kernelbenchx", quantize, one_element_off_by_one).verdict == "pass"
    assert outcome("kernelbenchx", quantize, lambda x: -quantize.reference(x)).verdict == "fail"


def test_assert_close_says_how_many_elements_differ():
    assert "256 of 256 elements are not close" in outcome("kernelbenchx", RELU, lambda x: x + 9).why


# NaN


@pytest.mark.parametrize("name", ["kernelbenchx", "backendbench"])
def test_nan_where_the_reference_has_nan_passes_with_equal_nan(name):
    dtype = "bfloat16" if name == "backendbench" else "float32"
    assert outcome(name, ROOT, torch.sqrt, dtype).verdict == "pass"


@pytest.mark.parametrize("name", ["kernelbench", "flashinfer-bench", "one-shape", "gpuemu"])
def test_nan_where_the_reference_has_nan_fails_otherwise(name):
    assert outcome(name, ROOT, torch.sqrt).verdict == "fail"


def test_flashinfer_takes_anything_where_the_reference_is_nan():
    assert outcome("flashinfer-bench", ROOT, lambda x: x.abs().sqrt()).verdict == "pass"


# Draws


def test_kernelbench_draws_five_times_at_one_shape():
    draws = draws_of("kernelbench", RELU, torch.relu)
    assert len({d.key for d in draws}) == len(draws) == 5
    assert {d.inputs.tensors["x"].shape for d in draws} == {(4, 64)}
    assert all(0 <= d.inputs.tensors["x"].min() < d.inputs.tensors["x"].max() < 1 for d in draws)


def test_a_task_that_asks_for_normal_inputs_gets_them():
    assert draws_of("kernelbench", ROOT, lambda x: x.abs())[0].inputs.tensors["x"].min() < 0


def test_kernelbench_verified_scales_one_draw():
    first, *others = [
        d.inputs.tensors["x"] for d in draws_of("kernelbench-verified", RELU, torch.relu)
    ]
    factors = (3, 0.01, -1)
    assert all(x.equal(first * f) for x, f in zip(others, factors, strict=True))


def test_a_kind_with_a_range_of_its_own_is_not_scaled():
    positive = task(
        "logarithm(x[N]: positive)",
        category="Math",
        dims={"N": "batch"},
        reference=lambda x: torch.log(x),
        description="log.",
        flops="N",
        benchmark={"N": 64},
    )
    assert outcome("kernelbench-verified", positive, torch.log).verdict == "pass"


def test_kernelbenchx_draws_from_seed_0_whatever_the_seed():
    one = draws_of("kernelbenchx", RELU, torch.relu, seed=1)
    two = draws_of("kernelbenchx", RELU, torch.relu, seed=2)
    assert [d.key for d in one] == [d.key for d in two]


def test_kernelbenchx_has_an_outlier_mode():
    wide = task(
        "copy(x[N])",
        category="Math",
        dims={"N": "batch"},
        reference=lambda x: x.clone(),
        description="x.",
        flops="0",
        benchmark={"N": 8192},
    )
    standard, outlier = [d.inputs.tensors["x"] for d in draws_of("kernelbenchx", wide, torch.clone)]
    struck = standard != outlier
    assert 0.0005 < struck.float().mean() < 0.015
    ratios = (outlier / standard)[struck]
    assert ratios.min() >= 10
    assert ratios.max() <= 50.01


def test_backendbench_draws_a_trace_and_twelve_samples_in_bfloat16():
    draws = draws_of("backendbench", RELU, torch.relu, "bfloat16")
    assert len(draws) == 13
    assert draws[0].case.sizes == {"M": 4, "N": 64}
    assert all(set(d.case.sizes.values()) <= {1, 3, 5, 10, 20} for d in draws[1:])
    assert {d.inputs.tensors["x"].dtype for d in draws} == {torch.bfloat16}


def test_operator_samples_respect_the_constraints_of_the_task():
    grouped = task(
        "grouped(x[C])",
        category="Normalization",
        dims={"C": "channel"},
        reference=lambda x: x.clone(),
        description="x.",
        flops="0",
        constraints=("C % 5 == 0",),
        benchmark={"C": 40},
    )
    draws = draws_of("backendbench", grouped, torch.clone, "bfloat16")
    assert sorted(d.case.sizes["C"] for d in draws[1:]) == [5, 10, 20]


def test_robust_kbench_runs_the_kernel_twice_on_each_draw():
    turns = draws_of("robust-kbench", RELU, torch.relu)
    assert len(turns) == 10
    assert [t.case for t in turns[0::2]] == [t.case for t in turns[1::2]]
    assert [t.turn for t in turns] == [0, 1] * 5


def test_robust_kbench_sees_a_second_answer_that_is_wrong():
    calls = []

    def right_once(x):
        calls.append(x)
        return torch.relu(x) if len(calls) % 2 else torch.zeros_like(x)

    assert outcome("robust-kbench", RELU, right_once).verdict == "fail"


def test_gpuemu_runs_thirty_cases_over_two_dtypes():
    kernel = Kernel(relu_in_float32)
    results = run_all(RELU, kernel, 0, checks=(CHECK["gpuemu"],))
    assert results["gpuemu"].verdict == "pass"
    assert {d: o.runs for d, o in results["gpuemu"].by_dtype.items()} == {
        "float32": 15,
        "float16": 15,
    }
    assert len({d.inputs.tensors["x"].shape for d in kernel.draws}) > 5


def test_gpuemu_stops_at_the_first_failing_case():
    result = run_all(RELU, Kernel(torch.clone), 0, checks=(CHECK["gpuemu"],))["gpuemu"]
    assert result.verdict == "fail"
    assert sum(o.runs for o in result.by_dtype.values()) < 15
    assert "float32 uniform" in result.why


@pytest.mark.parametrize("suite", ["core", "kernelbenchx", "tritonbench"])
def test_gpuemu_draws_for_each_task_in_each_dtype_that_it_tries(suite):
    # Promised or not: a task that promises float32 alone has no case of the core in float16.
    drawn = {}
    for one in tasks_of(suite).values():
        for dtype in CHECK["gpuemu"].dtypes_for(one):
            setting = Setting(task=one, dtype=dtype, seed=0, cache=DrawCache())
            first = next(setting.schema_draws(1))
            drawn[one.key, dtype] = first.case.dtype
    assert drawn
    assert {key: dtype for key, dtype in drawn.items() if key[1] != dtype} == {}


def test_the_same_seed_makes_the_same_draws_and_another_seed_others():
    keys = [[d.key for d in draws_of("kernelbench", RELU, torch.relu, seed=s)] for s in (5, 5, 6)]
    assert keys[0] == keys[1]
    assert set(keys[0]).isdisjoint(keys[2])


def test_a_draw_shared_by_several_checks_is_executed_once():
    kernel = Kernel(relu_in_float32)
    run_all(RELU, kernel, 0)
    keys = [d.key for d in kernel.draws]
    assert len(keys) == len(set(keys))


@pytest.mark.parametrize(
    ("one", "other"), [("kernelbench", "kernelbench-v0"), ("one-shape", "flashinfer-bench")]
)
def test_checks_of_one_protocol_share_their_draws(one, other):
    first = {d.key for d in draws_of(one, RELU, torch.relu)}
    second = {d.key for d in draws_of(other, RELU, torch.relu)}
    assert first <= second


def test_equal_keys_mean_equal_inputs():
    kernel, again = Kernel(relu_in_float32), Kernel(relu_in_float32)
    run_all(RELU, kernel, 3)
    run_all(RELU, again, 3)
    for one, two in zip(kernel.draws, again.draws, strict=True):
        assert one.key == two.key
        assert one.inputs.tensors["x"].equal(two.inputs.tensors["x"])


def test_candidates_of_one_task_share_draws_and_references():
    cache, calls = DrawCache(), []

    def counted(x):
        calls.append(1)
        return torch.relu(x)

    counting = task(
        "counted(x[N])",
        category="Math",
        dims={"N": "batch"},
        reference=counted,
        description="relu.",
        flops="N",
        benchmark={"N": 64},
    )
    run_all(counting, Kernel(torch.relu), 0, cache=cache)
    once = len(calls)
    run_all(counting, Kernel(torch.clone), 0, cache=cache, checks=(CHECK["kernelbench"],))
    assert len(calls) == once


def test_the_cache_forgets_the_oldest_beyond_its_limit():
    cache = DrawCache(limit_bytes=2 * 3 * 8192)
    kernel = Kernel(torch.relu)
    for _ in range(2):
        run_check(CHECK["kernelbench"], RELU, "float32", 0, kernel, cache=cache)
    assert kernel.draws[0] is not kernel.draws[5]
    assert kernel.draws[0].key == kernel.draws[5].key


# Verdicts


def test_a_kernel_that_raises_is_an_error_that_says_why():
    refuses = NoAnswer(ended="raised", detail="ValueError: contiguous only")
    results = run_all(RELU, Kernel(lambda x: refuses), 0)
    others = {n: r for n, r in results.items() if n != "tritonbench"}
    assert {r.verdict for r in others.values()} == {"error"}
    assert {r.why for r in others.values()} == {"raised: ValueError: contiguous only"}


def test_a_kernel_that_raises_fails_the_check_that_only_runs_it():
    refuses = NoAnswer(ended="raised", detail="ValueError: no")
    result = outcome("tritonbench", RELU, lambda x: refuses)
    assert (result.verdict, result.why) == ("fail", "raised: ValueError: no")


def test_what_this_machine_cannot_run_is_an_error_of_every_check():
    unsupported = NoAnswer(ended="unsupported", detail="needs CUDA")
    results = run_all(RELU, Kernel(lambda x: unsupported), 0)
    assert {r.verdict for r in results.values()} == {"error"}


def test_an_index_cast_to_float_stops_kernelbench_but_not_its_first_version():
    results = run_all(LOOKUP, Kernel(lambda index, table: table[index.long()]), 0)
    assert results["kernelbench"].verdict == "error"
    assert "the reference refuses" in results["kernelbench"].why
    assert results["kernelbench-v0"].verdict == "pass"


def test_several_outputs_stop_the_check_that_compares_one():
    results = run_all(TWO_OUTPUTS, Kernel(TWO_OUTPUTS.reference), 0)
    assert results["kernelbench"].verdict == "error"
    assert "2 outputs" in results["kernelbench"].why
    assert results["one-shape"].verdict == "pass"


def test_every_output_is_compared():
    swapped = Kernel(lambda x: (x.amin(-1), x.amin(-1)))
    assert run_all(TWO_OUTPUTS, swapped, 0)["flashinfer-bench"].verdict == "fail"


def test_too_few_outputs_fail():
    assert "1 outputs, not 2" in run_all(TWO_OUTPUTS, Kernel(torch.clone), 0)["one-shape"].why


def test_another_dtype_fails_where_allclose_refuses_it():
    result = outcome("kernelbench", RELU, lambda x: torch.relu(x).half())
    assert result.verdict == "fail"
    assert "allclose refuses" in result.why


def test_after_a_pass_no_other_dtype_is_tried():
    result = run_all(RELU, Kernel(torch.relu), 0)["kernelbench"]
    assert list(result.by_dtype) == ["float32"]


def test_a_check_of_one_dtype_cannot_run_on_a_task_without_it():
    integers = task(
        "twice(x[N])",
        category="Math",
        dims={"N": "batch"},
        reference=lambda x: 2 * x,
        description="2 x.",
        flops="N",
        dtypes=("float32",),
        benchmark={"N": 64},
    )
    result = run_all(integers, Kernel(lambda x: 2 * x), 0)["backendbench"]
    assert result.verdict == "error"
    assert "bfloat16" in result.why


def test_only_the_chosen_dtypes_are_tried():
    kernel = Kernel(torch.zeros_like)
    result = run_all(RELU, kernel, 0, checks=(CHECK["kernelbench"],), dtypes=("bfloat16",))
    assert list(result["kernelbench"].by_dtype) == ["bfloat16"]


def test_a_kernel_that_never_ends_is_run_twice_at_most():
    kernel = Kernel(lambda x: NoAnswer(ended="timeout", detail="10 s"))
    results = run_all(RELU, kernel, 0)
    assert len(kernel.draws) == 2
    assert {r.verdict for n, r in results.items() if n != "tritonbench"} == {"error"}
    assert results["tritonbench"].verdict == "fail"
