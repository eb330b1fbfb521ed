"""Sizes near the requested ones that a task allows."""

from kerneltruth.cases import shapes
from kerneltruth.cases.fitting import fit
from kerneltruth.tasks.registry import TASKS


def test_an_empty_batch_gets_a_window_that_fits_the_image():
    task = TASKS["kernelbenchx/conv2d_w8a8"]
    sizes = {"N": 0, "C": 3, "O": 2, "H": 1, "W": 2, "P": 3, "Q": 2}
    settings = {a.name: a.default for a in task.attributes}
    found = fit(task, shapes.axes(task, "cpu"), "cpu", sizes, settings)
    assert found is not None
    assert found["N"] == 0
    assert found["P"] <= found["H"]
