"""A candidate called without a wall, in a process that a profiler has begun."""

import subprocess
import sys

import pytest

from kerneltruth.cases.philox import stream
from kerneltruth.clock.protocol.inputs import make_bench_inputs
from kerneltruth.clock.schedule.timed_cases import timed_cases
from kerneltruth.runner.child import without_judge
from kerneltruth.runner.protocol import Load
from kerneltruth.runner.timing.messages import AllocateBuffers, PrepareInputs
from kerneltruth.tasks.registry import find

pytestmark = pytest.mark.processes

TASK = find("kernelbenchx/relu")
COUNTS = """
def relu(input, inplace=False):
    with open({path!r}, "a") as file:
        file.write("called\\n")
    return input.clamp(min=0)
"""


@pytest.fixture
def run_profiled(tmp_path):
    """Runs a source as a profiler would, for three rows."""

    def run(source):
        inputs = make_bench_inputs(TASK, timed_cases(TASK)[0])
        load = Load(
            source=source,
            filename="relu.py",
            language="torch",
            entry="relu",
            device="cpu",
            mode="time",
        )
        contents = inputs.draw(stream(0, "alone"), 3)
        messages = (
            PrepareInputs(arguments=inputs.arguments),
            AllocateBuffers(count=3),
            inputs.refill(range(3), contents),
        )
        without_judge.write(tmp_path / "messages", load, messages)
        program = [
            sys.executable,
            "-m",
            "kerneltruth.runner.child.without_judge",
            str(tmp_path / "messages"),
        ]
        return subprocess.run(program, capture_output=True, text=True)

    return run


@pytest.mark.slow
def test_each_buffer_is_called_to_warm_up_and_once_more(run_profiled, tmp_path):
    done = run_profiled(COUNTS.format(path=str(tmp_path / "log")))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "log").read_text().splitlines() == ["called"] * 6


@pytest.mark.slow
def test_a_candidate_that_does_not_load_is_named(run_profiled):
    done = run_profiled("import nothing_of_that_name\n")
    assert done.returncode == 1
    assert "relu.py: load_failed" in done.stderr
