"""The library beside a caller that uses the GPU itself, on one device and on all."""

import subprocess
import sys

import pytest
import torch
from softmax_kernel import KERNEL

import kerneltruth as kt

pytestmark = pytest.mark.gpu

TRITON = f"""
import torch, triton
import triton.language as tl

{KERNEL}
def softmax(input, dim=-1):
    out = torch.empty_like(input)
    kernel[(input.shape[0],)](input, out, input.shape[1], triton.next_power_of_2(input.shape[1]))
    return out
"""
WRONG = TRITON.replace("return out", "return out * 1.01")
OPTIONS = {"task": "kernelbenchx/softmax", "contract": "published", "cases": 8}


@pytest.fixture(scope="module")
def judge():
    with kt.Judge(device="cuda:0", workers=2) as made:
        yield made


def test_a_caller_that_trains_on_the_device_goes_on_as_before(judge):
    weights = torch.randn(512, 512, device="cuda:0", requires_grad=True)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        loss = (weights @ weights).square().mean()
        held = torch.cuda.memory_allocated()
        report = judge.check(TRITON, **OPTIONS)
        assert torch.cuda.memory_allocated() == held
        loss.backward()
    stream.synchronize()

    assert report.passed, report
    assert weights.grad.isfinite().all()


def test_a_wrong_kernel_has_a_script_that_shows_it_on_the_device(judge, tmp_path):
    found = judge.check(WRONG, **OPTIONS).findings[0]
    path = tmp_path / "shows.py"
    path.write_text(found.script)
    ran = subprocess.run([sys.executable, path], capture_output=True, text=True, check=False)

    assert ran.returncode == 1, ran.stderr


def test_a_kernel_is_timed_against_eager_and_compiled_pytorch(judge):
    timing = judge.time(TRITON, task="kernelbenchx/softmax", against=("eager", "compile"))

    for shape in timing.shapes:
        assert shape.candidate_us > 0
        assert {*shape.baselines} == {"eager", "compile"}, shape.baselines_failed


def test_checks_wait_for_what_is_timed_and_go_on_after_it(judge):
    reports = judge.check_many([("right", TRITON), ("wrong", WRONG)], **OPTIONS)
    judge.time(TRITON, task="kernelbenchx/softmax", against=("eager",), budget=0.5)

    assert {r.name: r.passed for r in reports} == {"right": True, "wrong": False}


def test_all_devices_judge_side_by_side():
    with kt.Judge(device="cuda:all", workers=2) as judge:
        reports = list(judge.check_many([TRITON] * 4 * torch.cuda.device_count(), **OPTIONS))

    assert all(report.passed for report in reports)
