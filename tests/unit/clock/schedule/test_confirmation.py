"""Doubted claims, and baselines without the candidate, are confirmed; times are scripts."""

import random
from dataclasses import replace
from functools import partial
from itertools import cycle

import pytest
from timed_children import MANY, finished

from kerneltruth.clock.integrity.suspicion import MORE_S, is_suspect, was_hindered
from kerneltruth.clock.schedule.confirmation import (
    FEW_BATCHES,
    MORE_BATCHES,
    SETTLE_S,
    resolve_suspicion,
    retime_baselines,
)
from kerneltruth.runner.timing.messages import RunBatch

EFFORTS = [MANY, replace(MANY, graph_below_s=0.0)]


@pytest.fixture
def benchmark(clock):
    """A finished benchmark of a candidate and baselines with these scripts."""
    return partial(finished, clock)


def quicker_later(benchmark, name, times):
    """Make calls of a side take these shares of their time from now on, batch by batch."""
    child = next(side.child for side in benchmark.sides if side.name == name)
    shares = iter(times)
    child.noise = lambda: next(shares)
    child.requests.clear()
    return child


def test_a_candidate_without_doubt_gets_no_further_blocks(benchmark):
    made = benchmark({}, {}, {})
    resolve_suspicion(made)
    assert len(made.blocks) == 12
    assert [*made.overheads[-1]] == ["candidate"]


@pytest.mark.parametrize("effort", EFFORTS)
def test_an_overhead_that_a_baseline_shares_convicts_no_candidate(benchmark, effort):
    """The device slows down within a batch, or a host that slept for long wakes up late."""
    made = benchmark({"longer_s": 1.5e-4}, {"longer_s": 1.5e-4}, {}, effort=effort)
    assert is_suspect(made)
    resolve_suspicion(made)
    assert not is_suspect(made)
    assert len(made.blocks) == 24
    assert [*made.overheads[-1]] == ["candidate", "eager"]


@pytest.mark.parametrize("effort", EFFORTS)
@pytest.mark.parametrize("baseline", [{}, {"longer_s": 1.0}])
def test_an_overhead_of_the_candidate_alone_stays_suspect(benchmark, effort, baseline):
    # Whatever a baseline shows, not more than a little is believed.
    made = benchmark({"longer_s": 3 * MORE_S}, baseline, effort=effort)
    assert is_suspect(made)
    resolve_suspicion(made)
    assert is_suspect(made)
    assert len(made.blocks) == 48


@pytest.mark.parametrize("effort", EFFORTS)
@pytest.mark.parametrize("blocks", [6, 12])
@pytest.mark.parametrize("claims", [0.5, 0.8])
def test_false_events_stay_suspect(benchmark, effort, blocks, claims):
    effort = replace(effort, blocks=(blocks, blocks))
    made = benchmark({"call_s": 2e-4, "claims": claims}, {"call_s": 2e-4}, effort=effort)
    resolve_suspicion(made)
    assert is_suspect(made)


def test_a_host_that_was_busy_for_a_moment_is_looked_at_closer_and_cleared(benchmark):
    made = benchmark({"longer_s": 3e-4}, {})
    assert is_suspect(made)
    made.sides[0].child.longer_s = 0.0
    resolve_suspicion(made)
    assert not is_suspect(made)


@pytest.mark.parametrize(("alone", "hindered"), [(1.1, False), (0.98, False), (0.9, True)])
def test_a_baseline_was_hindered_if_it_is_quicker_alone(benchmark, alone, hindered):
    made = benchmark({}, {"call_s": 2e-5})
    assert was_hindered(made, "eager", [alone * 2e-5] * 3) is hindered


@pytest.mark.parametrize(("alone", "hindered"), [(0.93, False), (0.88, True)])
def test_a_candidate_may_use_more_of_the_power_that_limits_a_device(benchmark, alone, hindered):
    made = benchmark({}, {"call_s": 2e-5})
    assert was_hindered(made, "eager", [alone * 2e-5] * 3)
    assert was_hindered(made, "eager", [alone * 2e-5] * 3, capped=True) is hindered


def test_a_baseline_with_scattered_batches_was_not_hindered(benchmark):
    """As a kernel does that the device's power limits."""
    noise = random.Random("power").uniform
    made = benchmark({}, {"call_s": 2e-5, "noise": lambda: noise(1.0, 1.1)})
    assert not was_hindered(made, "eager", [2.03e-5] * 3)
    # Nor if its batches alone scatter.
    slow = benchmark({}, {"call_s": 2e-5, "noise": lambda: noise(1.06, 1.1)})
    assert was_hindered(slow, "eager", [2e-5] * 16)
    assert not was_hindered(slow, "eager", [2e-5, 2.14e-5] * 8)


def test_a_baseline_as_quick_beside_the_candidate_gets_only_a_few_batches(benchmark):
    made = benchmark({}, {"call_s": 2e-5, "noise": lambda: 1.0})
    child = quicker_later(made, "eager", [1.0] * 100)
    look = retime_baselines(made, ["eager"])
    assert look.hindered == ()
    assert look.alone_s == {"eager": [pytest.approx(2e-5)] * FEW_BATCHES}
    # One more does not count.
    assert len(child.of(RunBatch)) == FEW_BATCHES + 1


def test_a_few_quick_batches_convict_no_candidate(benchmark):
    """As of a product that the power limits, whose batches take one time or another."""
    modes = cycle([1.0] + [1.07] * 7)
    made = benchmark({}, {"call_s": 2e-5, "noise": lambda: next(modes)})
    quicker_later(made, "eager", [1.0] * (FEW_BATCHES + 1) + [1.0, 1.07] * 10**5)
    look = retime_baselines(made, ["eager"])
    assert look.hindered == ()
    assert len(look.alone_s["eager"]) == MORE_BATCHES


def test_a_baseline_that_stays_quicker_was_hindered_and_others_were_not(benchmark, clock):
    made = benchmark({}, {"call_s": 2e-5}, {"call_s": 3e-5, "noise": lambda: 1.0})
    quicker_later(made, "eager", [0.9] * 10**5)
    began = clock.now
    look = retime_baselines(made, ["eager", "compile"])
    assert look.hindered == ("eager",)
    assert len(look.alone_s["eager"]) == len(look.alone_s["compile"]) == MORE_BATCHES
    assert clock.now - began > SETTLE_S


def test_a_baseline_that_was_not_beaten_is_not_hindered(benchmark):
    made = benchmark({}, {"call_s": 2e-5}, {"call_s": 3e-5})
    quicker_later(made, "eager", [0.9] * 10**5)
    assert retime_baselines(made, ["compile"]).hindered == ()


def test_after_the_powers_limit_the_device_settles_first(benchmark, clock):
    made = benchmark({}, {"call_s": 2e-5})
    began = clock.now
    retime_baselines(made, ["eager"], capped=True)
    assert clock.now - began > SETTLE_S


def test_a_baseline_that_cannot_go_on_says_nothing(benchmark):
    made = benchmark({}, {"call_s": 2e-5})
    made.sides[1].child.ends[RunBatch] = "died"
    look = retime_baselines(made, ["eager"])
    assert (look.hindered, look.alone_s) == ((), {})
