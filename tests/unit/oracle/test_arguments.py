"""Arguments: every case's inputs in memory as its layout says, and laid out once."""

import torch
from scripted import RELU, case_of, declare, tensor_in

from kerneltruth.cases.materialize import materialize
from kerneltruth.oracle.arguments import (
    INPUT_GUARD_BYTES,
    Layouts,
    Surroundings,
    lay_out,
    poison_of,
)


def laid(declared, case, **more):
    return lay_out(declared, case, materialize(declared, case), **more)


def test_arguments_come_in_the_order_of_the_signature():
    declared = declare("f(x[M, N], eps=1.0, y[M, N]?)", lambda x, y, eps: x)
    case = case_of(declared, attributes=(("eps", 2.0),), absent=("y",))
    x, eps, y = laid(declared, case).arguments
    assert (x.name, eps.name, y.name) == ("x", "eps", "y")
    assert (eps.value, eps.default) == (2.0, 1.0)
    assert y.value is None


def test_a_tensor_holds_the_inputs_behind_a_wide_guard():
    case = case_of(RELU, layout="transposed")
    found = laid(RELU, case)
    (argument,) = found.arguments
    assert argument.strides == (1, 3)
    assert argument.offset * 4 == INPUT_GUARD_BYTES
    assert torch.equal(tensor_in(argument), found.inputs.tensors["x"])


def test_other_guards_change_the_guards_and_no_element():
    case = case_of(RELU)
    one, other = (
        laid(RELU, case, around=Surroundings(small_guards=small)).arguments[0]
        for small in (False, True)
    )
    assert torch.equal(tensor_in(one), tensor_in(other))
    wild, small = (torch.frombuffer(bytearray(a.buffer), dtype=torch.float32) for a in (one, other))
    band = INPUT_GUARD_BYTES // 4
    assert not (wild[:band] == small[:band]).any()
    assert ((small[:band].abs() >= 1) & (small[:band].abs() < 2)).all()


def test_poison_differs_by_case_and_by_call():
    case, other = case_of(RELU), case_of(RELU, seed=4)
    assert len({poison_of(case, 0), poison_of(case, 1), poison_of(other, 0)}) == 3
    assert len(poison_of(case, 0)) == 16


def test_the_same_inputs_are_laid_out_once():
    layouts, case = Layouts(), case_of(RELU)
    inputs = materialize(RELU, case)
    found = layouts.of(RELU, case, inputs)
    assert layouts.of(RELU, case, inputs) is found
    assert layouts.of(RELU, case, inputs, Surroundings(small_guards=True)) is not found


def test_other_inputs_of_the_same_case_are_laid_out_anew():
    layouts, case = Layouts(), case_of(RELU)
    found = layouts.of(RELU, case, materialize(RELU, case))
    assert layouts.of(RELU, case, materialize(RELU, case)) is not found


def test_forty_mebibytes_of_small_inputs_are_kept_together():
    """As much as two rounds over the sixty tasks of a suite come to."""
    layouts, case = Layouts(), case_of(RELU)
    inputs = [materialize(RELU, case) for _ in range(1300)]
    found = [layouts.of(RELU, case, each) for each in inputs]
    assert 40 * 2**20 < sum(laid.bytes() + 4096 for laid in found) < 64 * 2**20
    assert layouts.of(RELU, case, inputs[0]) is found[0]


def test_large_inputs_are_not_kept():
    layouts, case = Layouts(limit_bytes=100), case_of(RELU)
    inputs = materialize(RELU, case)
    found = layouts.of(RELU, case, inputs)
    assert layouts.of(RELU, case, inputs) is not found
    assert layouts.of(RELU, case, inputs).arguments == found.arguments
