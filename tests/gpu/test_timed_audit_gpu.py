"""The clock against itself, and baselines that are none, on a CUDA device."""

import json
import subprocess
import sys
from dataclasses import replace

import pytest

from kerneltruth.clock.protocol.effort import Effort
from kerneltruth.engine.benchmark.benchmarker import Benchmarker
from kerneltruth.engine.benchmark.machine import known_machine
from kerneltruth.runner.candidate import read_candidate
from kerneltruth.runner.host import Runner
from kerneltruth.tasks.registry import find

pytestmark = pytest.mark.gpu

TASK = replace(find("kernelbenchx/softmax"), perf=({"M": 1024, "N": 1024},))
HONEST = "import torch\ndef softmax(input, dim=-1):\n    return torch.softmax(input, dim)\n"
ON_THE_HOST = (
    "import torch\ndef softmax(input, dim=-1):\n    return torch.softmax(input.cpu(), dim)"
)
STEP_BY_STEP = """
import torch
def softmax(input, dim=-1):
    out = torch.empty_like(input)
    torch.cuda._sleep(2_000_000_000)
    return torch.softmax(input, dim, out=out)
"""
EFFORT = Effort(blocks=(6, 8), budget_s=0.5, memory_bytes=2**30, deadline_s=120.0)


def of(source):
    return read_candidate(source, "softmax.py", task_names=("softmax",), task="softmax")


@pytest.fixture(scope="module")
def runner():
    with Runner(device="cuda:0") as runner:
        runner.start(("time",))
        yield runner


def shape_of(runner, baseline):
    benchmarker = Benchmarker(
        runner,
        machine=known_machine(runner),
        seed=5,
        effort=EFFORT,
        baselines=("eager",),
        sources=lambda task: {"eager": of(baseline)},
    )
    try:
        (shape,) = benchmarker.time(TASK, of(HONEST)).shapes
        return shape
    finally:
        benchmarker.close(wait=True)


@pytest.mark.parametrize(
    ("baseline", "why"),
    [
        (ON_THE_HOST, "do not lie on the task's device"),
        (STEP_BY_STEP, "over 100 times"),
        (HONEST, None),
    ],
    ids=["on the host", "too long", "honest"],
)
def test_a_baseline_that_is_none_gives_no_ratio_and_says_why(runner, baseline, why):
    shape = shape_of(runner, baseline)
    if why is None:
        assert shape.baselines_failed == {}
        assert 0 < shape.baselines["eager"].efficiency < 1.5
        return
    assert shape.baselines == {}
    assert shape.baselines_failed["eager"].startswith("no valid baseline: ")
    assert why in shape.baselines_failed["eager"]


def test_pytorch_ties_with_itself():
    """Ordinary functions, two of random numbers, and one without inputs."""
    only = ("relu", "matmul", "fused_bmm_dropout_gelu", "fused_transformer_block", "logspace")
    command = [sys.executable, "-m", "kerneltruth", "audit", "--suite", "kernelbenchx", "--timed"]
    command += [word for name in only for word in ("--only", name)]
    # A command of its own, as users run it: this process has a context on the device.
    ended = subprocess.run([*command, "--json"], capture_output=True, text=True, check=False)
    document = json.loads(ended.stdout)
    assert document["other"] == []
    assert document["tie"] == document["timed"] >= 2 * len(only) - 1
    assert ended.returncode == 0
