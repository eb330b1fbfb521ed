"""`doctor` on machines that this one is not."""

import pytest

from kerneltruth.engine.doctor import examine
from kerneltruth.runner.containment.levels import OfferedLevel


def missing(triton, devices=0):
    """What `doctor` finds missing where this version of Triton is installed, without a GPU."""
    document = examine(
        count=devices, version={"triton": triton}.get, unkept=lambda device: "not tried"
    )
    return [m for m in document.missing if m.what.startswith("Triton")]


@pytest.mark.parametrize("triton", ["3.6.0", "3.7.1", "3.9.0"])
def test_nothing_is_said_of_a_triton_that_is_tested(triton):
    assert missing(triton) == []


@pytest.mark.parametrize(
    ("triton", "said"), [("3.5.1", "run on a CUDA device only"), ("3.10.0", "as far as they can")]
)
def test_a_triton_outside_of_the_window_has_a_command_that_helps(triton, said):
    (one,) = missing(triton)
    assert said in one.what
    assert triton in one.what
    assert one.add == "pip install 'triton>=3.6,<3.10'"


def test_with_a_gpu_any_triton_will_do():
    assert missing("3.10.0", devices=1) == []


def test_a_device_whose_memory_the_judge_keeps_is_said_to_be_one():
    found = isolation("strict", None, 7, devices=1)
    assert found.in_force[-1].endswith("in memory of the judge, on the device too")
    assert "memory" not in found.limited_by


def test_a_device_whose_memory_the_child_keeps_is_named_with_the_reason():
    found = isolation("strict", None, 7, devices=1, unkept="the device lacks attribute 103")
    assert "device" not in found.in_force[-1]
    assert found.limited_by.endswith(
        "; the child keeps the device's memory itself: the device lacks attribute 103"
    )


def isolation(*offered, devices=0, unkept=None):
    document = examine(
        count=devices, offered=lambda: OfferedLevel(*offered), unkept=lambda device: unkept
    )
    return document.isolation


def test_the_level_of_namespaces_is_named_with_what_holds_memory_and_processes():
    found = isolation("namespaces", None, 7)
    assert found.level == "namespaces"
    assert "namespaces" in found.in_force[3]
    assert "memory and processes" in found.in_force[4]


def test_where_namespaces_are_forbidden_the_reason_is_named():
    found = isolation("strict", "namespaces: Operation not permitted", 7)
    assert (found.level, len(found.in_force)) == ("strict", 3)
    assert found.limited_by == "namespaces: Operation not permitted"


def test_with_a_gpu_the_level_is_the_one_that_is_tried_there():
    found = isolation("namespaces", None, 7, devices=1)
    assert found.level == "strict"
    assert "CUDA driver" in found.limited_by
