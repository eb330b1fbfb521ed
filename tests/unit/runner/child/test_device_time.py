"""The device's time by kernel, from what a profiler has recorded."""

import pytest

from kerneltruth.runner.child.device_time import CALLS, shared_out
from kerneltruth.runner.child.extension_launches import qualified

LIBRARY = "void at::native::relu_kernel<4, float>(int, float*)"
OWN = "void relu_kernel<float>(float const*, float*, long)"


@pytest.mark.parametrize(
    ("recorded", "name"),
    [
        ("bias_relu", "bias_relu"),
        (OWN, "relu_kernel"),
        (LIBRARY, "at::native::relu_kernel"),
        ("void (anonymous namespace)::scale<float>(float*)", "{anonymous}::scale"),
        ("scale(float*, int)", "scale"),
        ("Memcpy DtoD (Device -> Device)", "Memcpy DtoD"),
    ],
)
def test_a_name_is_read_without_template_arguments_and_parameters(recorded, name):
    assert qualified(recorded) == name


def test_a_library_kernel_of_the_same_name_is_not_the_candidates():
    runs = shared_out([(OWN, 0.1), (LIBRARY, 0.2)], {"relu_kernel"})
    assert [(run.name, run.own) for run in runs] == [
        ("at::native::relu_kernel", False),
        ("relu_kernel", True),
    ]


def test_time_and_launches_are_those_of_one_call():
    (run,) = shared_out([("bias", 0.5)] * 2 * CALLS, {"bias"})
    assert (run.launches, run.device_s) == (2, pytest.approx(1.0))
