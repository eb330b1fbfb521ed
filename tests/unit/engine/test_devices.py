"""Devices and targets by name."""

import pytest

from kerneltruth.engine import devices
from kerneltruth.engine.devices import (
    TARGETS,
    choose_device,
    choose_targets,
    visible_devices,
)
from kerneltruth.errors import EnvironmentFault, UserError


@pytest.fixture
def two_devices(monkeypatch):
    monkeypatch.setattr(devices, "cuda_devices", lambda: 2)


def test_auto_takes_the_first_cuda_device_and_else_the_cpu(monkeypatch, two_devices):
    assert choose_device("auto") == "cuda:0"
    monkeypatch.setattr(devices, "cuda_devices", lambda: 0)
    assert choose_device("auto") == "cpu"


def test_a_device_is_named_by_its_number(two_devices):
    assert choose_device("cuda") == "cuda:0"
    assert choose_device("cuda:1") == "cuda:1"
    assert choose_device("cpu") == "cpu"


def test_a_number_beyond_the_last_device_is_the_machines_fault(two_devices):
    with pytest.raises(EnvironmentFault, match="shows 2 CUDA devices"):
        choose_device("cuda:2")


@pytest.mark.parametrize("name", ["", "gpu", "cuda:", "cuda:x", "CPU", "cpu:0", "auto "])
def test_another_spelling_is_the_users_mistake(name):
    with pytest.raises(UserError, match="must be auto"):
        choose_device(name)


def test_without_a_driver_there_is_no_device(monkeypatch):
    monkeypatch.setattr(devices, "_has_driver", lambda: False)
    assert devices.cuda_devices() == 0


def test_targets_are_taken_once_each_in_order():
    assert choose_targets(("sm_90", "gfx942", "sm_90")) == ("sm_90", "gfx942")


def test_the_targets_are_those_that_the_compiler_knows():
    from kerneltruth.runner.child import compile_only

    assert tuple(compile_only.TARGETS) == TARGETS


@pytest.mark.parametrize(
    ("visible", "count"),
    [(None, 4), ("", 0), ("0", 1), ("2,0", 2), ("1,-1,2", 1), ("-1", 0), ("7", 0)],
)
def test_a_list_of_visible_devices_counts_up_to_its_first_bad_number(visible, count):
    assert visible_devices(4, visible) == count
