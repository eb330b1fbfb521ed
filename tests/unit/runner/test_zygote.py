"""What the zygote imports for its children, and the child that it has ready."""

import os
import signal
import time
from pathlib import Path
from types import ModuleType

import pytest
from children import CPU, call, is_running, state_and_parent, vector, zygote_of

from kerneltruth.runner.candidate import read_candidate
from kerneltruth.runner.host import Runner
from kerneltruth.runner.zygote import devices_unasked


def test_imports_that_ask_for_devices_are_answered_without_the_driver():
    def driver():
        raise AssertionError("asked the driver")

    cuda = ModuleType("cuda")
    cuda.is_available = cuda.device_count = driver
    with devices_unasked(cuda):
        assert cuda.is_available()
        assert cuda.device_count() == 1

    with pytest.raises(AssertionError, match="asked the driver"):
        cuda.device_count()


@pytest.fixture
def runner():
    with Runner(device=CPU) as runner:
        yield runner


def opened(runner):
    source = "def f(x): return x"
    return runner.open(read_candidate(source, "f.py", task_names=("f",), task="f"))


def ready(zygote, *, not_these=()):
    """The warden whose child waits for a request, once that is there."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        wardens = Path(f"/proc/{zygote}/task/{zygote}/children").read_text().split()
        for warden in set(map(int, wardens)) - set(not_these):
            if (forked := Path(f"/proc/{warden}/task/{warden}/children").read_text().split()) and (
                "python" in os.readlink(f"/proc/{forked[-1]}/exe")
            ):
                return warden, int(forked[-1])
        time.sleep(0.01)
    raise AssertionError("no child is ready")


@pytest.mark.processes
def test_a_request_is_served_by_a_child_that_was_forked_before(runner):
    with opened(runner) as first:
        assert call(first, vector(1.0)).ended == "returned"
        zygote, used = zygote_of(first.pid), state_and_parent(first.pid)[1]
        _, waiting = ready(zygote, not_these=[used])
        with opened(runner) as second:
            assert call(second, vector(1.0)).ended == "returned"
            assert second.pid == waiting


@pytest.mark.processes
@pytest.mark.parametrize("which", [0, 1], ids=["warden", "child"])
def test_a_child_that_died_before_its_request_costs_nothing(runner, which):
    with opened(runner) as first:
        assert call(first, vector(1.0)).ended == "returned"
        zygote, used = zygote_of(first.pid), state_and_parent(first.pid)[1]
        waiting = ready(zygote, not_these=[used])[which]
        os.kill(waiting, signal.SIGKILL)
        while is_running(waiting):
            time.sleep(0.01)
        with opened(runner) as second:
            assert call(second, vector(1.0)).ended == "returned"
