"""A case made into tensors: reproducible, whatever the layout, literals and absences respected."""

import math

import pytest
import torch
from msgspec.structs import replace

from kerneltruth.cases.layouts import LAYOUTS, place
from kerneltruth.cases.materialize import benchmark_case, expanded_dim, layout_of, materialize
from kerneltruth.documents.case import Case
from kerneltruth.errors import InternalError

from .tasks_for_tests import CONV, CROSS_ENTROPY, EVERYTHING, IN_PLACE, RELU, RMS_NORM, declare

CASE = Case(task="relu", dims=(("M", 3), ("N", 5)), seed=7)
MIXED = Case(task="everything", dims=(("M", 4), ("N", 9)), seed=7)
LOSS = Case(task="cross_entropy", dims=(("N", 3), ("C", 5)), seed=7)


def test_the_same_case_gives_the_same_digests():
    assert materialize(EVERYTHING, MIXED).digests() == materialize(EVERYTHING, MIXED).digests()


def test_digests_of_a_known_case_never_change():
    assert materialize(RELU, CASE).digests() == {
        "x": "ebd3512431043316f38f3f7973fd76e4ca45b3c56436bbb19fbf65372e3c7444"
    }
    half = replace(CASE, dtype="bfloat16", recipe="adversarial")
    assert materialize(RELU, half).digests() == {
        "x": "a13984a3c682016c77a2b84f57e50e483130cc38a7e4b71b7f9df57ecb1a3fb4"
    }


@pytest.mark.parametrize("layout", [name for name in LAYOUTS if name != "expanded"])
def test_digests_do_not_depend_on_the_layout(layout):
    moved = replace(MIXED, layout=layout)
    assert materialize(EVERYTHING, moved).digests() == materialize(EVERYTHING, MIXED).digests()


def test_an_offset_leaves_the_range_of_values_that_a_task_has():
    dims = {"M": "batch", "K": "contracted", "O": "channel"}
    task = declare("layer(x[M, K], weight[O, K], bias[O])", dims, values=(-4.0, 4.0))
    case = Case(task="layer", dims=(("M", 3), ("K", 5), ("O", 7)), recipe="common_offset", seed=1)
    largest = {n: float(t.abs().max()) for n, t in materialize(task, case).tensors.items()}
    assert largest.pop("bias") == 4096.0
    assert max(largest.values()) <= 1.0


def test_another_seed_changes_every_tensor():
    one = materialize(EVERYTHING, MIXED).digests()
    other = materialize(EVERYTHING, replace(MIXED, seed=8)).digests()
    assert all(one[name] != other[name] for name in one if name != "b")


def test_tensors_of_one_case_have_streams_of_their_own():
    inputs = materialize(IN_PLACE, replace(CASE, task="add_"))
    assert not torch.equal(inputs.tensors["x"], inputs.tensors["y"])


def test_expanded_inputs_do_not_vary_along_the_batch_dim():
    inputs = materialize(EVERYTHING, replace(MIXED, layout="expanded"))
    for spec in EVERYTHING.tensors:
        tensor = inputs.tensors[spec.name]
        assert tensor.is_contiguous()
        if "M" in spec.dims:
            assert (tensor == tensor[:1]).all()
            placed = place(tensor, layout_of(MIXED, spec), seed=1)
            assert placed.shape == tuple(tensor.shape)


def test_an_input_that_the_task_writes_is_not_expanded():
    assert [expanded_dim(IN_PLACE, spec, {}) for spec in IN_PLACE.tensors] == [None, 0]


def test_arguments_come_in_call_order_with_defaults_and_absences():
    case = replace(LOSS, absent=("weight",), attributes=())
    inputs = materialize(CROSS_ENTROPY, case)
    assert inputs.order == ("x", "target", "weight", "reduction")
    values = dict(inputs)
    assert list(values) == list(inputs.order)
    assert values["weight"] is None
    assert values["reduction"] == "mean"
    assert values["target"].dtype == torch.int64
    assert "weight" not in inputs.digests()


def test_shapes_follow_expressions_of_dims_and_attributes():
    dims = (("B", 2), ("C", 6), ("H", 5), ("W", 4), ("O", 4), ("K", 3))
    case = Case(task="conv", dims=dims, attributes=(("groups", 2), ("stride", 1)))
    inputs = materialize(CONV, case)
    assert inputs.tensors["weight"].shape == (4, 3, 3, 3)


def test_literals_replace_the_recipe():
    case = replace(CASE, dims=(("M", 1), ("N", 3)), literals=(("x", (1.0, math.nan, -math.inf)),))
    assert str(materialize(RELU, case).tensors["x"].tolist()) == "[[1.0, nan, -inf]]"


def test_literals_of_the_wrong_number_are_refused():
    with pytest.raises(InternalError, match="x: 1 literal values"):
        materialize(RELU, replace(CASE, literals=(("x", (1.0,)),)))


@pytest.mark.parametrize(
    "wrong",
    [
        replace(CASE, task="other"),
        replace(CASE, absent=("x",)),
        replace(CASE, literals=(("y", (1.0,)),)),
        replace(CASE, recipe="no such"),
        replace(CASE, layout="no such"),
    ],
)
def test_a_case_that_does_not_fit_the_task_is_refused(wrong):
    with pytest.raises(InternalError):
        materialize(RELU, wrong)


def test_a_zero_size_case_has_empty_tensors():
    inputs = materialize(RELU, replace(CASE, dims=(("M", 0), ("N", 5))))
    assert inputs.tensors["x"].shape == (0, 5)
    assert inputs.digests()["x"].startswith("e3b0c442")


def test_the_benchmark_case_has_the_declared_shape_and_distribution():
    case = benchmark_case(RELU, 1, "float16")
    assert case.sizes == {"M": 16, "N": 256}
    assert (case.recipe, case.dtype, case.strategy, case.domain) == (
        "uniform01",
        "float16",
        "benchmark",
        "core",
    )
    assert benchmark_case(RELU, 1, "float16", "normal").recipe == "normal"
    assert benchmark_case(RELU, 1, "float16", index=1).seed != case.seed


def test_attributes_that_a_case_leaves_out_take_their_defaults():
    case = Case(task="rms_norm", dims=(("M", 2), ("N", 3)))
    assert materialize(RMS_NORM, case).scalars == {"eps": 1e-6}
