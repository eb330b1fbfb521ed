"""Problems of KernelBench on the clock: their references answer from processes on the CPU."""

from dataclasses import replace

import pytest

from kerneltruth.clock.protocol.effort import Effort
from kerneltruth.engine.benchmark.baselines import baseline_sources
from kerneltruth.engine.benchmark.benchmarker import Benchmarker
from kerneltruth.engine.benchmark.machine import Machine
from kerneltruth.runner.candidate import read_candidate
from kerneltruth.runner.host import Runner
from kerneltruth.suites.catalog import opened
from kerneltruth.tasks.registry import find

pytestmark = pytest.mark.gpu

DEVICE = "cuda:0"
EFFORT = Effort(blocks=(8, 16), budget_s=1.0, memory_bytes=2**31, deadline_s=120.0)
MODEL = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self, features, outputs):
        super().__init__()
        self.layer = nn.Linear(features, outputs)

    def forward(self, x):
        return torch.relu(self.layer(x))

rows = 2048
features = 1024
outputs = 512

def get_inputs():
    return [torch.rand(rows, features)]

def get_init_inputs():
    return [features, outputs]
"""
SAME = MODEL.replace("class Model(", "class ModelNew(")
STOPS = SAME.replace(
    "        return",
    "        self.calls = getattr(self, 'calls', 0) + 1\n"
    "        if self.calls > 12:\n"
    "            return torch.zeros(len(x), self.layer.out_features, device=x.device)\n"
    "        return",
)


@pytest.fixture(scope="module")
def timed(tmp_path_factory):
    """The document of a candidate of the problem above."""
    folder = tmp_path_factory.mktemp("problems")
    (folder / "level1").mkdir()
    (folder / "level1" / "1_Linear.py").write_text(MODEL)
    with Runner(device=DEVICE) as runner, opened(f"kernelbench:{folder}"):
        task = find("kernelbench/level1/1")
        # The largest: the one that the file has.
        task = replace(task, perf=task.perf[-1:])
        benchmarker = Benchmarker(
            runner,
            machine=Machine(device=DEVICE),
            seed=5,
            baselines=("eager",),
            effort=EFFORT,
            sources=baseline_sources,
        )

        def time_one(source):
            candidate = read_candidate(source, "new.py", task_names=(task.name,), task=task.name)
            return benchmarker.time(task, candidate)

        yield time_one
        benchmarker.close()


def test_a_right_model_is_graded_and_timed(timed):
    document = timed(SAME)
    (shape,) = document.shapes
    assert (document.outcome, shape.graded.wrong) == ("timed", ())
    assert shape.graded.calls > 8
    assert "not_graded" not in shape.flags


def test_a_model_that_stops_working_is_wrong(timed):
    assert timed(STOPS).outcome == "wrong"
