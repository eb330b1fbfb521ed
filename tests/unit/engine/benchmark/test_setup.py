"""The ground of contests: what the judge knows of the calls, and how shown results are graded."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from kerneltruth.cases.philox import stream
from kerneltruth.clock.integrity.spot_checks import Sampled
from kerneltruth.clock.protocol.effort import Effort
from kerneltruth.clock.protocol.inputs import stocked
from kerneltruth.clock.protocol.sides import Contestant, ContestError, Shown
from kerneltruth.clock.schedule.quiet import Quiet
from kerneltruth.clock.schedule.timed_cases import timed_cases
from kerneltruth.engine.benchmark.setup import PYTORCH_TOO, TimingSetup
from kerneltruth.engine.benchmark.shared_child import SharedChild
from kerneltruth.engine.benchmark.task_baselines import KNOWN, TaskBaselines
from kerneltruth.runner.protocol import Observation, TensorResult
from kerneltruth.runner.timing.messages import Rows
from kerneltruth.tasks.registry import find

TASK = replace(find("kernelbenchx/relu"), perf=({"M": 8, "N": 16},))


@pytest.fixture
def ground():
    """The ground of a task's smallest shape."""

    def make(task=TASK):
        case = timed_cases(task)[0]
        inputs = stocked(task, case)
        drawn = list(inputs.draw(stream(3, "known"), KNOWN))
        return TimingSetup(task=task, case=case, inputs=inputs, device="cpu", drawn=drawn)

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
    return SimpleNamespace(shown=shown, sampled=[], sides=[None])


def sampling(ground, *lines):
    """A contest that has sampled calls on all known contents, in turn, and what they gave there."""
    at = tuple(ground.known()[i % KNOWN] for i in range(len(lines)))
    result = TensorResult(
        dtype="float32",
        shape=(len(lines), 3),
        strides=(3, 1),
        device="cpu",
        data=b"".join(line.numpy().tobytes() for line in lines),
    )
    seen = Observation(ended="returned", results=(result,))
    sampled = [Sampled(at=at, spots=((127, 0, 5),), seen=seen)]
    return SimpleNamespace(shown=[], sampled=sampled, sides=[None])


def line_of(ground, index):
    """The right elements of a sampled call."""
    inputs = ground.inputs.at(ground.task, ground.case, ground.known()[index % KNOWN])
    (x,) = inputs.tensors.values()
    return x.clamp(min=0).reshape(-1)[[127, 0, 5]]


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


@pytest.mark.parametrize(("pytorch", "convicts"), [(0, True), (1, False), (None, True)])
def test_what_pytorch_gets_wrong_too_convicts_nobody(ground, pytorch, convicts):
    made = ground()
    found = showing(made, lambda x: x.clamp(min=0) + 1)
    eager = Contestant(name="eager", child=None, rows=8)
    control = Contestant(name="control", child=None, rows=8)
    found.sides = [None, control, eager]

    def show_known(side):
        assert side is eager
        if pytorch is None:
            raise ContestError("eager", Observation(ended="died"))
        return showing(made, lambda x: x.clamp(min=0) + pytorch).shown

    found.show_known = show_known
    graded = made.graded(found)
    assert bool(graded["wrong"]) is convicts
    if not convicts:
        assert graded["calls"] == 0
        assert graded["not_graded"].startswith(f"{PYTORCH_TOO}: fail: ")


def test_right_samples_are_graded_as_such_call_by_call(ground):
    made = ground()
    graded = made.graded(sampling(made, *(line_of(made, i) for i in range(5))))
    assert graded == {"calls": 5, "wrong": [], "not_graded": None}


def test_a_sampled_call_that_did_no_work_is_told(ground):
    made = ground()
    lines = [line_of(made, i) for i in range(5)]
    graded = made.graded(sampling(made, *lines[:3], lines[3] - 1, lines[4]))
    (said,) = graded["wrong"]
    assert said.startswith("fail: samples of 5 calls: 3 of 15 elements are wrong")


def test_elements_are_counted_where_each_is_judged_by_itself(ground):
    made = ground()
    assert made.elements() == ()
    made.known()
    assert made.elements() == (128,)


@pytest.mark.parametrize("name", ["log1p", "masked_select"])
def test_results_that_are_right_as_a_whole_or_of_any_size_are_not_counted(ground, name):
    whole = ground(replace(find(f"kernelbenchx/{name}"), perf=()))
    assert whole.known()
    assert whole.elements() == ()


@pytest.mark.parametrize(("foreign", "elements"), [(False, ()), (True, (128,))])
def test_where_only_calls_tell_a_shape_those_of_others_programs_are_trusted(
    ground, monkeypatch, foreign, elements
):
    monkeypatch.setattr("kerneltruth.engine.benchmark.setup.output_shapes", lambda task, case: None)
    made = ground(TASK)
    made.known()
    made.task = replace(TASK, foreign=foreign)
    assert made.elements() == elements


def test_a_reference_that_fails_knows_nothing_and_says_why(ground, monkeypatch):
    def fails(*args, **named):
        raise RuntimeError("no memory")

    monkeypatch.setattr("kerneltruth.engine.benchmark.setup.expect_timed", fails)
    made = ground()
    assert made.known() == []
    graded = made.graded(SimpleNamespace(shown=[], sampled=[]))
    assert made.elements() == ()
    assert graded == {"calls": 0, "wrong": [], "not_graded": "RuntimeError: no memory"}


@pytest.mark.parametrize(("captured", "later"), [(True, None), (None, None), (False, False)])
def test_a_baseline_that_begins_anew_is_stocked_again_for_all_cases(captured, later):
    """Whose calls cannot be captured need not show it again."""
    restarts = []
    shared = SharedChild(SimpleNamespace(restart=lambda: restarts.append(1)))
    shared.sides = [
        Contestant(name="eager", child=shared, slot=i, rows=8, stocked=True, captured=captured)
        for i in range(2)
    ]
    shared.restart()
    assert len(restarts) == 1
    for side in shared.sides:
        assert (side.rows, side.stocked, side.warmed, side.captured) == (0, False, False, later)


def test_who_holds_nothing_yet_is_asked_for_nothing_back(ground):
    made, asked = ground(), []

    def errand(message, **kwargs):
        asked.append(message)
        return Observation(ended="returned")

    child = SimpleNamespace(errand=errand)
    made.sides = [
        Contestant(name=name, child=child, slot=slot, rows=8, stocked=bool(slot))
        for slot, name in enumerate(("eager", "compile"))
    ]
    grounds = TaskBaselines(TASK, (made.case,), None, baselines={}, seed=3, quiet=Quiet())
    grounds._made[made.case.identity] = made
    assert grounds.park()
    assert asked == [Rows(count=0, slot=1)]


@pytest.mark.parametrize(
    ("foreign", "most", "ahead"), [(False, 0, False), (True, 0, True), (False, 2**20, True)]
)
def test_what_is_due_is_found_ahead_where_it_is_small_or_others_programs_are_asked(
    ground, monkeypatch, foreign, most, ahead
):
    monkeypatch.setattr("kerneltruth.engine.benchmark.task_baselines.DUE_AHEAD_BYTES", most)
    made = ground(replace(TASK, foreign=foreign))
    grounds = TaskBaselines(
        made.task, (made.case,), SimpleNamespace(device="cpu"), baselines={}, seed=3, quiet=Quiet()
    )
    grounds._made[made.case.identity] = made
    grounds.warm_up(Effort())
    assert len(made.expected) == KNOWN * ahead
    # Those that wait for another turn hold nothing.
    grounds.park()
    assert made.expected == []


def test_what_could_not_be_had_ahead_is_asked_for_again(ground, monkeypatch):
    made = ground(replace(TASK, foreign=True))
    with monkeypatch.context() as broken:
        broken.setattr("kerneltruth.engine.benchmark.setup.expect_timed", lambda *a, **k: 1 / 0)
        made.ask_ahead()
    assert made.expected == []
    assert made.known() == made.drawn


def test_what_the_judge_cannot_grade_is_no_fault_of_the_candidate(ground, monkeypatch):
    made = ground()
    shown = showing(made, lambda x: x.clamp(min=0))

    def broken(*about, device):
        raise TypeError("a mistake of ours")

    monkeypatch.setattr("kerneltruth.engine.benchmark.setup.grade", broken)
    graded = made.graded(shown)
    assert graded["wrong"] == []
    assert graded["not_graded"] == "TypeError: a mistake of ours"
