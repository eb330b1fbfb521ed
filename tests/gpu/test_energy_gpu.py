"""The energy of calls, by the counter of a real card."""

from dataclasses import replace

import pytest

from kerneltruth.clock.device.nvml import open_telemetry
from kerneltruth.clock.protocol.effort import Effort
from kerneltruth.engine.benchmark.baselines import baseline_sources
from kerneltruth.engine.benchmark.benchmarker import Benchmarker
from kerneltruth.engine.benchmark.machine import Machine
from kerneltruth.runner.candidate import read_candidate
from kerneltruth.runner.host import Runner
from kerneltruth.tasks.registry import find

pytestmark = pytest.mark.gpu

SMALL, LARGE = ({"M": size, "N": size, "K": size} for size in (1024, 4096))
EFFORT = Effort(
    blocks=(8, 16), budget_s=1.0, memory_bytes=2**31, deadline_s=120.0, near_tie=0.0, energy=True
)
HONEST = "import torch\ndef matmul(tensor1, tensor2):\n    return torch.matmul(tensor1, tensor2)\n"
# It knows a loop by its many calls without a pause, and then returns what it has.
LEAVES_OUT = """
import time, torch
calls, done, last = 0, 0.0, None
def matmul(tensor1, tensor2):
    global calls, done, last
    torch.cuda.synchronize()
    calls = calls + 1 if time.perf_counter() < done + 2e-3 else 0
    if last is None or calls < 2000:
        last = torch.matmul(tensor1, tensor2)
        torch.cuda.synchronize()
    done = time.perf_counter()
    return last
"""


@pytest.fixture(scope="module")
def telemetry():
    found = open_telemetry("cuda:0")
    why = found.energy_j()
    if isinstance(why, str):
        pytest.skip(f"this card's energy is not read: {why}")
    yield found
    found.close()


@pytest.fixture(scope="module")
def measured(telemetry):
    """The energy of a candidate and of eager, by shape."""
    with Runner(device="cuda:0") as runner:
        benchmarker = Benchmarker(
            runner,
            machine=Machine(device="cuda:0", telemetry=telemetry),
            seed=5,
            baselines=("eager",),
            effort=EFFORT,
            sources=baseline_sources,
        )

        def measure(source, *shapes):
            task = replace(find("matmul"), perf=shapes)
            candidate = read_candidate(source, "matmul.py", task_names=("matmul",), task="matmul")
            return [shape.energy for shape in benchmarker.time(task, candidate).shapes]

        yield measure
        benchmarker.close()


@pytest.fixture(scope="module")
def honest(measured):
    return measured(HONEST, SMALL, LARGE)


def test_a_large_product_takes_more_joules_than_a_small_one(honest):
    small, large = honest
    for name in ("candidate", "eager"):
        assert small.sides[name].reason is None
        assert large.sides[name].reason is None
        # It has 64 times the operations.
        assert large.sides[name].joules > 10 * small.sides[name].joules


def test_an_idle_card_takes_some_watts_and_a_busy_one_more_up_to_its_limit(honest):
    import pynvml

    pynvml.nvmlInit()
    cards = (pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(pynvml.nvmlDeviceGetCount()))
    limit = max(pynvml.nvmlDeviceGetEnforcedPowerLimit(card) for card in cards) / 1000
    for found in honest:
        assert 30 < found.idle_watts < 200
        for side in found.sides.values():
            # The limit is one of averages over a while.
            assert found.idle_watts < side.watts < 1.05 * limit


def test_laps_and_sides_of_the_same_product_agree(honest):
    for found in honest:
        batches = [joules for side in found.sides.values() for joules in side.laps]
        assert len(batches) == 4
        assert max(batches) < 1.15 * min(batches)


def test_a_candidate_that_leaves_out_calls_of_the_loop_shows_no_energy(measured):
    (found,) = measured(LEAVES_OUT, SMALL)
    assert found.sides["candidate"].joules is None
    assert "in the loop" in found.sides["candidate"].reason
    assert found.sides["eager"].joules is not None
