"""What benchmarks share: the judge's knowledge of the calls, and the grading of shown results."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from scripted_sessions import ANSWER, ScriptedSession, WithoutProcesses

from kerneltruth.cases.philox import stream
from kerneltruth.clock.integrity.spot_checks import SpotChecked
from kerneltruth.clock.protocol.effort import Effort
from kerneltruth.clock.protocol.inputs import make_bench_inputs
from kerneltruth.clock.protocol.sides import Graphs, Readiness, ShownResult, Side, SideError
from kerneltruth.clock.schedule.background_work import BackgroundWork
from kerneltruth.clock.schedule.timed_cases import timed_cases
from kerneltruth.documents.model import plain
from kerneltruth.engine.benchmark.baselines import BaselineProcesses, SharedChild, baseline_sources
from kerneltruth.engine.benchmark.setup import PYTORCH_TOO, TimingSetup
from kerneltruth.engine.benchmark.task_baselines import KNOWN, TaskBaselines
from kerneltruth.runner.observation import Observation, TensorResult
from kerneltruth.runner.timing.messages import AllocateBuffers
from kerneltruth.tasks.registry import find

TASK = replace(find("kernelbenchx/relu"), perf=({"M": 8, "N": 16},))


@pytest.fixture
def setup():
    """The setup of a task's smallest shape."""

    def make(task=TASK):
        case = timed_cases(task)[0]
        inputs = make_bench_inputs(task, case)
        drawn = list(inputs.draw(stream(3, "known"), KNOWN))
        return TimingSetup(task=task, case=case, inputs=inputs, device="cpu", drawn=drawn)

    return make


def showing(setup, of):
    """A benchmark that has shown what `of` makes of each known call's input."""
    shown = []
    for choices in setup.known():
        (x,) = setup.inputs.at(setup.task, setup.case, choices).tensors.values()
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
        shown.append(ShownResult(at=choices, seen=seen))
    return SimpleNamespace(shown=shown, spot_checks=[], sides=[None])


def sampling(setup, *lines):
    """A benchmark that has spot-checked calls on all known contents, in turn."""
    at = tuple(setup.known()[i % KNOWN] for i in range(len(lines)))
    result = TensorResult(
        dtype="float32",
        shape=(len(lines), 3),
        strides=(3, 1),
        device="cpu",
        data=b"".join(line.numpy().tobytes() for line in lines),
    )
    seen = Observation(ended="returned", results=(result,))
    spot_checks = [SpotChecked(at=at, spots=((127, 0, 5),), seen=seen)]
    return SimpleNamespace(shown=[], spot_checks=spot_checks, sides=[None])


def line_of(setup, index):
    """The right elements of a sampled call."""
    inputs = setup.inputs.at(setup.task, setup.case, setup.known()[index % KNOWN])
    (x,) = inputs.tensors.values()
    return x.clamp(min=0).reshape(-1)[[127, 0, 5]]


def test_all_contents_have_results_that_the_judge_knows(setup):
    made = setup()
    assert made.known() == made.drawn
    assert made.known() is not made.drawn


def test_right_results_are_graded_as_such(setup):
    made = setup()
    graded = made.graded(showing(made, lambda x: x.clamp(min=0)))
    assert plain(graded) == {"calls": KNOWN, "wrong": [], "not_graded": None}


def test_each_wrong_result_is_reported(setup):
    made = setup()
    graded = made.graded(showing(made, lambda x: x.clamp(min=0) + 1))
    assert len(graded.wrong) == KNOWN
    assert all(said.startswith("fail: ") for said in graded.wrong)


@pytest.mark.parametrize(("pytorch", "convicts"), [(0, True), (1, False), (None, True)])
def test_a_fault_that_pytorch_shares_convicts_no_candidate(setup, pytorch, convicts):
    made = setup()
    found = showing(made, lambda x: x.clamp(min=0) + 1)
    eager = Side(name="eager", child=None, buffers=8)
    control = Side(name="control", child=None, buffers=8)
    found.sides = [None, control, eager]

    def show_known(side):
        assert side is eager
        if pytorch is None:
            raise SideError("eager", Observation(ended="died"))
        return showing(made, lambda x: x.clamp(min=0) + pytorch).shown

    found.show_known = show_known
    graded = made.graded(found)
    assert bool(graded.wrong) is convicts
    if not convicts:
        assert graded.calls == 0
        assert graded.not_graded.startswith(f"{PYTORCH_TOO}: fail: ")


def test_right_spot_checks_are_graded_call_by_call(setup):
    made = setup()
    graded = made.graded(sampling(made, *(line_of(made, i) for i in range(5))))
    assert plain(graded) == {"calls": 5, "wrong": [], "not_graded": None}


def test_a_checked_call_that_did_no_work_is_reported(setup):
    made = setup()
    lines = [line_of(made, i) for i in range(5)]
    graded = made.graded(sampling(made, *lines[:3], lines[3] - 1, lines[4]))
    (said,) = graded.wrong
    assert said.startswith("fail: samples of 5 calls: 3 of 15 elements are wrong")


def test_elements_are_counted_where_each_is_judged_by_itself(setup):
    made = setup()
    assert made.elements() == ()
    made.known()
    assert made.elements() == (128,)


@pytest.mark.parametrize("name", ["log1p", "masked_select"])
def test_results_that_are_right_as_a_whole_or_of_any_size_are_not_counted(setup, name):
    whole = setup(replace(find(f"kernelbenchx/{name}"), perf=()))
    assert whole.known()
    assert whole.elements() == ()


@pytest.mark.parametrize(("foreign", "elements"), [(False, ()), (True, (128,))])
def test_shapes_of_foreign_references_come_from_real_calls(setup, foreign, elements):
    selecting = lambda input, **_: input.clamp(min=0)[input == input].reshape(input.shape)
    made = setup(replace(TASK, reference=selecting, foreign=foreign))
    assert made.known()
    assert made.elements() == elements


def failing(lacking):
    """The task, whose reference lacks memory for as long as this list has something in it."""

    def reference(input, **_):
        if lacking:
            raise RuntimeError("no memory")
        return input.clamp(min=0)

    return replace(TASK, reference=reference)


def test_a_reference_that_fails_knows_nothing_and_says_why(setup):
    made = setup(failing(["memory"]))
    assert made.known() == []
    graded = made.graded(SimpleNamespace(shown=[], spot_checks=[]))
    assert made.elements() == ()
    assert plain(graded) == {"calls": 0, "wrong": [], "not_graded": "RuntimeError: no memory"}


def test_a_shared_child_is_paused_with_its_process():
    session = ScriptedSession(WithoutProcesses(), None, "time")
    shared = SharedChild(session)
    shared.pause()
    assert session.paused
    assert shared.paused
    shared.resume()
    assert not session.paused
    assert not shared.paused


@pytest.mark.parametrize(
    ("graphs", "later"),
    [
        (Graphs.CAPTURED, Graphs.UNTRIED),
        (Graphs.UNTRIED, Graphs.UNTRIED),
        (Graphs.REFUSED, Graphs.REFUSED),
    ],
)
def test_a_restarted_baseline_gets_its_inputs_for_all_cases(graphs, later):
    """A baseline that cannot be captured need not fail again."""
    restarts = []
    shared = SharedChild(SimpleNamespace(restart=lambda: restarts.append(1)))
    shared.sides = [
        Side(
            name="eager",
            child=shared,
            slot=i,
            buffers=8,
            readiness=Readiness.READY,
            graphs=graphs,
        )
        for i in range(2)
    ]
    shared.restart()
    assert len(restarts) == 1
    for side in shared.sides:
        assert (side.buffers, side.readiness, side.graphs) == (0, Readiness.NEW, later)


def baselines_of(task, *names, runner=None, **more):
    return TaskBaselines(
        task,
        timed_cases(task),
        BaselineProcesses(runner or WithoutProcesses()),
        baselines=dict.fromkeys(names, baseline_sources(task)["eager"]),
        seed=3,
        background=BackgroundWork(),
        **more,
    )


def test_a_baseline_without_buffers_frees_nothing():
    messages = []
    runner = WithoutProcesses(messages=lambda message: messages.append(message) or ANSWER)
    task_baselines = baselines_of(TASK, "eager", "compile", runner=runner)
    _, compiled = task_baselines.of(task_baselines.cases[0]).sides
    compiled.buffers, compiled.readiness = 8, Readiness.READY
    assert task_baselines.park()
    assert messages == [AllocateBuffers(count=0, slot=1)]


@pytest.mark.parametrize(
    ("foreign", "most", "ahead"), [(False, 0, False), (True, 0, True), (False, 2**20, True)]
)
def test_small_or_foreign_expected_results_are_computed_ahead(foreign, most, ahead):
    task_baselines = baselines_of(replace(TASK, foreign=foreign), due_ahead_bytes=most)
    made = task_baselines.of(task_baselines.cases[0])
    task_baselines.warm_up(Effort())
    assert len(made.expected) == KNOWN * ahead
    # Those that wait for another turn hold nothing.
    task_baselines.park()
    assert made.expected == []


def test_expected_results_that_failed_ahead_are_computed_again(setup):
    lacking = ["memory"]
    made = setup(failing(lacking))
    made.compute_references()
    assert made.expected == []
    lacking.clear()
    assert made.known() == made.drawn


def test_what_the_judge_cannot_grade_is_no_fault_of_the_candidate(setup):
    made = setup()
    found = showing(made, lambda x: x.clamp(min=0))
    # A mistake of ours.
    found.shown[0] = ShownResult(at=found.shown[0].at, seen=None)
    graded = made.graded(found)
    assert graded.wrong == ()
    assert graded.not_graded.startswith("AttributeError: ")
