"""What readings of a device mean."""

from dataclasses import replace

import pytest

from kerneltruth.clock.device.telemetry import NoTelemetry, Reading
from kerneltruth.clock.integrity.disturbance import (
    DisturbanceDetector,
    conditions,
    disturbed,
)
from kerneltruth.documents.timing import ConditionsRecord

CALM = Reading(
    sm_clock_mhz=1980,
    memory_clock_mhz=2619,
    temperature_c=40,
    power_w=300.0,
    held_down={"sw_power_cap": 100, "hw_thermal_slowdown": 0},
)


def test_two_equal_readings_are_no_disturbance():
    assert disturbed(CALM, CALM) is None


@pytest.mark.parametrize(
    "reason", ["hw_slowdown", "sw_thermal_slowdown", "hw_thermal_slowdown", "hw_power_brake"]
)
@pytest.mark.parametrize("first", [True, False])
def test_heat_power_brake_and_slowdowns_disturb_whenever_they_are_seen(reason, first):
    held = replace(CALM, throttle=(reason,))
    assert reason in disturbed(*((held, CALM) if first else (CALM, held)))


def test_a_slowdown_between_two_readings_is_seen_in_its_counter():
    after = replace(CALM, held_down={"sw_power_cap": 100, "hw_thermal_slowdown": 7})
    assert disturbed(CALM, after) == "clocks held down: hw_thermal_slowdown"


def test_a_power_cap_alone_is_what_a_large_product_runs_into():
    capped = replace(CALM, throttle=("sw_power_cap",), held_down={"sw_power_cap": 900})
    assert disturbed(CALM, capped) is None


def test_a_power_cap_that_moved_the_clock_is_named_with_it():
    capped = replace(CALM, throttle=("sw_power_cap",), sm_clock_mhz=1700)
    assert disturbed(CALM, capped) == "clock moved from 1980 to 1700 MHz (power cap)"


@pytest.mark.parametrize(
    ("clock", "moved"), [(1980, False), (1941, False), (1940, True), (2030, True)]
)
def test_a_clock_may_move_by_two_percent(clock, moved):
    assert (disturbed(CALM, replace(CALM, sm_clock_mhz=clock)) is not None) is moved


def test_the_memory_clock_may_not_move():
    after = replace(CALM, memory_clock_mhz=1593)
    assert disturbed(CALM, after) == "memory clock moved from 2619 to 1593 MHz"


def test_the_clock_of_an_idle_device_says_nothing():
    idle = replace(CALM, sm_clock_mhz=345, throttle=("gpu_idle",))
    assert disturbed(idle, CALM) is None
    assert disturbed(CALM, idle) is None


@pytest.mark.parametrize(
    ("others", "said"),
    [(1, "1 other process on the device"), (3, "3 other processes on the device")],
)
def test_another_process_on_the_device_disturbs(others, said):
    assert disturbed(replace(CALM, others=others), CALM) == said


def test_without_readings_nothing_is_known_to_disturb():
    assert disturbed(None, CALM) is None
    assert disturbed(CALM, None) is None
    assert disturbed(Reading(), Reading()) is None


class Scripted:
    """Telemetry from a list."""

    def __init__(self, *readings):
        self.readings = list(readings)

    def read(self):
        return self.readings.pop(0)

    def close(self):
        pass


def test_a_lookout_compares_each_reading_with_the_one_before():
    slow = replace(CALM, sm_clock_mhz=1500)
    lookout = DisturbanceDetector(Scripted(CALM, CALM, slow, slow))
    assert [lookout() is not None for _ in range(4)] == [False, False, True, False]
    assert len(lookout.readings) == 4


def test_a_lookout_on_a_cpu_never_complains():
    lookout = DisturbanceDetector(NoTelemetry())
    assert [lookout(), lookout()] == [None, None]
    assert conditions(lookout.readings) is None


def test_conditions_are_the_extremes():
    hot = replace(CALM, sm_clock_mhz=1900, temperature_c=60, power_w=650.0, others=2)
    capped = replace(CALM, throttle=("gpu_idle", "sw_power_cap"))
    assert conditions([CALM, hot, capped]) == ConditionsRecord(
        readings=3,
        sm_clock_mhz=(1900, 1980),
        memory_clock_mhz=(2619, 2619),
        temperature_c=60,
        power_w=650.0,
        throttle=("sw_power_cap",),
        others=2,
    )
