"""What is remembered of an operation is what it does for other data of the same types."""

import struct

import pytest

from kerneltruth.runner.arguments import ScalarArgument, TensorArgument
from kerneltruth.runner.candidate import read_candidate

HEAD = """
import torch, triton, triton.language as tl

@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, number, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    y = tl.load(y_ptr + i)
    {body}

def entry(x, y, number=0.0):
    out = torch.empty_like(x)
    kernel[(1,)](x, y, out, number, N=4)
    return out
"""


@pytest.fixture
def calling(runner):
    """Calls a kernel with this body several times in one child; gives the outputs."""

    def call(body, *inputs):
        source = HEAD.format(body=body.replace("\n", "\n    "))
        candidate = read_candidate(source, "k.py", task_names=("entry",), task="entry")
        outputs = []
        with runner.open(candidate) as session:
            for x, y, *number in inputs:
                arguments = [vector("x", x), vector("y", y)]
                arguments += [ScalarArgument(name="number", value=n) for n in number]
                seen = session.call(arguments, poison=bytes(16))
                assert seen.ended == "returned", seen
                outputs.append(struct.unpack("<4f", seen.results[0].data))
        return outputs

    return call


def vector(name, values):
    return TensorArgument(
        name=name,
        dtype="float32",
        shape=(4,),
        strides=(1,),
        offset=0,
        buffer=struct.pack("<4f", *values),
    )


A, B = (1.0, 2.0, 3.0, 4.0), (10.0, 20.0, 30.0, 40.0)


def test_a_second_call_uses_its_own_data(calling):
    got = calling("tl.store(out_ptr + i, x * 2 + y)", (A, B), (B, A), (A, B))
    assert got == [
        (12.0, 24.0, 36.0, 48.0),
        (21.0, 42.0, 63.0, 84.0),
        (12.0, 24.0, 36.0, 48.0),
    ]


def test_one_operand_twice_is_not_taken_for_two_operands_of_that_type(calling):
    body = "a = x + x\nb = x + y\ntl.store(out_ptr + i, a * 100 + b)"
    (got,) = calling(body, (A, B))
    assert got == (211.0, 422.0, 633.0, 844.0)


def test_two_operands_are_not_taken_for_one_operand_twice(calling):
    body = "a = x + y\nb = y + y\ntl.store(out_ptr + i, a * 1000 + b)"
    (got,) = calling(body, (A, B))
    assert got == (11020.0, 22040.0, 33060.0, 44080.0)


def test_constants_of_equal_value_and_other_type_are_told_apart(calling):
    body = "tl.store(out_ptr + i, (i * 3 // 2 + i * 3.0 / 2).to(tl.float32))"
    assert calling(body, (A, B)) == [(0.0, 2.5, 6.0, 8.5)]


def test_a_scalar_argument_is_data_and_no_constant(calling):
    got = calling("tl.store(out_ptr + i, x + number)", (A, B, 1.5), (A, B, 2.5))
    assert got == [(2.5, 3.5, 4.5, 5.5), (3.5, 4.5, 5.5, 6.5)]


def test_a_branch_on_data_is_taken_anew_each_time(calling):
    body = "s = tl.sum(x, axis=0)\nif s > 15:\n    x = x + 100\ntl.store(out_ptr + i, x)"
    got = calling(body, (A, B), (B, A), (A, B))
    assert [g[0] for g in got] == [1.0, 110.0, 1.0]


def test_a_loop_bound_in_memory_is_read_each_time(calling):
    body = (
        "n = tl.load(y_ptr).to(tl.int32)\nacc = x\n"
        "for _ in range(0, n):\n    acc = acc + 1\ntl.store(out_ptr + i, acc)"
    )
    got = calling(body, (A, (1.0, 0.0, 0.0, 0.0)), (A, (3.0, 0.0, 0.0, 0.0)))
    assert [g[0] for g in got] == [2.0, 4.0]


def test_a_nan_constant_stays_one(calling):
    body = "tl.store(out_ptr + i, tl.where(x > 2, float('nan'), x))"
    for got in calling(body, (A, B), (A, B)):
        assert got[:2] == (1.0, 2.0)
        assert got[2] != got[2]


def test_constants_that_plans_share_are_never_written(calling):
    body = (
        "acc = tl.zeros([N], dtype=tl.float32)\n"
        "for k in range(3):\n    acc += x\ntl.store(out_ptr + i, acc)"
    )
    got = calling(body, (A, B), (A, B))
    assert got == [(3.0, 6.0, 9.0, 12.0)] * 2
