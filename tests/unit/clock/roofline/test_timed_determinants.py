"""Determinants at the sizes that are timed: their pivots' product must stay within range."""

import pytest

from kerneltruth.cases.philox import stream
from kerneltruth.clock.protocol.inputs import make_bench_inputs
from kerneltruth.clock.schedule.timed_cases import timed_cases
from kerneltruth.oracle.expectation_builder import expect_timed
from kerneltruth.tasks.registry import find


@pytest.mark.parametrize("name", ["det", "determinant_lu", "determinant_via_qr"])
def test_what_is_timed_of_a_determinant_can_be_judged(name):
    task = find(f"kernelbenchx/{name}")
    case = timed_cases(task)[0]
    inputs = make_bench_inputs(task, case)
    for choices in inputs.draw(stream(0, "known"), 2):
        expected = expect_timed(task, case, inputs.at(task, case, choices)).outputs[0].reference
        assert ((expected.abs() > 1e-3) & (expected.abs() < 1e3)).all()
