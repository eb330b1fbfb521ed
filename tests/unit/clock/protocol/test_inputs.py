"""What timed calls take: shapes that are timed, arguments in order, and pools."""

from dataclasses import replace

import pytest
import torch
from msgspec import structs
from timed_children import CASE, RELU

from kerneltruth.cases.philox import stream
from kerneltruth.clock.protocol.inputs import SHARED_FROM, make_bench_inputs, rehearsal_arguments
from kerneltruth.clock.schedule.timed_cases import MOST_ELEMENTS, left_out, timed_cases
from kerneltruth.documents.case import Case
from kerneltruth.runner.arguments import ScalarArgument
from kerneltruth.runner.timing.messages import Supply
from kerneltruth.tasks.registry import find
from kerneltruth.tasks.spec import task


def declare(signature, dims, **more):
    return task(
        signature,
        category="Test",
        dims=dims,
        reference=lambda **_: None,
        description="",
        flops="1",
        benchmark=dict.fromkeys(dims, 4),
        **more,
    )


NORM = declare(
    "norm(x[M, N], weight[N]?, eps=1e-6, mode='a')",
    {"M": "batch", "N": "reduced"},
    attributes={"mode": ("b",)},
)


def shaped(*shapes):
    return replace(RELU, perf=shapes)


def test_the_shapes_of_a_task_are_timed_in_its_order():
    cases = timed_cases(shaped({"M": 2, "N": 8}, {"M": 64, "N": 8}))
    assert [c.sizes for c in cases] == [{"M": 2, "N": 8}, {"M": 64, "N": 8}]


def test_a_task_that_names_no_shape_is_timed_at_its_benchmarks():
    assert [c.sizes for c in timed_cases(shaped())] == [{"M": 4, "N": 8}]


def test_a_shape_that_is_too_large_to_grade_is_left_out():
    declared = shaped({"M": 2, "N": 8}, {"M": MOST_ELEMENTS, "N": 2})
    assert [c.sizes for c in timed_cases(declared)] == [{"M": 2, "N": 8}]
    assert left_out(declared) == (f"M={MOST_ELEMENTS} N=2",)
    assert left_out(shaped({"M": 2, "N": 8})) == ()


def test_a_shape_whose_result_is_too_large_to_grade_is_left_out():
    outer = task(
        "outer(x[M], y[N])",
        category="Test",
        dims={"M": "spatial", "N": "spatial"},
        reference=lambda x, y: torch.outer(x, y),
        description="",
        flops="M * N",
        benchmark={"M": 4, "N": 8},
        perf=({"M": 64, "N": 64}, {"M": 8192, "N": 8192}),
    )
    assert [c.sizes for c in timed_cases(outer)] == [{"M": 64, "N": 64}]


def test_attributes_of_a_shape_are_part_of_its_case():
    shape = {"M": 2, "N": 8, "mode": "b"}
    (case,) = timed_cases(replace(NORM, perf=(shape,)))
    assert (case.settings["mode"], case.settings["eps"]) == ("b", 1e-6)


def test_the_working_dtype_is_the_tasks_first_by_default():
    assert timed_cases(RELU)[0].dtype == "float32"
    assert timed_cases(RELU, dtype="bfloat16")[0].dtype == "bfloat16"


def test_the_seed_decides_on_the_contents():
    one, other = (timed_cases(RELU, seed=seed)[0] for seed in (1, 2))
    assert one.seed != other.seed


def names(inputs, kind):
    return [a.name for a in inputs.arguments if isinstance(a, kind)]


def test_arguments_come_in_the_order_of_the_signature():
    inputs = make_bench_inputs(NORM, timed_cases(NORM)[0])
    assert [a.name for a in inputs.arguments] == ["x", "weight", "eps", "mode"]
    eps = next(a for a in inputs.arguments if a.name == "eps")
    assert (eps.value, eps.default) == (1e-6, 1e-6)


def test_an_absent_tensor_is_passed_as_none():
    inputs = make_bench_inputs(NORM, structs.replace(timed_cases(NORM)[0], absent=("weight",)))
    weight = next(a for a in inputs.arguments if a.name == "weight")
    assert weight == ScalarArgument(name="weight", value=None)
    assert [a.name for a in inputs.moving] == ["x"]


def test_a_small_pool_travels_and_a_large_one_is_shared():
    small = make_bench_inputs(RELU, CASE)
    large = make_bench_inputs(RELU, structs.replace(CASE, dims=(("M", 64), ("N", 64))))
    assert large.pools["x"].elements.numel() * 4 >= SHARED_FROM
    assert small.held == ()
    assert len(small.arguments[0].pool) == 4 * small.pools["x"].elements.numel()
    assert large.arguments[0].pool == b""
    assert large.arguments[0].path == large.held[0].path


def test_what_a_task_writes_is_shown():
    added = declare("add_(x[M, N], y[M, N])", dict(M="batch", N="spatial"), mutates=("x",))
    shown = {a.name: a.shown for a in make_bench_inputs(added, timed_cases(added)[0]).arguments}
    assert shown == {"x": True, "y": False}


def test_weights_are_fixed_and_take_no_memory_of_a_row():
    layer = declare("layer(x[M, N], weight[N]: weight)", {"M": "batch", "N": "contracted"})
    inputs = make_bench_inputs(layer, Case(task="layer", dims=(("M", 2), ("N", 3))))
    assert {a.name: a.fixed for a in inputs.arguments} == {"x": False, "weight": True}
    assert inputs.buffer_bytes == 2 * 3 * 4


def test_members_of_a_list_say_so():
    adam = replace(find("kernelbenchx/Adam"), perf=())
    inputs = make_bench_inputs(adam, timed_cases(adam)[0])
    members = {a.name: a.member_of for a in inputs.arguments if isinstance(a, Supply)}
    assert members["p0"] == members["p1"] == "params"
    assert members["_gradients_of_p0"] is None


@pytest.mark.parametrize("name", ["kernelbenchx/softmax", "kernelbenchx/matmul", "softmax"])
def test_every_timed_shape_of_a_task_fits(name):
    for case in timed_cases(find(name)):
        assert case.task == find(name).key


@pytest.mark.parametrize("kind", ["tril", None])
def test_contents_that_were_drawn_can_be_given_again(kind):
    declared = declare("f(x[M, N])", {"M": "batch", "N": "spatial"})
    spec = replace(declared.tensors[0], kind=kind or declared.tensors[0].kind)
    declared = replace(declared, arguments=(spec,))
    inputs = make_bench_inputs(declared, Case(task="f", dims=(("M", 4), ("N", 4)), seed=3))
    drawn = inputs.draw(stream(1, "drawn"), 5)
    given = inputs.given([*drawn])
    assert inputs.refill(range(5), given) == inputs.refill(range(5), drawn)
    assert bool(inputs.refill(range(5), given).scales) is (kind is not None)


@pytest.mark.parametrize("name", ["Adam", "fused_embedding_add_tanh", "cholesky", "softmax"])
@pytest.mark.parametrize("dtype", [0, -1])
def test_what_is_rehearsed_has_the_form_of_what_is_timed(name, dtype):
    found = find(f"kernelbenchx/{name}")
    case = timed_cases(replace(found, perf=()), dtype=found.dtypes[dtype])[0]
    blank, supplied = rehearsal_arguments(found, case), make_bench_inputs(found, case).arguments
    assert [form(a) for a in blank] == [form(a) for a in supplied]
    assert {a.pool for a in blank if isinstance(a, Supply)} == {b""}


def test_what_a_task_says_that_a_tensor_holds_is_rehearsed(tmp_path):
    numbers = torch.tensor([[0, 2], [9, 5]])
    held = replace(NORM.arguments[1], kind="int64", dims=("N",), optional=False)
    table = replace(held, held=lambda settings: numbers.T)
    norm = replace(NORM, arguments=(NORM.arguments[0], table, *NORM.arguments[2:]))
    case = timed_cases(norm)[0]
    buffers, offsets = (a for a in rehearsal_arguments(norm, case) if isinstance(a, Supply))
    assert (buffers.pool, offsets.dtype) == (b"", "int64")
    assert torch.frombuffer(bytearray(offsets.pool), dtype=torch.int64).tolist() == [0, 9, 2, 5]
    assert (
        offsets.pool
        == next(a for a in make_bench_inputs(norm, case).arguments if a.name == "weight").pool
    )


def test_an_absent_tensor_is_rehearsed_as_none():
    case = structs.replace(timed_cases(NORM)[0], absent=("weight",))
    assert [form(a) for a in rehearsal_arguments(NORM, case)] == [
        form(a) for a in make_bench_inputs(NORM, case).arguments
    ]


def form(argument):
    if isinstance(argument, ScalarArgument):
        return argument
    return argument.name, argument.dtype, argument.shape, argument.member_of, argument.strides


def test_tensors_lie_as_in_their_example_when_timed_and_when_rehearsed():
    x, *others = NORM.arguments
    norm = replace(NORM, arguments=(replace(x, example=((8, 1), (4, 8))), *others))
    case = timed_cases(norm)[0]
    timed, blank = make_bench_inputs(norm, case), rehearsal_arguments(norm, case)
    rows = timed.arguments[0].shape[0]
    assert timed.strides == {"x": (1, rows)}
    assert [form(a) for a in blank] == [form(a) for a in timed.arguments]
