"""An observation becomes what a peer's check would see of it."""

import pytest
import torch

from kerneltruth.peers import NoAnswer, answer
from kerneltruth.runner.observation import Observation, OtherResult, TensorResult


def result(values, dtype="float32", alias=None):
    tensor = torch.tensor(values, dtype=getattr(torch, dtype))
    return TensorResult(
        dtype=dtype,
        shape=tuple(tensor.shape),
        strides=(1,),
        device="cpu",
        data=tensor.view(torch.uint8).numpy().tobytes(),
        alias=alias,
    )


def test_results_become_tensors_in_order():
    got = answer(Observation(ended="returned", results=(result([1.0, 2.0]), result([3], "int32"))))
    assert [t.tolist() for t in got] == [[1.0, 2.0], [3]]
    assert [t.dtype for t in got] == [torch.float32, torch.int32]


def test_guards_aliases_and_overwritten_inputs_are_not_looked_at():
    seen = Observation(
        ended="returned",
        results=(result([1.0], alias="x"),),
        guards_hit=("out",),
        buffers={"x": b"overwritten"},
    )
    assert answer(seen)[0].tolist() == [1.0]


@pytest.mark.parametrize(
    ("ended", "becomes"),
    [
        ("raised", "raised"),
        ("load_failed", "raised"),
        ("compile_failed", "raised"),
        ("died", "died"),
        ("flooded", "died"),
        ("timeout", "timeout"),
        ("unsupported", "unsupported"),
        ("lost", "unsupported"),
    ],
)
def test_what_did_not_return_is_no_answer(ended, becomes):
    assert answer(Observation(ended=ended)) == NoAnswer(ended=becomes, detail=ended)


def test_the_first_line_of_an_error_is_its_detail():
    seen = Observation(ended="raised", error="ValueError", message="no\ntrace")
    assert answer(seen) == NoAnswer(ended="raised", detail="ValueError: no")


def test_a_result_that_is_no_tensor_is_no_answer():
    seen = Observation(ended="returned", results=(OtherResult(type="float", text="1.0"),))
    assert answer(seen) == NoAnswer(ended="raised", detail="returned a float, not a tensor")


def test_an_in_place_kernel_answers_with_its_input():
    after = torch.ones(2)
    assert answer(Observation(ended="returned"), (after,)) == (after,)
