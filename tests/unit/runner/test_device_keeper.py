"""The process that holds a device's memory, over a driver whose device is a file."""

import mmap
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from kerneltruth.runner.containment import LEVELS, levels
from kerneltruth.runner.device_memory import DeviceMemories
from kerneltruth.runner.kept_memory import MemoryLost

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler"),
]

SOURCE = Path(__file__).with_name("fake_libcuda.c")


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    """Build the driver with these options; return its folder."""
    folder = tmp_path_factory.mktemp("drivers")

    def build(*options):
        here = folder / "-".join(("driver", *options))
        here.mkdir(exist_ok=True)
        made = str(here / "libcuda.so.1")
        subprocess.run(["cc", "-shared", "-fPIC", *options, str(SOURCE), "-o", made], check=True)
        return str(here)

    return build


def try_driver(folder, level):
    command = [sys.executable, "-m", "kerneltruth.runner.device_keeper", "--device", "0"]
    environment = {**os.environ, "LD_LIBRARY_PATH": folder}
    ran = subprocess.run(
        [*command, "--try", level], env=environment, capture_output=True, text=True, check=True
    )
    return ran.stdout


@pytest.mark.parametrize("level", LEVELS[:-1])
def test_a_contained_process_maps_what_another_has_made(driver, level):
    if LEVELS.index(levels.offered().level) < LEVELS.index(level):
        pytest.skip(f"no isolation {level!r} here: {levels.offered().limited_by}")
    assert try_driver(driver(), level) == ""


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("-DLACKS=103", "the device lacks attribute 103: it shares no memory"),
        (
            "-DREFUSES=1",
            "a contained process cannot map it: cuMemImportFromShareableHandle: CUDA_ERROR_FAKE",
        ),
    ],
)
def test_a_device_that_shares_no_memory_is_found_out(driver, option, said):
    assert try_driver(driver(option), "process") == said


@pytest.fixture
def memories(driver, monkeypatch, tmp_path):
    monkeypatch.setenv("LD_LIBRARY_PATH", driver())
    made = DeviceMemories("cuda:0", tmp_path, unkept=lambda device: None)
    yield made
    made.close()
    assert list(tmp_path.iterdir()) == []


def mapped(memory):
    return np.frombuffer(mmap.mmap(memory.descriptor, memory.size), np.uint8)


def test_judge_and_child_reach_one_memory_through_the_process(memories):
    memory = memories.make(1)
    there = mapped(memory)
    # NaN, whatever float it is read as.
    assert (there == 0xFF).all()
    memory.seen[:4] = 7
    memory.put([(0, 2)])
    there[100] = 9
    memory.fetch([(100, 102)])
    assert there[:3].tolist() == [7, 7, 0xFF]
    assert memory.seen[99:103].tolist() == [0, 9, 0xFF, 0]


def test_a_process_that_was_killed_is_started_anew(memories):
    memory = memories.make(1)
    first = running(memories)
    os.kill(first, 9)
    with pytest.raises(MemoryLost, match="the keeper of the device's memory"):
        memory.fetch([(0, 1)])
    memories.make(1).put([(0, 1)])
    assert running(memories) != first


def test_memory_that_the_judge_lets_go_is_given_back(memories):
    memories.warm()
    files = Path(f"/proc/{running(memories)}/fd")
    before = len(list(files.iterdir()))
    held = [memories.make(1) for _ in range(3)]
    assert len(list(files.iterdir())) > before
    del held
    until = time.monotonic() + 10
    while len(list(files.iterdir())) > before and time.monotonic() < until:
        time.sleep(0.01)
    assert len(list(files.iterdir())) == before


def running(memories):
    """The number of the keeper's process."""
    started = memories.start()
    return next(pid for pid in children_of(os.getpid()) if serves(pid, started.root))


def children_of(pid):
    return [int(n) for n in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def serves(pid, root):
    try:
        return os.readlink(f"/proc/{pid}/cwd") == str(root)
    except OSError:
        return False
