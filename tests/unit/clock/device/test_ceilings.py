"""What a device does at most, from what a child says it measured."""

import contextlib
import struct
from types import SimpleNamespace

import pytest

from kerneltruth.clock.device.ceilings import measure
from kerneltruth.clock.roofline.work import FORMATS
from kerneltruth.errors import EnvironmentFault
from kerneltruth.runner.observation import Observation, TensorResult
from kerneltruth.runner.timing.messages import ShowResult

COUNT = len(FORMATS) + 4


def measured(*values, ends=None):
    """The ceilings from what the child's last message shows."""
    data = struct.pack(f"<{len(values)}d", *values)
    result = TensorResult(
        dtype="float64", shape=(len(values),), strides=(1,), device="cuda:0", data=data
    )

    def request(message, deadline_s):
        if ends is not None:
            return Observation(ended=ends, message="no memory left")
        results = (result,) if isinstance(message, ShowResult) else ()
        return Observation(ended="returned", results=results)

    @contextlib.contextmanager
    def opened(candidate, mode):
        assert mode == "time"
        compile(candidate.source, "ceilings.py", "exec")
        yield SimpleNamespace(request=request)

    runner = SimpleNamespace(open=opened)
    return measure(runner, device="A device", measured_at="now", versions={"torch": "2"})


def numbers(copy=2e12, read=2.5e12, rate=1e14):
    return (copy, read, *(rate for _ in FORMATS), 50e6, 3e-6)


def test_the_numbers_are_the_childs():
    found = measured(*numbers())
    assert (found.copy_bytes_per_s, found.read_bytes_per_s) == (2e12, 2.5e12)
    assert found.flops == dict.fromkeys(FORMATS, 1e14)
    assert (found.l2_bytes, found.launch_s) == (50_000_000, 3e-6)


def test_reads_are_no_slower_than_copies():
    assert measured(*numbers(read=1e12)).read_bytes_per_s == 2e12


def test_a_format_that_the_device_lacks_has_no_rate():
    values = list(numbers())
    values[2 + FORMATS.index("int8")] = 0.0
    assert "int8" not in measured(*values).flops


@pytest.mark.parametrize("values", [(), (1.0,), (1.0,) * (COUNT + 1)])
def test_other_numbers_are_no_measurement(values):
    with pytest.raises(EnvironmentFault, match="the limits of A device cannot be measured"):
        measured(*values)


def test_a_child_that_cannot_is_named_with_its_words():
    with pytest.raises(EnvironmentFault, match="raised no memory left"):
        measured(*numbers(), ends="raised")
