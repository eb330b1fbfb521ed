"""One function takes every request, and leaves the caller's process as it was."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from kerneltruth.engine.evaluator import Evaluator
from kerneltruth.engine.requests import (
    AuditRequest,
    CheckRequest,
    MinimizeRequest,
    ReplayRequest,
    RunRequest,
    Step,
    TimeRequest,
)
from kerneltruth.engine.start import on_one_thread, run
from kerneltruth.errors import EnvironmentFault, UserError
from kerneltruth.oracle.bounds import Policy

NOWHERE = Path("/there/is/no/such/file.py")
FILE = Path(__file__)


@pytest.fixture
def three_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


def steps():
    yield Step(done=torch.get_num_threads(), total=1, text="")
    return "document"


@pytest.mark.usefixtures("three_threads")
def test_judging_takes_one_thread_and_the_caller_has_its_own_again():
    events = on_one_thread(steps())
    assert next(events).done == 1
    with pytest.raises(StopIteration, match="document"):
        next(events)
    assert torch.get_num_threads() == 3


@pytest.mark.usefixtures("three_threads")
def test_the_caller_has_its_threads_again_where_it_wants_no_more_events():
    events = on_one_thread(steps())
    next(events)
    events.close()
    assert torch.get_num_threads() == 3


@pytest.mark.usefixtures("three_threads")
def test_an_evaluator_leaves_the_threads_of_its_process_alone():
    Evaluator(policy=Policy(), runner=SimpleNamespace(device="cpu"))
    assert torch.get_num_threads() == 3


@pytest.mark.parametrize(
    "request_",
    [
        CheckRequest(file=NOWHERE),
        RunRequest(suite="core", candidates=NOWHERE),
        AuditRequest(budget_s=1.0),
        TimeRequest(file=NOWHERE),
        ReplayRequest(paths=(NOWHERE,)),
        MinimizeRequest(path=NOWHERE),
    ],
    ids=lambda request: type(request).__name__,
)
def test_a_wrong_request_ends_at_its_first_step_and_not_before(request_):
    events = run(request_)
    with pytest.raises(UserError):
        next(events)


@pytest.mark.parametrize(
    ("request_", "says"),
    [
        (CheckRequest(file=FILE, domain="wide"), "--domain 'wide': must be core or extended"),
        (CheckRequest(file=NOWHERE), "there is no such file; name a Python file"),
        (TimeRequest(file=NOWHERE.parent), "no such file; name a Python file"),
        (
            RunRequest(suite="core", candidates=FILE, executor="slurm"),
            "--executor 'slurm': must be one of local, ray",
        ),
        (
            RunRequest(suite="core", candidates=FILE, stages=("call",), against=("eager",)),
            "--against eager: the stage call times nothing; leave out --against",
        ),
        (
            RunRequest(suite="core", candidates=FILE, executor="ray", device="cuda:all"),
            "--device cuda:all: Ray hands out GPUs itself",
        ),
        (AuditRequest(budget_s=1.0), "--budget: needs --suite"),
        (AuditRequest(timed=True), "--timed: needs --suite"),
        (AuditRequest(suite="core", out=NOWHERE), "--out: the audit of a suite keeps no run"),
        (MinimizeRequest(path=FILE.parent), "is a directory; name one finding"),
    ],
)
def test_a_wrong_request_names_the_value_and_the_rule(request_, says):
    with pytest.raises(UserError, match=says):
        next(run(request_))


def test_shares_of_a_devices_time_need_a_gpu(tmp_path):
    (tmp_path / "relu.py").write_text("def relu(input): return input.clamp(min=0)")
    request = TimeRequest(file=tmp_path / "relu.py", kernels=True, device="cpu")
    with pytest.raises(EnvironmentFault, match=r"^--kernels: .* need a GPU; .*`kerneltruth check`"):
        list(run(request))


def test_a_run_says_whose_kernels_take_the_time_only_where_it_times():
    request = RunRequest(suite="core", candidates=FILE, device="cpu", kernels=True)
    with pytest.raises(EnvironmentFault, match=r"^--kernels: .* need a GPU; leave it out, or run"):
        next(run(request))
    with pytest.raises(UserError, match=r"^--kernels: the stage exe times nothing; leave out"):
        next(run(replace(request, stages=("call", "exe"))))


def test_a_timed_suite_needs_a_gpu():
    request = AuditRequest(suite="core", timed=True, device="cpu")
    with pytest.raises(EnvironmentFault, match=r"needs a GPU.*`kerneltruth doctor`"):
        next(run(request))


def test_a_run_without_findings_has_nothing_to_replay(tmp_path):
    (tmp_path / "findings").mkdir()
    with pytest.raises(UserError, match="no findings there, as after a run without failures"):
        next(run(ReplayRequest(paths=(tmp_path,))))
