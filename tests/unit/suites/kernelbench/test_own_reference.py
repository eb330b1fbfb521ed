"""A user's own file as a problem: what it says of its task at module level."""

import pytest

from kerneltruth.errors import UserError
from kerneltruth.suites.kernelbench.own_reference import read_reference


@pytest.mark.parametrize(
    ("setting", "rule"),
    [
        ("tolerance = 0.1", r"tolerance = 0.1: give a relative and an absolute error"),
        ("tolerance = (1, -1)", r"tolerance = \(1, -1\): give a relative and an absolute error"),
        ("backward = 1", "backward = 1: give True or False"),
    ],
)
def test_a_setting_of_a_reference_that_means_nothing_is_named_with_its_line(
    tmp_path, setting, rule
):
    path = tmp_path / "mine.py"
    path.write_text(f"def mine(x): return x\ndef inputs(): return (1,)\n{setting}\n")
    with pytest.raises(UserError, match=f"mine.py:3: {rule}"):
        read_reference(path)
