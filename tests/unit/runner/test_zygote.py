"""What the zygote imports for its children."""

from types import ModuleType

import pytest

from kerneltruth.runner.zygote import devices_unasked


def test_imports_that_ask_for_devices_are_answered_without_the_driver():
    def driver():
        raise AssertionError("asked the driver")

    cuda = ModuleType("cuda")
    cuda.is_available = cuda.device_count = driver
    with devices_unasked(cuda):
        assert cuda.is_available()
        assert cuda.device_count() == 1

    with pytest.raises(AssertionError, match="asked the driver"):
        cuda.device_count()
