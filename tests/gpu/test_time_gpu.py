"""What only a CUDA device can show of the clock: graphs, and times that are not believed."""

from dataclasses import replace

import pytest
import torch
from softmax_kernel import KERNEL

from kerneltruth.clock.protocol.effort import Effort
from kerneltruth.engine.benchmark.baselines import baseline_sources
from kerneltruth.engine.benchmark.benchmarker import Benchmarker
from kerneltruth.engine.benchmark.machine import Machine
from kerneltruth.engine.benchmark.setup import TimingSetup
from kerneltruth.runner.candidate import read_candidate
from kerneltruth.runner.host import Runner
from kerneltruth.runner.timing.input_buffers import InputBuffers
from kerneltruth.runner.timing.messages import Supply
from kerneltruth.tasks.registry import find

pytestmark = pytest.mark.gpu

TASK = replace(find("kernelbenchx/softmax"), perf=({"M": 1024, "N": 1024},))
EFFORT = Effort(blocks=(8, 16), budget_s=1.0, memory_bytes=2**31, deadline_s=120.0)

TRITON = f"""
import torch, triton
import triton.language as tl

{KERNEL}
def softmax(input, dim=-1):
    out = torch.empty_like(input)
    kernel[(input.shape[0],)](input, out, input.shape[1], triton.next_power_of_2(input.shape[1]))
    return out
"""
HONEST = "import torch\ndef softmax(input, dim=-1):\n    return torch.softmax(input, dim)\n"
PATCHED = (
    """
import torch
from kerneltruth.runner.timing import timed_worker
elapsed = timed_worker._elapsed
timed_worker._elapsed = lambda before, after: elapsed(before, after) / 10
"""
    + HONEST
)
UNWRITTEN = "import torch\ndef softmax(input, dim=-1):\n    return torch.empty_like(input)\n"
CACHED = """
import torch
known = {}
def softmax(input, dim=-1):
    # A graph would compute afresh whatever was computed while it was captured.
    torch.cuda.synchronize()
    if input.data_ptr() not in known:
        known[input.data_ptr()] = torch.softmax(input, dim)
    return known[input.data_ptr()]
"""
LEAVES_OUT = """
import random, torch
def softmax(input, dim=-1):
    out = torch.empty_like(input)
    return out if random.random() < 0.1 else torch.softmax(input, dim, out=out)
"""
LAST_OF_GRAPHS = """
import torch
calls = 0
def softmax(input, dim=-1):
    global calls
    out = torch.empty_like(input)
    if not torch.cuda.is_current_stream_capturing():
        calls = 0
        return torch.softmax(input, dim, out=out)
    calls += 1
    size = max((input._base.shape[0] - 4) // 9, 1)
    return out if calls % size else torch.softmax(input, dim, out=out)
"""
WAITS = """
import torch
def softmax(input, dim=-1):
    out = torch.softmax(input, dim)
    torch.cuda.synchronize()
    return out
"""
AHEAD = """
import torch
early = torch.cuda.Stream()
def softmax(input, dim=-1):
    if torch.cuda.is_current_stream_capturing():
        raise RuntimeError("not in a graph")
    with torch.cuda.stream(early):
        out = torch.softmax(input, dim)
    torch.cuda.current_stream().wait_stream(early)
    return out
"""
JOINED = AHEAD.replace("    with", "    early.wait_stream(torch.cuda.current_stream())\n    with")
SLOW_HOST = """
import time, torch
def softmax(input, dim=-1):
    if torch.cuda.is_current_stream_capturing():
        raise RuntimeError("not in a graph")
    began = time.perf_counter()
    while time.perf_counter() < began + 2e-4:
        pass
    return torch.softmax(input, dim)
"""


# What it returns computes itself when it is read, after the clock has stopped.
LATE = """
import torch
class Late(tuple):
    def __iter__(self):
        return iter((torch.softmax(tuple.__getitem__(self, 0), -1),))
def softmax(input, dim=-1):
    return Late((input,))
"""


@pytest.fixture(scope="module")
def benchmarker():
    with Runner(device="cuda:0") as runner:
        benchmarker = Benchmarker(
            runner,
            machine=Machine(device="cuda:0"),
            seed=5,
            baselines=("eager",),
            effort=EFFORT,
            sources=baseline_sources,
        )
        yield benchmarker
        benchmarker.close()


@pytest.fixture
def timed(benchmarker):
    """A candidate's document, and that of its one shape against eager."""

    def time_one(source, shape=None):
        task = TASK if shape is None else replace(TASK, perf=(shape,))
        candidate = read_candidate(source, "softmax.py", task_names=("softmax",), task="softmax")
        document = benchmarker.time(task, candidate)
        (found,) = document.shapes
        assert {"M": 1024, "N": 1024} | (shape or {}) == dict(found.case.dims)
        return document, found, found.baselines["eager"]

    return time_one


def test_a_triton_kernel_is_timed_in_graphs(timed):
    document, shape, eager = timed(TRITON)
    assert document.outcome == "timed"
    assert (shape.method, shape.regime) == ("graph", "cold")
    assert shape.graded.wrong == ()
    # In graphs, too, calls are sampled.
    assert shape.graded.calls > 32
    assert eager.low <= eager.ratio <= eager.high


def test_eager_against_itself_is_not_faster(timed):
    document, _, eager = timed(HONEST)
    assert document.outcome == "timed"
    assert 0.8 < eager.ratio < 1.25


def test_events_that_were_patched_are_suspect_and_bring_nothing(timed):
    document, shape, eager = timed(PATCHED)
    assert document.outcome == "timing_suspect"
    assert "timing_suspect" in shape.flags
    assert eager.outcome != "faster"
    assert eager.ratio < 1.5


@pytest.mark.parametrize(
    "source",
    [UNWRITTEN, CACHED, LEAVES_OUT, LAST_OF_GRAPHS, LATE],
    ids=["unwritten", "cached", "leaves out", "last of graphs", "late"],
)
def test_work_that_was_not_done_is_wrong(timed, source):
    document, shape, eager = timed(source)
    assert document.outcome == "wrong"
    assert shape.graded.wrong
    assert eager.outcome != "faster"


def test_a_call_on_an_unsynchronized_stream_computes_noise(timed, monkeypatch):
    # Calls that are sampled would show it too, but not those of all tasks are.
    monkeypatch.setattr(TimingSetup, "elements", lambda setup: ())
    document, shape, eager = timed(AHEAD)
    assert document.outcome == "wrong"
    assert eager.outcome != "faster"
    document, shape, eager = timed(JOINED)
    assert (document.outcome, shape.method) == ("timed", "calls")
    assert eager.outcome != "faster"


def test_a_kernel_that_cannot_be_captured_is_timed_by_calls(timed):
    document, shape, _ = timed(WAITS)
    assert document.outcome == "timed"
    assert shape.method == "calls"
    assert shape.not_captured


def test_a_peak_of_memory_is_seen(timed):
    document, _, _ = timed(TRITON)
    assert document.peak_bytes >= 4 * 1024 * 1024


def test_a_slow_host_is_not_timed(timed):
    document, shape, eager = timed(SLOW_HOST, {"M": 4096, "N": 4096})
    assert (document.outcome, shape.method) == ("timed", "calls")
    # The host takes more than three times as long as a call of 60 us.
    assert document.launch_us > 200
    assert 0.9 < eager.ratio < 1.1


def test_where_memory_holds_few_inputs_calls_are_made_one_by_one(timed):
    """In graphs of a single call they scatter twice as much."""
    document, shape, _ = timed(TRITON, {"M": 8192, "N": 4096})
    assert (document.outcome, shape.method) == ("timed", "calls")
    # It is not that it takes too long for graphs.
    assert "memory holds" in shape.not_captured
    assert shape.graded.wrong == ()
    assert shape.graded.calls >= 8


def test_baselines_that_wait_give_the_memory_of_their_rows_back(timed, benchmarker):
    _, before, _ = timed(HONEST)
    task_baselines = benchmarker.baseline_cache.begin(TASK)
    held = torch.cuda.mem_get_info()[0]
    task_baselines.park()
    assert torch.cuda.mem_get_info()[0] - held > 2**30
    # And are timed as before when it is their turn again.
    _, after, eager = timed(HONEST)
    assert after.method == before.method == "graph"
    assert 0.97 < eager.ratio < 1.03


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_large_rows_hold_the_bits_that_the_judge_expects(dtype):
    count = 2**22
    pool = torch.randn(count + 999, dtype=torch.float64).to(dtype)
    supply = Supply(
        name="x", dtype=str(dtype).removeprefix("torch."), shape=(count,), pool=b"", shown=False
    )
    held = InputBuffers(supply=supply, pool=pool.cuda())
    held.make(2)
    held.refill((1, 0), (0, 999), (33 / 64, 61 / 64))
    for buffer, start, factor in ((1, 0, 33 / 64), (0, 999, 61 / 64)):
        expected = pool[start : start + count] * torch.tensor(factor, dtype=dtype)
        assert torch.equal(held.buffer(buffer).cpu(), expected)
