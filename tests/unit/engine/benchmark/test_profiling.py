"""The profiler runs where it is installed, and is reported missing in one line where it is not."""

import stat
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import pytest

from kerneltruth.clock.schedule.timed_cases import timed_cases
from kerneltruth.documents.timing import CandidateTimes
from kerneltruth.engine.benchmark.profiling import (
    NAMELESS,
    NOTHING,
    device_share,
    profile,
    share_of,
)
from kerneltruth.engine.benchmark.timed_file import time_file
from kerneltruth.engine.requests import TimeRequest, result_of
from kerneltruth.engine.start import run
from kerneltruth.errors import EnvironmentFault
from kerneltruth.report.kernel_words import shares
from kerneltruth.runner.candidate import read_candidate
from kerneltruth.runner.observation import KernelLaunches, KernelWork, Observation
from kerneltruth.runner.wire import decode
from kerneltruth.tasks.registry import find

TASK = replace(find("kernelbenchx/softmax"), perf=({"M": 8, "N": 16},))
SOFTMAX = "import torch\ndef softmax(input, dim=-1):\n    return torch.softmax(input, dim)\n"

TABLE = """{"outcome": "timed"}
"ID","Kernel Name","Block Size","Grid Size","sm__throughput.avg.pct_of_peak_sustained_elapsed"
"","","","","%"
"0","softmax","(128, 1, 1)","(64, 1, 1)","12.5"
"""


@pytest.fixture
def ncu(tmp_path, monkeypatch):
    """Stands in for ncu: prints what a test sets, and keeps its arguments."""

    def install(printed):
        program = tmp_path / "bin" / "ncu"
        program.parent.mkdir()
        (tmp_path / "printed").write_text(printed)
        program.write_text(
            f'#!/bin/sh\necho "$@" > {tmp_path}/said\ncat {tmp_path}/printed\n'
            f'for last; do :; done\ncp "$last" {tmp_path}/messages\n'
        )
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
        return tmp_path / "said"

    return install


@pytest.fixture
def options(tmp_path):
    return TimeRequest(file=tmp_path / "softmax.py", device="cuda:0")


def test_a_missing_profiler_is_named_in_one_line(monkeypatch, options):
    monkeypatch.setenv("PATH", "/nowhere")
    options.file.write_text("")
    with pytest.raises(EnvironmentFault, match="ncu is not installed"):
        next(run(replace(options, profile=True)))


CANDIDATE = read_candidate(SOFTMAX, "softmax.py", task_names=("softmax",), task="softmax")


def seen_of(kernel, task=TASK, **how):
    return profile(CANDIDATE, task, timed_cases(TASK)[0], device="cpu", kernel=kernel, **how)


def test_launches_are_read_from_what_the_profiler_prints(ncu):
    ncu(TABLE)
    (seen,) = seen_of("softmax")
    assert (seen.kernel, seen.compute_percent) == ("softmax", 12.5)


def test_the_candidate_is_called_under_the_profiler(ncu):
    said = ncu(TABLE)
    seen_of("softmax")
    words = said.read_text()
    assert "kerneltruth.runner.child.without_judge" in words
    assert "--kernel-name softmax" in words


@pytest.mark.parametrize("pretrained", [True, False])
def test_a_profiled_candidate_gets_small_models_where_its_task_has_one(ncu, pretrained):
    messages = ncu(TABLE).with_name("messages")
    task = replace(TASK, pretrained=pretrained)
    seen_of("softmax", task)
    with messages.open("rb") as file:
        assert decode(file.read, limit=2**20).pretrained is pretrained
    runner = Opening()
    device_share(runner, CANDIDATE, task, timed_cases(TASK)[0])
    assert [c.pretrained for c in runner.opened] == [pretrained]


class Opening:
    """Stands in for a runner, whose children see no work."""

    def __init__(self):
        self.opened = []

    def open(self, candidate, mode):
        self.opened.append(candidate)
        child = SimpleNamespace(request=lambda message, deadline_s: Observation(ended="returned"))
        return nullcontext(child)


def test_a_profiler_that_may_not_count_is_the_machines_fault(ncu):
    ncu("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission\n")
    with pytest.raises(EnvironmentFault, match="permission"):
        seen_of(None)


def test_a_profiler_that_takes_too_long_is_the_machines_fault(tmp_path, monkeypatch):
    (tmp_path / "ncu").write_text("#!/bin/sh\nexec sleep 60\n")
    (tmp_path / "ncu").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(
        EnvironmentFault, match=r"^--profile: ncu took over 1 s; time it without --profile"
    ):
        seen_of(None, deadline_s=0.6)


CASE = timed_cases(find("relu"))[0]
MM = KernelLaunches(name="ampere_sgemm", module="library", own=False, launches=1, device_s=97e-6)
BIAS = KernelLaunches(name="bias_relu", module="", own=True, launches=1, device_s=3e-6)


def observation_of(*runs, **more):
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
    assert shares(share_of(observation_of(*runs), CASE)) == f"{CASE.summary()}: {line}"


@pytest.mark.parametrize(
    ("observation", "reason"),
    [
        (observation_of(), NOTHING),
        (observation_of(MM, BIAS, seen=False), NAMELESS),
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


class Timekeeper:
    """A benchmarker that finds the same of every candidate."""

    def __init__(self, outcome):
        self.outcome = outcome

    def shapes(self, task, candidate, *, dtype):
        yield 0, 1, CASE
        return CandidateTimes(
            outcome=self.outcome,
            shapes=(),
            ready_s=0.0,
            ready={},
            not_timed=(),
            noise_floor=0.0,
            peak_bytes=0,
            baseline_peak_bytes={},
        )

    def close(self):
        """Nothing is open."""


def timed(tmp_path, device, *, outcome="timed", **options):
    """The document of a file that is timed, and the sizes of the cases that were looked at."""
    file = tmp_path / "relu.py"
    file.write_text("import torch\ndef relu(x):\n    return torch.relu(x)\n")
    looked_at = []

    def share(runner, candidate, task, case):
        looked_at.append(case.sizes)
        return share_of(observation_of(MM, BIAS), case)

    document = result_of(
        time_file(
            TimeRequest(file=file, task="relu", device=device, **options),
            SimpleNamespace(device=device),
            0.0,
            measure=lambda runner, *, anew: None,
            make=lambda runner, **how: Timekeeper(outcome),
            share=share,
        )
    )
    return document, looked_at


LARGEST = timed_cases(find("relu"))[-1].sizes


def test_on_a_gpu_the_largest_shape_says_whose_kernels_take_the_time(tmp_path):
    document, looked_at = timed(tmp_path, "cuda:0", kernels=None)
    assert looked_at == [LARGEST]
    assert (document.kernel.own, document.kernel.library) == pytest.approx((0.03, 0.97))


@pytest.mark.parametrize(
    ("device", "more", "looks"),
    [
        ("cpu", {"kernels": None}, 0),
        ("cuda:0", {"kernels": False}, 0),
        ("cuda:0", {"kernels": None, "outcome": "failed"}, 0),
        ("cuda:0", {"kernels": True, "outcome": "failed"}, 1),
    ],
)
def test_a_share_is_looked_for_where_there_is_one_or_where_it_is_asked_for(
    tmp_path, device, more, looks
):
    document, looked_at = timed(tmp_path, device, **more)
    assert len(looked_at) == looks
    assert (document.kernel is not None) == bool(looks)
