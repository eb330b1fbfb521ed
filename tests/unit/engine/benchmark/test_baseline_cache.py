"""BaselineCache of tasks, with real baselines on the CPU; nobody is timed."""

import threading
from dataclasses import replace

import pytest
import torch

from kerneltruth.clock.protocol.effort import Effort
from kerneltruth.clock.protocol.sides import Readiness, SideError
from kerneltruth.engine.benchmark.baseline_cache import MOST_AT_ONCE, BaselineCache
from kerneltruth.engine.benchmark.baselines import baseline_sources
from kerneltruth.engine.benchmark.task_baselines import TaskBaselines
from kerneltruth.runner.host import Runner, Session
from kerneltruth.runner.protocol import Loaded, Observation
from kerneltruth.tasks.registry import find

pytestmark = pytest.mark.processes

SHAPES = ({"M": 4, "N": 32}, {"M": 8, "N": 64})
SOFTMAX, RELU, GELU = (
    replace(find(f"kernelbenchx/{name}"), perf=SHAPES) for name in ("softmax", "relu", "gelu")
)
EFFORT = Effort(batch_s=1e-4, graph_batch_s=3e-4, memory_bytes=2**18, deadline_s=120.0)


@pytest.fixture(scope="module")
def runner():
    with Runner(device="cpu") as runner:
        yield runner


@pytest.fixture
def opened(runner, monkeypatch):
    """Sources of the processes that were asked for."""
    sources, open_ = [], runner.open

    def remember(candidate, **how):
        sources.append(candidate)
        return open_(candidate, **how)

    monkeypatch.setattr(runner, "open", remember)
    return sources


@pytest.fixture
def cache(runner):
    made = []

    def make(*baselines, sources=baseline_sources):
        made.append(BaselineCache(runner, baselines=baselines, seed=5, sources=sources))
        return made[-1]

    yield make
    for each in made:
        each.close()


def processes(opened, task):
    """How often eager PyTorch was begun for a task."""
    return opened.count(baseline_sources(task)["eager"])


def test_a_task_gets_no_process_before_it_is_needed(cache, opened):
    task_baselines = cache("eager").begin(SOFTMAX)
    assert opened == []
    sides = [task_baselines.of(case).sides for case in task_baselines.cases]
    assert [len(each) for each in sides] == [1, 1]
    assert processes(opened, SOFTMAX) == 1


def test_tasks_that_got_ready_meet_their_baselines_warm(cache, opened):
    one = cache("eager")
    one.ready([SOFTMAX, RELU], EFFORT)
    for task in (SOFTMAX, RELU):
        task_baselines = one.begin(task)
        assert all(
            side.readiness is Readiness.WARMED_UP
            for case in task_baselines.cases
            for side in task_baselines.of(case).sides
        )
        assert processes(opened, task) == 1


def test_a_task_in_hand_keeps_its_grounds_and_gets_them_back(cache):
    one = cache("eager")
    one.ready([SOFTMAX], EFFORT)
    task_baselines = one.begin(SOFTMAX)
    assert one.begin(SOFTMAX) is task_baselines
    one.begin(RELU)
    assert one.begin(SOFTMAX) is task_baselines


def test_other_shapes_or_another_dtype_are_another_task(cache):
    one = cache("eager")
    task_baselines = one.begin(SOFTMAX)
    other = one.begin(replace(SOFTMAX, perf=SHAPES[:1]))
    half = one.begin(SOFTMAX, "float16")
    assert len({id(each) for each in (task_baselines, other, half)}) == 3
    assert [len(each.cases) for each in (task_baselines, other, half)] == [2, 1, 2]


def test_who_was_in_hand_longest_ago_makes_room(cache, monkeypatch):
    monkeypatch.setattr("kerneltruth.engine.benchmark.baseline_cache.MOST_AT_ONCE", 2)
    one = cache("eager")
    for task in (SOFTMAX, RELU, SOFTMAX, GELU):
        one.begin(task)
    assert one.tasks == (SOFTMAX.key, GELU.key)
    # And who is needed next stays.
    one.ready([SOFTMAX, RELU], EFFORT)
    assert {*one.tasks} == {SOFTMAX.key, RELU.key}


def test_room_is_made_by_all_that_wait_and_not_by_the_task_in_hand(cache):
    one = cache("eager")
    assert not one.free_memory()
    one.begin(SOFTMAX)
    assert not one.free_memory()
    one.begin(RELU)
    one.begin(GELU)
    assert one.free_memory()
    assert one.tasks == (GELU.key,)
    assert not one.free_memory()


def test_room_is_made_first_by_those_who_had_their_turn_and_then_by_the_last(cache, monkeypatch):
    one = cache("eager")
    for task in (SOFTMAX, RELU, GELU):
        one._made(task, None)
    one.begin(SOFTMAX)
    one.begin(RELU)
    softmax, relu, gelu = SOFTMAX.key, RELU.key, GELU.key
    assert {*one.tasks} == {softmax, relu, gelu}
    assert one.free_memory()
    assert {*one.tasks} == {relu, gelu}
    # Who gets ready anew is waited for.
    monkeypatch.setattr(TaskBaselines, "warm_up", lambda task_baselines, effort, room: None)
    one.ready([SOFTMAX, GELU], EFFORT)
    one.begin(SOFTMAX)
    one._had.clear()
    assert {*one.tasks} == {softmax, relu, gelu}
    one.free_memory()
    assert one.tasks == (gelu, softmax)


def test_where_the_device_is_full_nobody_gets_ready_ahead_of_time(cache, monkeypatch):
    one = cache("eager")
    monkeypatch.setattr(one, "_room", lambda: False)
    one.ready([SOFTMAX], EFFORT)
    assert one.tasks == (SOFTMAX.key,)
    assert one.begin(SOFTMAX)._made == {}


def test_on_a_full_device_those_who_had_their_turn_leave_when_others_get_ready(cache, monkeypatch):
    one = cache("eager")
    one.begin(SOFTMAX)
    one.begin(RELU)
    monkeypatch.setattr(one, "_room", lambda: False)
    one.ready([RELU, GELU], EFFORT)
    assert one.tasks == (RELU.key, GELU.key)


@pytest.mark.parametrize(("free", "room"), [(30, True), (20, False)])
def test_how_full_a_device_is_is_asked_of_it(runner, monkeypatch, free, room):
    one = BaselineCache(runner, baselines=("eager",), seed=5, sources=baseline_sources)
    assert one._room()
    one._on_gpu = True
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (free * 2**30, 80 * 2**30))
    assert one._room() is room


def test_baselines_of_which_one_was_lost_begin_anew_at_the_next_turn(cache, opened):
    one = cache("eager")
    one.ready([SOFTMAX, RELU], EFFORT)
    task_baselines = one.begin(SOFTMAX)
    task_baselines.of(task_baselines.cases[0]).sides[0].child.session.close()
    one.begin(RELU)
    assert one.tasks == (RELU.key,)
    one.ready([SOFTMAX], EFFORT)
    assert processes(opened, SOFTMAX) == 2


def test_a_baseline_that_was_lost_in_hand_begins_anew_when_its_task_gets_ready_again(cache, opened):
    """As where a run has candidates of one task only."""
    one = cache("eager")
    one.ready([SOFTMAX], EFFORT)
    task_baselines = one.begin(SOFTMAX)
    setup = task_baselines.of(task_baselines.cases[0])
    one.ready([SOFTMAX], EFFORT)
    assert one.begin(SOFTMAX) is task_baselines
    setup.leave_out(SideError("eager", Observation(ended="lost", message="it is gone")))
    one.ready([SOFTMAX], EFFORT)
    anew = one.begin(SOFTMAX)
    assert [len(anew.of(case).sides) for case in anew.cases] == [1, 1]
    assert processes(opened, SOFTMAX) == 2


def test_nobody_is_left_on_the_device_who_is_not_kept(cache, runner, monkeypatch):
    monkeypatch.setattr("kerneltruth.engine.benchmark.baseline_cache.MOST_AT_ONCE", 2)
    one, before = cache("eager"), len(runner._sessions)

    def left():
        return len(runner._sessions) - before

    one.ready([SOFTMAX, RELU], EFFORT)
    one.begin(SOFTMAX)
    assert left() == 2
    one.ready([GELU], EFFORT)
    assert left() == 2
    one.begin(GELU)
    one.free_memory()
    assert (one.tasks, left()) == ((GELU.key,), 1)
    # One that was lost takes the others of its task along.
    task_baselines = one.begin(GELU)
    task_baselines.of(task_baselines.cases[0]).leave_out(
        SideError("eager", Observation(ended="lost", message="it is gone"))
    )
    one.begin(SOFTMAX)
    assert (one.tasks, left()) == ((SOFTMAX.key,), 0)
    one.ready([SOFTMAX], EFFORT)
    one.close()
    assert left() == 0


def test_a_task_gets_the_process_that_another_has_left(cache, opened, monkeypatch):
    monkeypatch.setattr("kerneltruth.engine.benchmark.baseline_cache.MOST_AT_ONCE", 1)
    one = cache("eager", "compile")
    pids = []
    for task in (SOFTMAX, RELU, GELU):
        one.ready([task], EFFORT)
        task_baselines = one.begin(task)
        setup = task_baselines.of(task_baselines.cases[0])
        assert [side.readiness is Readiness.WARMED_UP for side in setup.sides] == [True, True]
        # Each gives what its own task asks for.
        assert setup.known()
        pids.append(setup.sides[0].child.session._link.pid)
    assert len({*pids}) == 1
    assert len(opened) == 1


def test_a_baseline_that_has_left_its_process_asks_it_for_nothing(cache, monkeypatch):
    monkeypatch.setattr("kerneltruth.engine.benchmark.baseline_cache.MOST_AT_ONCE", 1)
    one = cache("eager")
    before = one.begin(SOFTMAX)
    child = before.of(before.cases[0]).sides[0].child
    one.begin(RELU)
    assert child.errand(Loaded()).ended == "lost"
    # Nor does it begin another one.
    child.restart()
    assert child.errand(Loaded()).ended == "lost"


def test_a_process_that_is_at_work_is_ended_and_not_left(cache, monkeypatch):
    monkeypatch.setattr("kerneltruth.engine.benchmark.baseline_cache.MOST_AT_ONCE", 1)
    one = cache("eager")
    before = one.begin(SOFTMAX)
    child = before.of(before.cases[0]).sides[0].child
    with child._in_use:
        one.begin(RELU)
        assert child.session._link is None


def test_no_process_begins_while_laps_run(cache, opened):
    """Its context on the device would disturb them."""
    one = cache("eager")
    task_baselines = one.begin(SOFTMAX)
    preparing = threading.Thread(target=task_baselines.of, args=(task_baselines.cases[0],))
    with one.background.batches():
        preparing.start()
        preparing.join(timeout=0.3)
        assert preparing.is_alive()
        assert opened == []
    preparing.join(timeout=60)
    assert processes(opened, SOFTMAX) == 1


@pytest.fixture
def waited(monkeypatch):
    """Whether each end of a process was waited for."""
    found, close = [], Session.close

    def remember(session, *, wait=True):
        found.append(wait)
        close(session, wait=wait)

    monkeypatch.setattr(Session, "close", remember)
    return found


def test_room_is_there_when_it_has_been_made(cache, waited, monkeypatch):
    monkeypatch.setattr("kerneltruth.engine.benchmark.baseline_cache.MOST_AT_ONCE", 2)
    one = cache("eager")
    one.ready([SOFTMAX, RELU], EFFORT)
    one.begin(GELU)
    # Of those that were too many a process is left for others.
    assert waited == []
    # All, and those of whom one was lost.
    one.free_memory()
    assert waited == [True] * 2
    one.ready([GELU], EFFORT)
    task_baselines = one.begin(GELU)
    task_baselines.of(task_baselines.cases[0]).leave_out(
        SideError("eager", Observation(ended="lost", message="it is gone"))
    )
    one.begin(RELU)
    assert waited == [True] * 3


@pytest.mark.parametrize("wait", [False, True])
def test_the_end_is_waited_for_or_only_asked_for(cache, waited, wait):
    one = cache("eager")
    one.ready([SOFTMAX], EFFORT)
    one.close(wait=wait)
    assert waited == [wait]
    # And another task may have its turn after it.
    one.begin(RELU)
    assert one.tasks == (RELU.key,)


def test_baselines_get_ready_side_by_side(cache, monkeypatch):
    one, meeting = cache("eager"), threading.Barrier(2)
    for task in (SOFTMAX, RELU):
        task_baselines = one.begin(task)
        monkeypatch.setattr(
            task_baselines, "warm_up", lambda effort, room: meeting.wait(timeout=30)
        )
    one.ready([SOFTMAX, RELU], EFFORT)
    assert not meeting.broken


def test_contents_follow_from_the_seed(runner):
    drawn, seeds = [], []
    for seed in (5, 5, 6):
        one = BaselineCache(runner, baselines=(), seed=seed, sources=baseline_sources)
        task_baselines = one.begin(SOFTMAX)
        seeds.append([case.seed for case in task_baselines.cases])
        drawn.append(str(task_baselines.of(task_baselines.cases[0]).drawn))
        one.close()
    for found in (drawn, seeds):
        assert found[0] == found[1] != found[2]


def test_what_cannot_get_ready_keeps_nobody_else_from_it(cache, monkeypatch):
    one = cache("eager")
    task_baselines = one.begin(RELU)
    monkeypatch.setattr(
        task_baselines, "warm_up", lambda effort, room: (_ for _ in ()).throw(MemoryError())
    )
    one.ready([RELU, SOFTMAX], EFFORT)
    other = one.begin(SOFTMAX)
    assert all(
        side.readiness is Readiness.WARMED_UP
        for case in other.cases
        for side in other.of(case).sides
    )


def test_where_kernels_are_interpreted_the_control_is_no_baseline(cache):
    task_baselines = cache("eager", "control").begin(
        replace(find("softmax"), perf=find("softmax").perf[:1])
    )
    assert [side.name for side in task_baselines.of(task_baselines.cases[0]).sides] == ["eager"]


def test_on_a_gpu_the_control_is_one(cache):
    one = cache("eager", "control")
    one._on_gpu = True
    assert {*one.begin(find("softmax"))._baselines} == {"eager", "control"}


def test_at_the_end_nobody_waits_any_more(cache):
    one = cache("eager")
    one.ready([SOFTMAX, RELU], EFFORT)
    one.begin(SOFTMAX)
    one.close()
    assert one.tasks == ()


@pytest.mark.parametrize(
    ("gigabytes", "baselines", "tasks"),
    [
        (40, ("eager", "compile", "control"), 11),
        (80, ("eager", "compile"), MOST_AT_ONCE),
        (24, ("eager",), 16),
        (1, (), 1),
    ],
)
def test_as_many_tasks_get_ready_as_a_part_of_the_device_has_room_for(
    cache, monkeypatch, gigabytes, baselines, tasks
):
    monkeypatch.setattr(
        "kerneltruth.engine.benchmark.baseline_cache.memory_of", lambda device: gigabytes * 2**30
    )
    one = cache(*baselines)
    assert one.capacity == MOST_AT_ONCE
    one._on_gpu = True
    assert one.capacity == tasks


def test_what_pytorch_makes_of_a_function_is_in_one_process(cache, opened):
    task_baselines = cache("eager", "compile").begin(SOFTMAX)
    sides = [side for case in task_baselines.cases for side in task_baselines.of(case).sides]
    assert [side.compiled for side in sides] == [None, "default"] * 2
    assert len({id(side.child) for side in sides}) == 1
    assert [side.slot for side in sides] == [0, 1, 2, 3]
    assert processes(opened, SOFTMAX) == 1


def test_a_turn_waits_until_its_task_is_ready(cache, monkeypatch):
    one, go_on, ended = cache("eager"), threading.Event(), []
    task_baselines = one._made(RELU, None)

    def warm_up(effort, room):
        go_on.wait(30)
        ended.append(True)

    monkeypatch.setattr(task_baselines, "warm_up", warm_up)
    one.prepare_in_background([RELU], EFFORT)
    # Others have theirs meanwhile.
    one.begin(SOFTMAX)
    assert ended == []
    go_on.set()
    assert one.begin(RELU) is task_baselines
    assert ended == [True]


def test_what_is_due_to_the_next_task_is_found_out_ahead_whatever_memory_it_takes(
    cache, monkeypatch
):
    monkeypatch.setattr("kerneltruth.engine.benchmark.task_baselines.DUE_AHEAD_BYTES", 0)
    one = cache("eager")
    one.ready([SOFTMAX, RELU, GELU], EFFORT)
    relu, gelu = (one._made(task, None) for task in (RELU, GELU))
    assert not any(setup.expected for setup in relu._made.values())
    one.begin(SOFTMAX)
    one._coming[one._waiting()[0]].result()
    assert all(setup.expected for setup in relu._made.values())
    assert not any(setup.expected for setup in gelu._made.values())


def test_baselines_that_end_while_they_get_ready_leave_no_process(cache, runner, monkeypatch):
    one, before = cache("eager"), len(runner._sessions)
    one.begin(SOFTMAX)
    one.prepare_in_background([RELU, GELU], EFFORT)
    one.free_memory()
    one.free_memory()
    one.begin(GELU)
    one.close(wait=True)
    one._threads.shutdown(wait=True)
    assert len(runner._sessions) == before
