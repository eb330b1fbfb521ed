"""Triton candidates in real children: in the interpreter, and compiled without a device."""

import struct
import textwrap

import pytest

from kerneltruth.runner.arguments import TensorArgument
from kerneltruth.runner.candidate import read_candidate

POISON = b"0123456789abcdef"

KERNEL = """
import torch
import triton
import triton.language as tl

{decorator}
@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    tl.store(y + i, {expression}, mask={mask})

def f(x):
    assert x.is_cuda
    y = torch.empty_like(x)
    kernel[lambda m: (triton.cdiv(x.numel(), m["BLOCK"]),)](x, y, x.numel(){block})
    return y
"""


def source(expression="tl.maximum(v, 0.0)", mask="i < n", decorator="", block=", BLOCK=16"):
    return KERNEL.format(expression=expression, mask=mask, decorator=decorator, block=block)


def vector(*values):
    buffer = struct.pack(f"<{len(values)}f", *values)
    return TensorArgument(
        name="x", dtype="float32", shape=(len(values),), strides=(1,), offset=0, buffer=buffer
    )


@pytest.fixture
def call_source(runner, monkeypatch):
    monkeypatch.setattr(runner, "targets", ("sm_90",))

    def call(text, *values, mode="run", config=0):
        candidate = read_candidate(textwrap.dedent(text), "f.py", task_names=("f",))
        with runner.open(candidate, mode) as session:
            return session.call([vector(*values)], poison=POISON, config=config, deadline_s=60)

    return call


def test_a_kernel_runs_in_the_interpreter(call_source):
    observation = call_source(source(), *[float(i - 8) for i in range(20)])
    (result,) = observation.results
    assert struct.unpack("<20f", result.data) == (*[0.0] * 9, *[float(i) for i in range(1, 12)])
    assert (result.device, observation.guards_hit) == ("cuda:0", ())
    (launch,) = observation.launches
    assert (launch.kernel, launch.grid, launch.constants) == ("kernel", (2,), {"BLOCK": 16})


def test_a_store_without_a_mask_is_seen_and_not_performed(call_source):
    observation = call_source(source(mask="i >= 0"), *[1.0] * 20)
    (access,) = observation.accesses
    assert (access.buffer, access.element, access.elements) == ("float32[20] #0", 20, 20)
    assert observation.guards_hit == ()


def test_a_result_left_on_the_host_says_so(call_source):
    observation = call_source(source().replace("return y", "return y.cpu()"), 1.0)
    assert observation.results[0].device == "cpu"


def test_an_autotuned_kernel_takes_the_configuration_that_the_judge_names(call_source):
    configs = '@triton.autotune([triton.Config({"BLOCK": 8}), triton.Config({"BLOCK": 32})], ["n"])'
    for config, size in ((0, 8), (1, 32), (2, 8)):
        observation = call_source(source(decorator=configs, block=""), 1.0, config=config)
        assert {(x.constants["BLOCK"], x.configs) for x in observation.launches} == {(size, 2)}


def test_an_unknown_operation_is_raised_in_the_interpreter(call_source):
    observation = call_source(source("tl.no_such_thing(v)"), 1.0)
    assert (observation.ended, observation.error) == ("raised", "AttributeError")
    assert "no_such_thing" in observation.message


def test_a_kernel_is_compiled_for_the_target_without_a_device(call_source):
    observation = call_source(source(), 1.0, mode="compile")
    assert (observation.ended, observation.results) == ("returned", ())
    (binary,) = observation.binaries
    assert (binary.kernel, binary.target, binary.ok) == ("kernel", "sm_90", True)


def test_a_source_without_triton_is_not_compiled_without_a_device(call_source):
    observation = call_source("def f(x): return x", 1.0, mode="compile")
    assert observation.ended == "unsupported"
    assert observation.message == "only Triton compiles without running: torch"


def test_an_unknown_operation_does_not_compile(call_source):
    observation = call_source(source("tl.no_such_thing(v)"), 1.0, mode="compile")
    assert (observation.ended, observation.error) == ("compile_failed", "CompilationError")
    assert "no_such_thing" in observation.message
