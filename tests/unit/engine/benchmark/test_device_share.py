"""Shares of the device's time, of what a child has seen."""

import pytest

from kerneltruth.clock.schedule.timed_cases import timed_cases
from kerneltruth.engine.benchmark.device_share import NAMELESS, NOTHING, share_of
from kerneltruth.engine.requests import TimeRequest
from kerneltruth.engine.start import run
from kerneltruth.errors import EnvironmentFault
from kerneltruth.report.kernel_words import shares
from kerneltruth.runner.protocol import KernelRun, KernelWork, Observation
from kerneltruth.tasks.registry import find

CASE = timed_cases(find("relu"))[0]
MM = KernelRun(name="ampere_sgemm", module="library", own=False, launches=1, device_s=97e-6)
BIAS = KernelRun(name="bias_relu", module="", own=True, launches=1, device_s=3e-6)


def seen(*runs, **more):
    return Observation(ended="returned", work=KernelWork(runs=runs, **more))


@pytest.mark.parametrize(
    ("runs", "line"),
    [
        (
            (MM, BIAS),
            "library 97%, own 3% of the device's time (ampere_sgemm 97%, bias_relu 3%)",
        ),
        ((BIAS,), "own 100% of the device's time (bias_relu 100%)"),
        ((MM,), "no kernel of its own (ampere_sgemm 100%)"),
    ],
)
def test_a_line_says_whose_kernels_take_the_time(runs, line):
    assert shares(share_of(seen(*runs), CASE)) == f"{CASE.summary()}: {line}"


@pytest.mark.parametrize(
    ("observation", "reason"),
    [
        (seen(), NOTHING),
        (seen(MM, BIAS, seen=False), NAMELESS),
        (Observation(ended="raised", message="boom"), "boom"),
        (Observation(ended="timeout"), "the call ended: timeout"),
    ],
)
def test_what_is_not_known_is_said(observation, reason):
    share = share_of(observation, CASE)
    assert (share.own, share.library, share.reason) == (None, None, reason)
    assert reason in shares(share)


def test_without_a_gpu_there_are_no_shares(tmp_path):
    file = tmp_path / "relu.py"
    file.write_text("import torch\ndef relu(x):\n    return torch.relu(x)\n")
    options = TimeRequest(file=file, task="relu", device="cpu", kernels=True)
    with pytest.raises(EnvironmentFault, match="need a GPU"):
        list(run(options))
