"""Devices and targets by name."""

import pytest

from kerneltruth.engine.devices import (
    TARGETS,
    begin,
    choose_device,
    choose_devices,
    choose_targets,
    cuda_devices,
    has_driver,
    visible_devices,
)
from kerneltruth.errors import EnvironmentFault, UserError


def of_two(wanted):
    return choose_device(wanted, count=lambda: 2)


def test_auto_takes_the_first_cuda_device_and_else_the_cpu():
    assert of_two("auto") == "cuda:0"
    assert choose_device("auto", count=lambda: 0) == "cpu"


def test_a_device_is_named_by_its_number():
    assert of_two("cuda") == "cuda:0"
    assert of_two("cuda:1") == "cuda:1"
    assert of_two("cpu") == "cpu"


def test_a_number_beyond_the_last_device_is_the_machines_fault():
    with pytest.raises(EnvironmentFault, match="shows 2 CUDA devices"):
        of_two("cuda:2")


def test_several_devices_are_named_once_each_and_all_of_them_together():
    assert choose_devices(("cuda:1", "cuda:all"), count=lambda: 2) == ["cuda:1", "cuda:0"]
    assert choose_devices(("cpu", "cpu")) == ["cpu"]


def test_all_cuda_devices_of_a_machine_without_one_are_the_machines_fault():
    with pytest.raises(EnvironmentFault, match="shows 0 CUDA devices"):
        choose_devices(("cuda:all",), count=lambda: 0)


def test_no_device_at_all_is_the_users_mistake():
    with pytest.raises(UserError, match="name at least one"):
        choose_devices(())


@pytest.mark.parametrize("name", ["", "gpu", "cuda:", "cuda:x", "CPU", "cpu:0", "auto "])
def test_another_spelling_is_the_users_mistake(name):
    with pytest.raises(UserError, match="must be auto"):
        choose_device(name)


@pytest.mark.skipif(has_driver(), reason="there is a driver")
def test_without_a_driver_there_is_no_device():
    assert cuda_devices() == 0


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


class Starts:
    """A runner that records what it starts."""

    def __init__(self, device, targets=()):
        self.device, self.targets, self.modes = device, targets, ()

    def start(self, modes):
        self.modes = modes


@pytest.mark.parametrize(
    ("runner", "timed", "modes"),
    [
        (Starts("cpu"), False, ("run",)),
        (Starts("cpu", ("sm_90",)), False, ("run", "compile")),
        (Starts("cpu"), True, ("run",)),
        (Starts("cuda:0"), False, ("run",)),
        (Starts("cuda:0"), True, ("run", "time_compiled")),
    ],
)
def test_what_is_needed_later_begins_at_once(runner, timed, modes):
    begin(runner, timed=timed)
    assert runner.modes == modes
