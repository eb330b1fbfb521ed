"""CUDA, Triton and PyTorch's compilers work in a contained child, and reach nothing else."""

import textwrap

import pytest
import torch

from kerneltruth.runner.arguments import ScalarArgument
from kerneltruth.runner.candidate import read_candidate
from kerneltruth.runner.containment import LEVELS, levels
from kerneltruth.runner.host import Runner

pytestmark = pytest.mark.gpu

POISON = b"0123456789abcdef"
PLAIN = """
import torch
def f():
    x = torch.arange(1024, device="cuda", dtype=torch.float32)
    return float((x @ x).item())
"""
STREAMS = """
import torch
def f():
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        x = torch.ones(1 << 20, device="cuda").cumsum(0)
    pinned = torch.empty(1 << 20, pin_memory=True)
    pinned.copy_(x, non_blocking=True)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = x * 2
    graph.replay()
    return float(pinned[-1]), float(y[-1])
"""
TRITON = """
import torch, triton, triton.language as tl

@triton.jit
def twice(X, Y, N, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(Y + at, tl.load(X + at, at < N) * 2, at < N)

def f():
    x = torch.ones(1000, device="cuda")
    y = torch.empty_like(x)
    twice[(4,)](x, y, 1000, BLOCK=256)
    return float(y.sum())
"""
COMPILED = """
import torch
def f():
    return float(torch.compile(lambda x: (x.sin() + 1).sum())(torch.zeros(999, device="cuda")))
"""
INLINE = '''
import torch
from torch.utils.cpp_extension import load_inline

module = load_inline(
    name="plus_one",
    cpp_sources="torch::Tensor plus_one(torch::Tensor x);",
    cuda_sources="""
    __global__ void kernel(float* x, int n) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) x[i] += 1;
    }
    torch::Tensor plus_one(torch::Tensor x) {
        auto y = x.clone();
        kernel<<<(y.numel() + 255) / 256, 256>>>(y.data_ptr<float>(), y.numel());
        return y;
    }
    """,
    functions=["plus_one"],
)

def f():
    return float(module.plus_one(torch.ones(10, device="cuda")).sum())
'''
OUTSIDE = """
import os, socket, torch
def f(judge, secret):
    torch.zeros(1, device="cuda")
    done = []
    attacks = {
        "read": lambda: open(secret).close(),
        "command line": lambda: open(f"/proc/{judge}/cmdline").close(),
        "memory": lambda: open(f"/proc/{judge}/mem").close(),
        "inet": lambda: socket.socket().close(),
        "connect": lambda: socket.socket(socket.AF_UNIX).connect("/dev/log"),
        "signal": lambda: os.kill(judge, 0),
    }
    for name, attack in attacks.items():
        try:
            attack()
            done.append(name)
        except OSError:
            pass
    return repr(done)
"""


def offered_levels():
    here = levels.on_cuda(levels.offered())
    return LEVELS[: LEVELS.index(here.level) + 1]


def read(source):
    return read_candidate(textwrap.dedent(source), "f.py", task_names=("f",), task="f")


@pytest.fixture(scope="module", params=LEVELS)
def contained(request, tmp_path_factory):
    if request.param not in offered_levels():
        pytest.skip(f"no isolation {request.param!r} here: {levels.offered().limited_by}")
    cache = tmp_path_factory.mktemp("cache")
    with Runner(device="cuda:0", isolation=request.param, cache_root=cache) as runner:
        yield runner


@pytest.mark.parametrize(
    ("source", "values"),
    [
        (PLAIN, ["357389824.0"]),
        (STREAMS, ["1048576.0", "2097152.0"]),
        (TRITON, ["2000.0"]),
        (COMPILED, ["999.0"]),
    ],
    ids=["plain", "streams", "triton", "compiled"],
)
def test_what_kernels_need_works_under_every_level(contained, source, values):
    # The second child finds what the first has compiled.
    for _ in range(2):
        with contained.open(read(source)) as session:
            seen = session.call((), poison=POISON, deadline_s=300.0)
        assert seen.ended == "returned", seen
        got = [float(result.text) for result in seen.results]
        assert got == pytest.approx([float(value) for value in values], rel=1e-3)


def test_cuda_sources_are_built_under_every_level(contained):
    from torch.utils import cpp_extension

    if cpp_extension.CUDA_HOME is None:
        pytest.skip("nvcc is not installed")
    with contained.open(read(INLINE)) as session:
        seen = session.call((), poison=POISON, deadline_s=300.0)
    assert seen.ended == "returned", seen
    assert seen.results[0].text == "20.0"


def test_a_contained_child_with_a_device_reaches_nothing_else(tmp_path):
    import os

    if "strict" not in offered_levels():
        pytest.skip(f"no isolation 'strict' here: {levels.offered().limited_by}")
    secret = tmp_path / "results.jsonl"
    secret.write_text("x")
    given = (
        ScalarArgument(name="judge", value=os.getpid()),
        ScalarArgument(name="secret", value=str(secret)),
    )
    with Runner(device="cuda:0") as runner, runner.open(read(OUTSIDE)) as session:
        seen = session.call(given, poison=POISON)
    assert seen.ended == "returned", seen
    assert seen.results[0].text == repr("[]")
    assert torch.cuda.is_available()
