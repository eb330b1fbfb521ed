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


CUBLAS = "void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x128>(cutlass_80::Params)"
GEMM = "cutlass::Kernel2<cutlass::gemm::kernel::Gemm<float, 4> >(cutlass::gemm::Params)"


def test_a_template_of_cutlass_is_the_candidates_only_as_it_instantiates_it():
    runs = shared_out([(CUBLAS, 0.3), (f"void {GEMM}", 0.2)], {GEMM})
    assert [(run.name, run.own, run.device_s) for run in runs] == [
        ("cutlass::Kernel2", False, pytest.approx(0.1)),
        ("cutlass::Kernel2", True, pytest.approx(0.2 / 3)),
    ]


def test_demanglers_may_space_a_template_otherwise():
    assert all(run.own for run in shared_out([(GEMM.replace("> >", ">>"), 0.1)], {GEMM}))


def test_time_and_launches_are_those_of_one_call():
    (run,) = shared_out([("bias", 0.5)] * 2 * CALLS, {"bias"})
    assert (run.launches, run.device_s) == (2, pytest.approx(1.0))
