"""One function takes every request, and leaves the caller's process as it was."""

from pathlib import Path

import pytest
import torch

from kerneltruth.engine.events import Step
from kerneltruth.engine.requests import (
    AuditRequest,
    CheckRequest,
    MinimizeRequest,
    ReplayRequest,
    RunRequest,
    TimeRequest,
)
from kerneltruth.engine.start import on_one_thread, run
from kerneltruth.errors import UserError

NOWHERE = Path("/there/is/no/such/file.py")


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
