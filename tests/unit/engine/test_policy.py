"""Bounds that were measured exist for some tasks and dtypes only."""

import pytest

from kerneltruth.engine.policy import bounded_dtypes, choose_policy
from kerneltruth.errors import EnvironmentFault, UserError
from kerneltruth.oracle.bounds import Policy
from kerneltruth.tasks.registry import find


def test_calibrated_bounds_limit_the_dtypes_to_those_measured():
    measured = Policy(method="calibrated", calibration={"softmax/float32": 1.0})
    assert bounded_dtypes(find("softmax"), measured) == ("float32",)
    assert bounded_dtypes(find("softmax"), Policy()) is None


def test_a_task_without_measured_bounds_is_refused_with_the_next_step():
    with pytest.raises(UserError, match="no control of softmax has been measured; use --bounds"):
        bounded_dtypes(find("softmax"), Policy(method="calibrated", calibration={}))


def test_missing_measured_bounds_are_the_installations_fault(tmp_path):
    with pytest.raises(EnvironmentFault, match="install kerneltruth again, or use --bounds spread"):
        choose_policy("calibrated", tf32=True, package=tmp_path)
