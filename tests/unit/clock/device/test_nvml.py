"""Which device is read, and what a stand-in for pynvml reports."""

import os
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest

from kerneltruth.clock.device.nvml import (
    REFRESH_S,
    Gpu,
    NvmlTelemetry,
    chosen,
    connect,
    family,
    open_telemetry,
    strangers,
)
from kerneltruth.clock.device.telemetry import NoTelemetry, Reading

H100 = [Gpu(uuid=f"GPU-{c}{c}{c}", name="H100") for c in "abcd"]
MIXED = [Gpu(uuid="GPU-slow", name="T4"), Gpu(uuid="GPU-fast", name="H100")]


@pytest.mark.parametrize(
    ("index", "visible", "expected"),
    [
        (1, None, "GPU-bbb"),
        (4, None, None),
        (0, "2,0", "GPU-ccc"),
        (1, "2,0", "GPU-aaa"),
        (2, "2,0", None),
        (1, "3,-1,0", None),
        (0, "", None),
        (0, "GPU-dd", "GPU-ddd"),
        (1, "GPU-dd,1", "GPU-bbb"),
        (0, "GPU-", None),
        (0, "9", None),
        (0, "MIG-1234", "MIG-1234"),
    ],
)
def test_visible_devices_are_resolved_to_uuids(index, visible, expected):
    assert chosen(index, H100, visible=visible) == expected


def test_numbers_among_gpus_of_several_kinds_need_the_order_of_addresses():
    assert chosen(0, MIXED, visible=None) is None
    assert chosen(0, MIXED, visible="1") is None
    assert chosen(0, MIXED, visible="1", by_address=True) == "GPU-fast"
    assert chosen(0, MIXED, visible="GPU-f") == "GPU-fast"


class NvmlError(Exception):
    pass


class FakeNvml:
    """The part of pynvml that is used, over two GPUs."""

    NVMLError = NvmlError
    NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU = 1, 2, 0

    def __init__(self, *, pids=(), unsupported=(), present=2):
        self.pids, self.unsupported, self.present = pids, unsupported, present
        self.open = 0

    def nvmlInit(self):
        self.open += 1

    def nvmlShutdown(self):
        self.open -= 1

    def nvmlDeviceGetCount(self):
        return self.present

    def nvmlDeviceGetHandleByIndex(self, index):
        return index

    def nvmlDeviceGetUUID(self, handle):
        return f"GPU-{handle}".encode()

    def nvmlDeviceGetName(self, handle):
        return "H100"

    def nvmlDeviceGetHandleByUUID(self, uuid):
        return int(uuid.rpartition("-")[2])

    def nvmlDeviceGetDeviceHandleFromMigDeviceHandle(self, handle):
        return 0

    def nvmlDeviceGetTotalEnergyConsumption(self, handle):
        return self._answer("energy", 5_000_250 + 1000 * handle)

    def _answer(self, name, value):
        if name in self.unsupported:
            raise NvmlError("not supported")
        return value

    def nvmlDeviceGetClockInfo(self, handle, which):
        return self._answer("clock", {1: 1980, 2: 2619}[which] + handle)

    def nvmlDeviceGetTemperature(self, handle, sensor):
        return self._answer("temperature", 41)

    def nvmlDeviceGetPowerUsage(self, handle):
        return self._answer("power", 312_500)

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle):
        return self._answer("reasons", 0x4 | 0x40)

    def nvmlDeviceGetFieldValues(self, handle, fields):
        return self._answer(
            "counters",
            [
                SimpleNamespace(
                    fieldId=f, nvmlReturn=0 if f == 270 else 3, value=SimpleNamespace(ullVal=9)
                )
                for f in fields
            ],
        )

    def nvmlDeviceGetComputeRunningProcesses(self, handle):
        return self._answer("processes", [SimpleNamespace(pid=p) for p in self.pids])


def connected(nvml, index=0, *, visible=None, ours=(7,)):
    return connect(nvml, index, visible=visible, by_address=False, ours=lambda: ours)


def test_a_reading_has_what_nvml_says_in_our_units():
    reading = connected(FakeNvml(pids=(7, 8)), 1).read()
    assert replace(reading, at=0.0) == Reading(
        sm_clock_mhz=1981,
        memory_clock_mhz=2620,
        temperature_c=41,
        power_w=312.5,
        throttle=("sw_power_cap", "hw_thermal_slowdown"),
        held_down={"hw_thermal_slowdown": 9},
        others=1,
    )
    assert reading.at > 0


def test_our_processes_are_listed_again_on_a_change_or_after_a_while():
    now, requests = [100.0], []

    def ours():
        requests.append(now[0])
        return (7,)

    nvml = FakeNvml(pids=(7,))
    telemetry = connect(nvml, 0, visible=None, by_address=False, ours=ours, now=lambda: now[0])
    assert [telemetry.read().others for _ in range(3)] == [0, 0, 0]
    assert requests == [100.0]
    nvml.pids = (7, 8)
    assert [telemetry.read().others for _ in range(2)] == [1, 1]
    assert requests == [100.0] * 2
    now[0] += REFRESH_S + 0.1
    assert telemetry.read().others == 1
    assert len(requests) == 3


def test_the_visible_device_is_the_one_that_is_read():
    assert connected(FakeNvml(), 0, visible="1").read().sm_clock_mhz == 1981


def test_what_a_driver_does_not_say_is_not_known():
    reading = connected(FakeNvml(unsupported=("power", "reasons", "counters", "processes"))).read()
    assert (reading.power_w, reading.throttle, reading.held_down, reading.others) == (
        None,
        (),
        {},
        0,
    )


def test_a_device_that_is_gone_gives_no_reading():
    assert connected(FakeNvml(unsupported=("clock", "power"))).read() is None


def test_a_device_that_nvml_does_not_show_has_no_telemetry_and_nothing_stays_open():
    nvml = FakeNvml()
    found = connected(nvml, 5)
    assert isinstance(found, NoTelemetry)
    assert "none of the 2" in found.why
    assert nvml.open == 0


def test_a_machine_without_a_driver_has_no_telemetry():
    nvml = FakeNvml()

    def refuse():
        raise NvmlError("Driver Not Loaded")

    nvml.nvmlInit = refuse
    found = connected(nvml)
    assert found.why == "NVML: Driver Not Loaded"
    assert found.read() is None


def test_energy_is_the_visible_devices_in_joules():
    assert connected(FakeNvml(), 0).energy_j() == 5000.25
    assert connected(FakeNvml(), 0, visible="GPU-1").energy_j() == 5001.25


def test_a_card_without_an_energy_counter_says_so():
    assert connected(FakeNvml(unsupported=("energy",))).energy_j() == "NVML: not supported"
    assert open_telemetry("cpu").energy_j() == "not a CUDA device"


def test_the_cards_energy_is_not_that_of_a_slice_of_it():
    found = connected(FakeNvml(), 0, visible="MIG-1")
    assert found.read().sm_clock_mhz == 1980
    assert found.energy_j() == "a MIG slice has no energy counter of its own"


def test_closing_releases_nvml():
    nvml = FakeNvml()
    telemetry = connected(nvml)
    assert isinstance(telemetry, NvmlTelemetry)
    telemetry.close()
    assert nvml.open == 0


def test_a_cpu_has_no_telemetry():
    assert isinstance(open_telemetry("cpu"), NoTelemetry)


@pytest.mark.parametrize(
    ("seen", "ours", "expected"),
    [
        ({1, 2}, {1, 2, 3}, 0),
        ({1, 9}, {1, 2, 3}, 1),
        ({9}, set(), 1),
        ({501, 502}, {1, 2, 3}, 0),  # a container: the host's numbers, no more than ours
        ({501, 502, 503, 504}, {1, 2, 3}, 1),
    ],
)
def test_strangers_are_counted_in_a_container_too(seen, ours, expected):
    assert strangers(seen, lambda: ours) == expected


def test_a_family_is_a_process_and_its_children():
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        assert {os.getpid(), child.pid} <= family(os.getpid())
    finally:
        child.communicate(b"\n")
    assert child.pid not in family(os.getpid())
