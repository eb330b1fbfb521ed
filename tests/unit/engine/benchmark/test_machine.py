"""What is known of a machine: kept between commands, chosen by length, and said with a result."""

import itertools
import json
from dataclasses import replace
from types import SimpleNamespace

import pytest
from scripted_sessions import GONE, WithoutProcesses

from kerneltruth.clock.comparison import HOST_NOISE
from kerneltruth.clock.device.telemetry import NoTelemetry, Reading
from kerneltruth.clock.protocol.effort import Effort
from kerneltruth.clock.protocol.sides import SideError
from kerneltruth.clock.roofline.work import FORMATS, Ceilings
from kerneltruth.clock.schedule.timed_cases import timed_cases
from kerneltruth.engine.benchmark.machine import (
    NULL_COPIES,
    DeviceWatch,
    Instruments,
    Machine,
    MachineFacts,
    Noise,
    is_known,
    known_machine,
    measure_noise,
)
from kerneltruth.engine.benchmark.memory import CONTEXT_BYTES, limit_memory, memory_of
from kerneltruth.tasks.registry import find

CEILINGS = Ceilings(
    device="A device",
    copy_bytes_per_s=2e12,
    read_bytes_per_s=2.2e12,
    flops=dict.fromkeys(FORMATS, 1e14),
    l2_bytes=50 * 2**20,
    launch_s=3e-6,
    measured_at="2026-01-01T00:00:00+00:00",
    versions={"torch": "2"},
)
FACTS = MachineFacts(
    ceilings=CEILINGS,
    noise=(
        Noise(seconds=4e-6, half_width=0.02, pairs=30),
        Noise(seconds=4e-5, half_width=0.004, pairs=60),
    ),
)
KNOWN = Machine(facts=FACTS)
RELU = replace(find("kernelbenchx/relu"), perf=({"M": 256, "N": 256},))
CASE = timed_cases(RELU)[0]
# Read and written once.
FLOOR_S = 2 * CASE.sizes["M"] * CASE.sizes["N"] * 4 / 2e12


@pytest.mark.parametrize(
    ("seconds", "half_width"),
    [(1e-6, 0.02), (4e-6, 0.02), (2e-5, 0.02), (3e-5, 0.004), (4e-5, 0.004), (1.0, 0.004)],
)
def test_noise_is_that_of_calls_as_short(seconds, half_width):
    assert KNOWN.noise_floor(seconds) == half_width


def test_an_unknown_machine_has_the_noise_of_hosts_and_no_limits():
    assert Machine().noise_floor(1e-5) == HOST_NOISE
    limits = Machine().limits(RELU, CASE, 1e-5, None)
    assert (limits.efficiency, limits.floor_us, limits.flags) == (None, None, ())


def test_efficiency_is_the_floor_over_the_time():
    limits = KNOWN.limits(RELU, CASE, 4 * FLOOR_S, None)
    assert limits.floor_us == pytest.approx(FLOOR_S * 1e6, rel=0.1)
    assert limits.efficiency == pytest.approx(0.25, rel=0.1)
    assert limits.bytes == 2 * CASE.sizes["M"] * CASE.sizes["N"] * 4
    assert limits.flags == ()


def test_what_no_device_can_do_is_below_the_floor():
    assert KNOWN.limits(RELU, CASE, FLOOR_S / 100, None).flags == ("below_floor",)


def benchmark(*disturbed, repeats=20):
    return SimpleNamespace(disturbed=list(disturbed), effort=Effort(repeats=repeats))


def watched(*readings):
    watch = DeviceWatch(SimpleNamespace(read=iter(readings).__next__))
    for _ in readings:
        watch.disturbance()
    return watch


CALM = Reading(
    sm_clock_mhz=1980, memory_clock_mhz=2619, temperature_c=40, power_w=300.0, held_down={}
)


@pytest.mark.parametrize(
    ("reading", "said"),
    [
        (CALM, []),
        (replace(CALM, throttle=("hw_slowdown",)), ["throttled"]),
        (replace(CALM, throttle=("sw_power_cap",)), ["power_capped"]),
        (replace(CALM, others=2), ["shared_device"]),
    ],
)
def test_what_disturbed_the_device_is_said(reading, said):
    assert watched(CALM, reading).flags(benchmark()) == said


def test_repeated_blocks_are_said_and_whether_they_sufficed():
    assert watched(CALM).flags(benchmark("clock")) == ["repeated_blocks"]
    flags = watched(CALM).flags(benchmark("clock", "clock", repeats=2))
    assert flags == ["repeated_blocks", "disturbed"]


def test_without_telemetry_nothing_is_said():
    watch = DeviceWatch(NoTelemetry())
    assert watch.disturbance() is None
    assert watch.flags(benchmark()) == []
    assert watch.conditions() is None


def test_children_share_the_memory_of_a_device():
    total = 80 * 2**30
    granted = limit_memory(Effort(memory_bytes=2**40), total, 8).memory_bytes
    assert 8 * granted <= (total - 10 * CONTEXT_BYTES) / 2
    assert limit_memory(Effort(memory_bytes=2**20), total, 8).memory_bytes == 2**20


def test_a_small_device_grants_something_all_the_same():
    assert limit_memory(Effort(), 2**30, 8).memory_bytes == 2**26


def test_on_a_cpu_the_effort_stays():
    assert limit_memory(Effort(), memory_of("cpu").total, 8) == Effort()


@pytest.fixture
def device(tmp_path, monkeypatch):
    """A device whose measurement is a script; counts how often it was measured."""
    measured = []
    about = {"device_name": "A device", "driver": "1", "torch": "2"}

    def measure(runner, **more):
        measured.append(more)
        return CEILINGS

    runner, cache = SimpleNamespace(device="cuda:0"), tmp_path / "cache"
    instruments = Instruments(
        environment=lambda device: about,
        ceilings=measure,
        noise=lambda runner, telemetry: FACTS.noise,
        telemetry=lambda device, root=None: NoTelemetry(),
    )
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return SimpleNamespace(
        measured=measured,
        about=about,
        cache=cache,
        files=lambda: list(cache.glob("kerneltruth/devices/*.json")),
        is_known=lambda: is_known(runner, instruments),
        known=lambda **more: known_machine(runner, instruments=instruments, **more),
    )


def test_a_device_is_measured_once(device):
    assert not device.is_known()
    first = device.known()
    assert device.is_known()
    second = device.known()
    assert len(device.measured) == 1
    assert first.facts == second.facts == FACTS


def test_a_device_is_measured_again_on_request(device):
    for _ in range(2):
        device.known(anew=True)
    assert len(device.measured) == 2


def test_another_driver_is_another_device(device):
    device.known()
    device.about["driver"] = "2"
    device.known()
    assert len(device.measured) == len(device.files()) == 2


@pytest.mark.parametrize("spoilt", ["", "{", "[]", '{"noise": 3}', "null"])
def test_a_spoilt_file_is_measured_anew(device, spoilt):
    device.known()
    device.files()[0].write_text(spoilt)
    assert device.known().facts == FACTS
    assert len(device.measured) == 2


@pytest.mark.parametrize("copied", [None, -1.0, "fast"])
def test_facts_that_cannot_be_are_measured_anew(device, copied):
    device.known()
    (file,) = device.files()
    kept = json.loads(file.read_text())
    kept["ceilings"]["copy_bytes_per_s"] = copied
    file.write_text(json.dumps(kept))
    assert device.known().facts == FACTS
    assert len(device.measured) == 2


def test_where_nothing_can_be_kept_it_is_measured_each_time(device):
    device.cache.write_text("no folder")
    for count in itertools.islice(itertools.count(1), 2):
        assert device.known().facts == FACTS
        assert len(device.measured) == count


def test_a_cpu_needs_no_measuring(device):
    runner = SimpleNamespace(device="cpu")
    assert is_known(runner)
    assert known_machine(runner).facts is None
    assert device.measured == []


def test_no_process_of_the_noise_measurement_disturbs_the_next_timing():
    runner = WithoutProcesses(messages=lambda message: GONE)
    with pytest.raises(SideError):
        measure_noise(runner, telemetry=None)
    assert runner.waited == [True] * NULL_COPIES
