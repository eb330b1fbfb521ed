"""`doctor` on machines that this one is not."""

import pytest

from kerneltruth.engine.doctor import examine


def missing(triton, devices=0):
    """What `doctor` finds missing where this version of Triton is installed, without a GPU."""
    document = examine(count=devices, version={"triton": triton}.get)
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
