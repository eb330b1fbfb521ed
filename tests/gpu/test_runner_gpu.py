"""What only a CUDA device can show of the runner."""

import struct

import pytest
import torch

from kerneltruth.runner.arguments import TensorArgument
from kerneltruth.runner.candidate import read_candidate
from kerneltruth.runner.child.guards import ALIGNMENT, Guard
from kerneltruth.runner.host import Runner

pytestmark = pytest.mark.gpu

POISON, OTHER = b"0123456789abcdef", b"fedcba9876543210"


def vector(*values):
    buffer = struct.pack(f"<{len(values)}f", *values)
    return TensorArgument(
        name="x", dtype="float32", shape=(len(values),), strides=(1,), offset=0, buffer=buffer
    )


@pytest.fixture(scope="module")
def runner():
    with Runner(device="cuda:0") as runner:
        yield runner


def test_allocations_on_the_device_are_poisoned_and_guarded():
    with Guard(POISON) as guard:
        tensor = torch.empty(1000, device="cuda")
        tensor.as_strided((1,), (1,), tensor.storage_offset() + 1000).zero_()
    values = tensor.double()
    assert (values.isnan() | (values.abs() > 1e37)).all()
    assert tensor.data_ptr() % ALIGNMENT == 0
    assert guard.hits() == ("float32[1000] #0, after it",)


def test_results_and_buffers_come_back_from_the_device(opened):
    session = opened("def f(x):\n    x += 1\n    return x * 2")
    seen = session.call([vector(1.0, 2.0)], poison=POISON, deadline_s=60)
    assert session.device == seen.results[0].device == "cuda:0"
    assert struct.unpack("<2f", seen.results[0].data) == (4.0, 6.0)
    assert struct.unpack("<2f", seen.buffers["x"]) == (2.0, 3.0)


def test_an_asynchronous_fault_is_raised_and_the_next_call_works(opened):
    session = opened(
        "import torch\ndef f(x):\n"
        "    if x[0] > 0:\n"
        "        return x[torch.full((1,), 10**9, device=x.device)]\n"
        "    return x + 1"
    )
    seen = session.call([vector(1.0)], poison=POISON, deadline_s=60)
    assert seen.ended in ("raised", "died")
    again = session.call([vector(-1.0)], poison=POISON, deadline_s=60)
    assert struct.unpack("<f", again.results[0].data) == (0.0,)


def test_a_triton_kernel_that_does_not_compile_is_compile_failed(opened):
    session = opened(
        "import torch, triton\nimport triton.language as tl\n"
        "@triton.jit\n"
        "def k(x): tl.store(x, tl.no_such_thing(1))\n"
        "def f(x):\n    k[(1,)](x)\n    return x"
    )
    seen = session.call([vector(1.0)], poison=POISON, deadline_s=120)
    assert (seen.ended, seen.error) == ("compile_failed", "CompilationError")


def test_access_to_the_driver_is_built_once_for_all_candidates(tmp_path):
    source = (
        "import torch, triton\nimport triton.language as tl\n\n"
        "@triton.jit\ndef k(x, y, n, B: tl.constexpr):\n"
        "    i = tl.arange(0, B)\n"
        "    tl.store(y + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)\n\n"
        "def f(x):\n    y = torch.empty_like(x)\n    k[(1,)](x, y, x.numel(), B=16)\n    return y\n"
    )
    candidate = read_candidate(source, "f.py", task_names=("f",))
    with (
        Runner(device="cuda:0", cache_root=tmp_path) as runner,
        runner.open(candidate) as session,
    ):
        seen = session.call([vector(1.0, 2.0)], poison=POISON, deadline_s=60)
    assert struct.unpack("<2f", seen.results[0].data) == (2.0, 3.0)
    assert [path.parts[len(tmp_path.parts)] for path in tmp_path.rglob("cuda_utils*")] == ["driver"]
