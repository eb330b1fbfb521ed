"""Every task's timed results are graded on another device as on the CPU, and PyTorch's are right.

A formula or claim that makes a tensor without saying where is right on the CPU and raises beside
tensors of a GPU: a right kernel was `wrong` when it was timed.
"""

import pytest
import torch
from elsewhere import NAME, Elsewhere, second_device

from kerneltruth.cases.materialize import benchmark_case
from kerneltruth.cases.philox import stream
from kerneltruth.clock.protocol.inputs import make_bench_inputs
from kerneltruth.documents.verdict import Passed
from kerneltruth.oracle.expectation_builder import expect_timed
from kerneltruth.oracle.grading import grade
from kerneltruth.runner.child.worker import Worker
from kerneltruth.runner.protocol import Load
from kerneltruth.runner.timing.messages import AllocateBuffers, PrepareInputs, RunBatch, ShowResult
from kerneltruth.suites.pytorch import eager_of
from kerneltruth.tasks.registry import eager_modules, find

pytestmark = pytest.mark.sweep

SUITES = ("core", "kernelbenchx", "tritonbench")
KEYS = [key for suite in SUITES for key in eager_modules(suite)]


def timed_call(task, case, inputs, choices, folder, monkeypatch):
    """What PyTorch's own function gives in a timed call, made in this process."""
    monkeypatch.chdir(folder)
    source = eager_of(task)
    worker = Worker(
        Load(
            source=source.source,
            filename="eager.py",
            language="torch",
            entry=source.entry,
            device="cpu",
            mode="time",
        )
    )
    assert worker.load().ended == "returned"
    refill = inputs.refill([0], inputs.given([choices]))
    for message in (
        PrepareInputs(arguments=inputs.arguments),
        AllocateBuffers(count=1),
        refill,
        RunBatch(buffers=(0,)),
    ):
        seen = worker.time(message)
        assert seen.ended == "returned", seen
    return worker.time(ShowResult())


@pytest.mark.slow
@pytest.mark.parametrize("key", KEYS)
def test_what_a_timed_call_of_pytorch_gives_is_right_on_another_device(key, tmp_path, monkeypatch):
    task = find(key)
    case = benchmark_case(task, 0, task.dtypes[0])
    inputs = make_bench_inputs(task, case)
    choices = inputs.draw(stream(1, "known", key), 1)[0]
    seen = timed_call(task, case, inputs, choices, tmp_path, monkeypatch)
    drawn = inputs.at(task, case, choices)
    with second_device():
        expectation = expect_timed(task, case, drawn, device=NAME)
        there = grade(task, expectation, seen)
    assert isinstance(there, Passed), there


@pytest.mark.parametrize("name", ["fused_fractional_max_pool2d_with_relu", "bmm_w8a8"])
def test_what_is_kept_of_one_device_serves_another(name, tmp_path, monkeypatch):
    task = find(f"kernelbenchx/{name}")
    case = benchmark_case(task, 0, task.dtypes[0])
    inputs = make_bench_inputs(task, case)
    choices = inputs.draw(stream(1, "known", task.key), 1)[0]
    seen = timed_call(task, case, inputs, choices, tmp_path, monkeypatch)
    drawn = inputs.at(task, case, choices)
    here = grade(task, expect_timed(task, case, drawn, device="cpu"), seen)
    with second_device():
        there = grade(task, expect_timed(task, case, drawn, device=NAME), seen)
    assert here == there == Passed()


def test_a_second_device_refuses_tensors_of_the_first():
    with second_device():
        there = torch.ones(3, device=NAME)
        assert isinstance(there, Elsewhere)
        with pytest.raises(RuntimeError, match="same device"):
            there + torch.ones(3)
        chance = torch.Generator()
        with pytest.raises(RuntimeError, match="generator"):
            torch.rand(3, device=NAME, generator=chance)
        assert (there + torch.tensor(1.0)).tolist() == [2.0, 2.0, 2.0]
        assert (there.cpu() + torch.ones(3)).tolist() == [2.0, 2.0, 2.0]
