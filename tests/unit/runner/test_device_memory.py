"""Memory of a device that a process holds for the judge: what goes where, and when it is freed."""

import mmap
import os
import time

import numpy as np
import pytest
from fake_device import FakeDriver, serving

from kerneltruth.errors import EnvironmentFault
from kerneltruth.runner.device_memory import DeviceMemories, KeptDeviceMemory, joined, why_not
from kerneltruth.runner.helper_process import HelperLost
from kerneltruth.runner.host import Runner
from kerneltruth.runner.kept_memory import KeptHostMemory, MemoryLost

PAGE = 2**21


@pytest.fixture
def driver():
    return FakeDriver()


@pytest.fixture
def keeper(driver):
    with serving(driver) as keeper:
        yield keeper


def mapped(memory):
    return np.frombuffer(mmap.mmap(memory.descriptor, memory.size), np.uint8)


def eventually(true):
    until = time.monotonic() + 10
    while not true() and time.monotonic() < until:
        time.sleep(0.01)
    return true()


def test_only_what_is_put_reaches_the_device_and_only_what_is_fetched_is_seen(keeper):
    memory = KeptDeviceMemory(keeper, 1)
    there = mapped(memory)
    memory.seen[:4096] = 1
    memory.put([(0, 4), (2048, 2050)])
    assert np.flatnonzero(there).tolist() == [0, 1, 2, 3, 2048, 2049]
    there[:] = 2
    memory.fetch([(4096, 4098)])
    assert memory.seen[4095:4100].tolist() == [1, 2, 2, 0, 0]


def test_memory_has_whole_pages_of_the_device(keeper):
    memory = KeptDeviceMemory(keeper, PAGE + 1)
    assert memory.size == len(mapped(memory)) == len(memory.seen) == 2 * PAGE


def test_memory_is_freed_with_its_last_user(keeper, driver):
    memory, other = KeptDeviceMemory(keeper, 1), KeptDeviceMemory(keeper, 1)
    assert len(driver.blocks) == 2
    del memory
    assert eventually(lambda: len(driver.blocks) == 1)
    other.put([(0, 1)])


def test_a_device_without_room_is_said_so(keeper, driver):
    driver.room = PAGE
    with pytest.raises(MemoryLost, match="the device's memory: cuMemCreate: CUDA_ERROR_OUT_OF"):
        KeptDeviceMemory(keeper, PAGE + 1)


def test_a_device_that_breaks_is_said_so(keeper, driver):
    memory = KeptDeviceMemory(keeper, 1)
    driver.broken = True
    with pytest.raises(MemoryLost, match="the device's memory: cuMemcpy: CUDA_ERROR_ECC"):
        memory.fetch([(0, 1)])


def test_nothing_is_asked_for_no_range(keeper, driver):
    memory = KeptDeviceMemory(keeper, 1)
    memory.put([])
    memory.fetch([(8, 8)])
    assert driver.copies == []


def test_a_keeper_that_is_gone_is_said_so():
    with serving(FakeDriver()) as keeper:
        pass
    with pytest.raises(HelperLost):
        KeptDeviceMemory(keeper, 1)


class LostKeeper:
    """A keeper that is gone whenever it should make memory."""

    def __init__(self, device, work_root):
        pass

    def ready(self):
        return {}

    def send(self, message, descriptors):
        raise HelperLost("gone")

    def close(self):
        pass


def test_a_keeper_that_dies_is_started_anew(keeper):
    started = iter([LostKeeper("cuda:0", None), keeper])
    memories = DeviceMemories("cuda:0", None, new_keeper=lambda device, root: next(started))
    memory = memories.make(1)
    memory.put([(0, 1)])
    assert memory.size == PAGE


def test_a_keeper_that_dies_twice_is_the_machines_fault():
    with pytest.raises(EnvironmentFault, match="keeps dying; `kerneltruth doctor`"):
        DeviceMemories("cuda:0", None, new_keeper=LostKeeper).make(1)


@pytest.mark.parametrize(("why", "started"), [(None, ["cuda:0"]), ("no driver", [])])
def test_a_keeper_is_waited_for_only_where_the_judge_keeps_the_memory(keeper, why, started):
    begun = []

    def new_keeper(device, work_root):
        begun.append(device)
        return keeper

    memories = DeviceMemories("cuda:0", None, unkept=lambda device: why, new_keeper=new_keeper)
    memories.warm()
    assert (memories.kept, begun) == (why is None, started)


def test_children_on_the_host_share_a_file_and_those_that_are_timed_on_a_device_nothing(tmp_path):
    runner = Runner(device="cuda:0", work_root=tmp_path)
    assert runner.memory_of("cpu", "run") is KeptHostMemory
    assert runner.memory_of("cuda:0", "time") is None


@pytest.mark.parametrize(
    ("ranges", "found"),
    [
        ([(0, 100), (512, 600)], [(0, 600)]),
        ([(0, 100), (612, 700)], [(0, 100), (612, 700)]),
        ([(512, 600), (0, 100), (50, 60)], [(0, 600)]),
        ([(0, 1000), (10, 20)], [(0, 1000)]),
        ([(7, 7)], []),
    ],
)
def test_ranges_without_room_for_another_between_them_are_copied_as_one(ranges, found):
    assert joined(ranges) == found


def test_memory_of_the_host_can_be_neither_cut_off_nor_extended():
    memory = KeptHostMemory(4096)
    for size in (0, 2 * PAGE):
        with pytest.raises(PermissionError):
            os.ftruncate(memory.descriptor, size)


@pytest.mark.processes
@pytest.mark.skipif(os.path.exists("/dev/nvidiactl"), reason="here is a driver")
def test_without_a_driver_the_judge_says_why_it_keeps_none():
    assert "libcuda.so.1" in why_not("cuda:0")
