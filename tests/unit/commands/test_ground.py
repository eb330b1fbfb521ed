"""The ground of contests: what the judge knows of the calls, and how shown results are graded."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from kerneltruth.cases.philox import stream
from kerneltruth.clock.contestants import Shown
from kerneltruth.clock.stocking import stocked, timed_cases
from kerneltruth.commands.ground import KNOWN, Ground
from kerneltruth.runner.protocol import Observation, TensorResult
from kerneltruth.tasks.registry import find

TASK = replace(find("kernelbenchx/relu"), perf=({"M": 8, "N": 16},))


@pytest.fixture
def ground():
    """The ground of a task's smallest shape."""

    def make(task=TASK):
        case = timed_cases(task)[0]
        inputs = stocked(task, case)
        drawn = list(inputs.draw(stream(3, "known"), KNOWN))
        return Ground(task=task, case=case, inputs=inputs, device="cpu", drawn=drawn)

    return make


def showing(ground, of):
    """A contest that has shown what `of` makes of each known call's input."""
    shown = []
    for choices in ground.known():
        (x,) = ground.inputs.at(ground.task, ground.case, choices).tensors.values()
        made = of(x).contiguous()
        result = TensorResult(
            dtype=str(made.dtype).removeprefix("torch."),
            shape=tuple(made.shape),
            strides=tuple(made.stride()),
            device="cpu",
            data=made.numpy().tobytes(),
            alias=None,
        )
        seen = Observation(ended="returned", results=(result,))
        shown.append(Shown(at=choices, seen=seen))
    return SimpleNamespace(shown=shown)


def test_all_contents_have_results_that_the_judge_knows(ground):
    made = ground()
    assert made.known() == made.drawn
    assert made.known() is not made.drawn


def test_right_results_are_graded_as_such(ground):
    made = ground()
    graded = made.graded(showing(made, lambda x: x.clamp(min=0)))
    assert graded == {"calls": KNOWN, "wrong": [], "not_graded": None}


def test_each_wrong_result_is_told(ground):
    made = ground()
    graded = made.graded(showing(made, lambda x: x.clamp(min=0) + 1))
    assert len(graded["wrong"]) == KNOWN
    assert all(said.startswith("fail: ") for said in graded["wrong"])


def test_a_reference_that_fails_knows_nothing_and_says_why(ground, monkeypatch):
    def fails(*args, **named):
        raise RuntimeError("no memory")

    monkeypatch.setattr("kerneltruth.commands.ground.due", fails)
    made = ground()
    assert made.known() == []
    graded = made.graded(SimpleNamespace(shown=[]))
    assert graded == {"calls": 0, "wrong": [], "not_graded": "RuntimeError: no memory"}
