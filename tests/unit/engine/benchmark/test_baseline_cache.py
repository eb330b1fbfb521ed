"""Baselines of tasks that take turns; their processes are scripts, and nothing is timed."""

import threading
import time
from dataclasses import replace

import pytest
from scripted_sessions import GONE, ScriptedMemory, WithoutProcesses

from kerneltruth.clock.protocol.effort import Effort
from kerneltruth.clock.protocol.sides import Readiness, SideError
from kerneltruth.engine.benchmark.baseline_cache import MOST_AT_ONCE, BaselineCache
from kerneltruth.engine.benchmark.baselines import baseline_sources
from kerneltruth.engine.benchmark.task_baselines import TaskBaselines
from kerneltruth.runner.protocol import Loaded
from kerneltruth.tasks.registry import find

SHAPES = ({"M": 4, "N": 32}, {"M": 8, "N": 64})
SOFTMAX, RELU, GELU = (
    replace(find(f"kernelbenchx/{name}"), perf=SHAPES) for name in ("softmax", "relu", "gelu")
)
EFFORT = Effort(batch_s=1e-4, graph_batch_s=3e-4, memory_bytes=2**18, deadline_s=120.0)
PATIENCE_S = 30
GB = 2**30


@pytest.fixture
def runner():
    return WithoutProcesses()


@pytest.fixture
def cache(runner):
    made = []

    def make(*baselines, device=None, **more):
        settings = {"baselines": baselines, "seed": 5, "sources": baseline_sources} | more
        made.append(BaselineCache(device or runner, **settings))
        return made[-1]

    yield make
    for each in made:
        each.close()


def opened(runner, task):
    """How often a process was begun for eager PyTorch of a task."""
    return runner.opened.count(baseline_sources(task)["eager"])


def sides(task_baselines):
    return [side for case in task_baselines.cases for side in task_baselines.of(case).sides]


def lose(task_baselines):
    """Have a baseline of its first case fail for good."""
    setup = task_baselines.of(task_baselines.cases[0])
    setup.leave_out(SideError("eager", GONE))


def warming(**warm_up):
    """Makes baselines of which those of some tasks, by name, warm up as these functions say."""

    def make(task, *about, **more):
        made = TaskBaselines(task, *about, **more)
        if task.name in warm_up:
            made.warm_up = warm_up[task.name]
        return made

    return make


def test_a_task_gets_no_process_before_it_is_needed(cache, runner):
    task_baselines = cache("eager").begin(SOFTMAX)
    assert runner.opened == []
    assert len(sides(task_baselines)) == 2
    assert opened(runner, SOFTMAX) == 1


def test_tasks_that_got_ready_meet_their_baselines_warm(cache, runner):
    one = cache("eager")
    one.ready([SOFTMAX, RELU], EFFORT)
    for task in (SOFTMAX, RELU):
        assert {side.readiness for side in sides(one.begin(task))} == {Readiness.WARMED_UP}
        assert opened(runner, task) == 1


def test_the_current_task_keeps_its_setups_and_gets_them_back(cache):
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


def test_the_task_that_waited_longest_makes_room(cache):
    one = cache("eager", most=2)
    for task in (SOFTMAX, RELU, SOFTMAX, GELU):
        one.begin(task)
    assert one.tasks == (SOFTMAX.key, GELU.key)
    # And who is needed next stays.
    one.ready([SOFTMAX, RELU], EFFORT)
    assert {*one.tasks} == {SOFTMAX.key, RELU.key}


def test_room_is_made_by_waiting_tasks_and_not_by_the_current_one(cache):
    one = cache("eager")
    assert not one.free_memory()
    one.begin(SOFTMAX)
    assert not one.free_memory()
    one.begin(RELU)
    one.begin(GELU)
    assert one.free_memory()
    assert one.tasks == (GELU.key,)
    assert not one.free_memory()


def test_tasks_that_had_their_turn_make_room_first(cache):
    one = cache("eager")
    one.ready([SOFTMAX, RELU, GELU], EFFORT)
    one.begin(SOFTMAX)
    one.begin(RELU)
    assert one.free_memory()
    assert {*one.tasks} == {RELU.key, GELU.key}
    # One that gets ready anew is waited for.
    one.ready([SOFTMAX, GELU], EFFORT)
    one.begin(SOFTMAX)
    assert one.free_memory()
    assert one.tasks == (GELU.key, SOFTMAX.key)


def test_if_no_waiting_task_had_a_turn_the_last_make_room(cache):
    one = cache("eager")
    one.ready([SOFTMAX, RELU, GELU], EFFORT)
    one.begin(SOFTMAX)
    assert one.free_memory()
    assert one.tasks == (RELU.key, SOFTMAX.key)


@pytest.mark.parametrize(("free", "begun"), [(30, 1), (20, 0)])
def test_on_a_full_device_no_task_is_prepared_ahead(cache, runner, free, begun):
    one = cache("eager", memory=ScriptedMemory(total=80 * GB, free=free * GB))
    one.ready([SOFTMAX], EFFORT)
    assert one.tasks == (SOFTMAX.key,)
    assert len(runner.opened) == begun


def test_on_a_full_device_tasks_that_had_their_turn_leave_for_others(cache):
    one = cache("eager", memory=ScriptedMemory(total=80 * GB, free=0))
    one.begin(SOFTMAX)
    one.begin(RELU)
    one.ready([RELU, GELU], EFFORT)
    assert one.tasks == (RELU.key, GELU.key)


def test_a_tasks_baselines_restart_at_its_next_turn_if_one_was_lost(cache, runner):
    one = cache("eager")
    one.ready([SOFTMAX, RELU], EFFORT)
    sides(one.begin(SOFTMAX))[0].child.session.close()
    one.begin(RELU)
    assert one.tasks == (RELU.key,)
    one.ready([SOFTMAX], EFFORT)
    assert opened(runner, SOFTMAX) == 2


def test_a_lost_baseline_of_the_current_task_restarts_when_it_is_prepared_again(cache, runner):
    """As where a run has candidates of one task only."""
    one = cache("eager")
    one.ready([SOFTMAX], EFFORT)
    task_baselines = one.begin(SOFTMAX)
    one.ready([SOFTMAX], EFFORT)
    assert one.begin(SOFTMAX) is task_baselines
    lose(task_baselines)
    one.ready([SOFTMAX], EFFORT)
    assert len(sides(one.begin(SOFTMAX))) == 2
    assert opened(runner, SOFTMAX) == 2


def test_no_baseline_is_left_on_the_device_unless_kept(cache, runner):
    one = cache("eager", most=2)
    one.ready([SOFTMAX, RELU], EFFORT)
    one.begin(SOFTMAX)
    assert runner.left == 2
    one.ready([GELU], EFFORT)
    assert runner.left == 2
    one.begin(GELU)
    one.free_memory()
    assert (one.tasks, runner.left) == ((GELU.key,), 1)
    # One that was lost takes the others of its task along.
    lose(one.begin(GELU))
    one.begin(SOFTMAX)
    assert (one.tasks, runner.left) == ((SOFTMAX.key,), 0)
    one.ready([SOFTMAX], EFFORT)
    one.close()
    assert runner.left == 0


def test_a_task_gets_the_process_that_another_has_left(cache, runner):
    one = cache("eager", "compile", most=1)
    for task in (SOFTMAX, RELU, GELU):
        one.ready([task], EFFORT)
        setup = one.begin(task).of(one.begin(task).cases[0])
        assert [side.readiness for side in setup.sides] == [Readiness.WARMED_UP] * 2
        (session,) = runner.sessions
        assert session.candidate == baseline_sources(task)["eager"]
        # Each gives what its own task asks for.
        assert setup.known()


def test_a_baseline_that_has_left_its_process_sends_it_nothing(cache):
    one = cache("eager", most=1)
    child = sides(one.begin(SOFTMAX))[0].child
    one.begin(RELU)
    assert child.request(Loaded()).ended == "lost"
    # Nor does it begin another one.
    child.restart()
    assert child.request(Loaded()).ended == "lost"


def test_a_process_that_is_at_work_is_ended_and_not_left(cache, runner):
    one, at_work, go_on = cache("eager", most=1), threading.Event(), threading.Event()
    child = sides(one.begin(SOFTMAX))[0].child

    def slowly(message):
        at_work.set()
        go_on.wait(PATIENCE_S)
        return GONE

    runner.messages = slowly
    working = threading.Thread(target=child.request, args=(Loaded(),))
    working.start()
    assert at_work.wait(PATIENCE_S)
    one.begin(RELU)
    assert runner.left == 0
    go_on.set()
    working.join()


def test_no_process_starts_while_batches_run(cache, runner):
    """Its context on the device would disturb them."""
    one = cache("eager")
    task_baselines = one.begin(SOFTMAX)
    preparing = threading.Thread(target=task_baselines.of, args=(task_baselines.cases[0],))
    with one.background.batches():
        preparing.start()
        preparing.join(timeout=0.3)
        assert preparing.is_alive()
        assert runner.opened == []
    preparing.join(PATIENCE_S)
    assert opened(runner, SOFTMAX) == 1


def test_room_is_there_when_it_has_been_made(cache, runner):
    one = cache("eager", most=2)
    one.ready([SOFTMAX, RELU], EFFORT)
    one.begin(GELU)
    # A process of those beyond the limit is left for others.
    assert runner.waited == []
    # All, and those of whom one was lost.
    one.free_memory()
    assert runner.waited == [True] * 2
    one.ready([GELU], EFFORT)
    lose(one.begin(GELU))
    one.begin(RELU)
    assert runner.waited == [True] * 3


@pytest.mark.parametrize("wait", [False, True])
def test_the_end_is_waited_for_or_only_requested(cache, runner, wait):
    one = cache("eager")
    one.ready([SOFTMAX], EFFORT)
    one.close(wait=wait)
    assert runner.waited == [wait]
    # And another task may have its turn after it.
    one.begin(RELU)
    assert one.tasks == (RELU.key,)


def test_baselines_are_prepared_side_by_side(cache):
    meeting = threading.Barrier(2)
    meet = lambda effort, room: meeting.wait(PATIENCE_S)
    cache("eager", make=warming(softmax=meet, relu=meet)).ready([SOFTMAX, RELU], EFFORT)
    assert not meeting.broken


def test_contents_follow_from_the_seed(cache):
    drawn, seeds = [], []
    for seed in (5, 5, 6):
        task_baselines = cache(seed=seed).begin(SOFTMAX)
        seeds.append([case.seed for case in task_baselines.cases])
        drawn.append(str(task_baselines.of(task_baselines.cases[0]).drawn))
    for found in (drawn, seeds):
        assert found[0] == found[1] != found[2]


def test_a_task_that_cannot_be_prepared_does_not_block_others(cache):
    def fails(effort, room):
        raise MemoryError

    one = cache("eager", make=warming(relu=fails))
    one.ready([RELU, SOFTMAX], EFFORT)
    assert {side.readiness for side in sides(one.begin(SOFTMAX))} == {Readiness.WARMED_UP}


@pytest.mark.parametrize(
    ("device", "names"), [("cpu", {"eager"}), ("cuda:0", {"eager", "control"})]
)
def test_where_kernels_are_interpreted_the_control_is_no_baseline(cache, device, names):
    made = []

    def make(*about, baselines, **more):
        made.append(baselines)
        return TaskBaselines(*about, baselines=baselines, **more)

    runner, memory = WithoutProcesses(device), ScriptedMemory()
    cache("eager", "control", device=runner, memory=memory, make=make).begin(find("softmax"))
    assert {*made[0]} == names


def test_at_the_end_no_thread_waits_any_more(cache):
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
    cache, gigabytes, baselines, tasks
):
    assert cache(*baselines).capacity == MOST_AT_ONCE
    assert cache(*baselines, memory=ScriptedMemory(total=gigabytes * GB)).capacity == tasks


def test_eager_and_compiled_pytorch_share_a_process(cache, runner):
    found = sides(cache("eager", "compile").begin(SOFTMAX))
    assert [side.compiled for side in found] == [None, "default"] * 2
    assert len({id(side.child) for side in found}) == 1
    assert [side.slot for side in found] == [0, 1, 2, 3]
    assert opened(runner, SOFTMAX) == 1


def test_a_turn_waits_until_its_task_is_ready(cache):
    go_on, ended = threading.Event(), []

    def slowly(effort, room):
        go_on.wait(PATIENCE_S)
        ended.append(True)

    one = cache("eager", make=warming(relu=slowly))
    one.prepare_in_background([RELU], EFFORT)
    # Other tasks have their turns in between.
    one.begin(SOFTMAX)
    assert ended == []
    go_on.set()
    one.begin(RELU)
    assert ended == [True]


def test_expected_results_of_the_next_task_are_computed_ahead_at_any_size(cache):
    made = {}

    def make(task, *about, **more):
        made[task.key] = TaskBaselines(task, *about, due_ahead_bytes=0, **more)
        return made[task.key]

    def to_begin(task):
        return [bool(made[task.key].of(case).expected) for case in made[task.key].cases]

    one = cache("eager", make=make)
    one.ready([SOFTMAX, RELU, GELU], EFFORT)
    assert (to_begin(RELU), to_begin(GELU)) == ([False] * 2, [False] * 2)
    one.begin(SOFTMAX)
    end = time.monotonic() + PATIENCE_S
    while not all(to_begin(RELU)) and time.monotonic() < end:
        time.sleep(0.005)
    assert (to_begin(RELU), to_begin(GELU)) == ([True] * 2, [False] * 2)


def test_baselines_that_end_during_preparation_leave_no_process(cache, runner):
    one, begun, go_on = cache("eager"), threading.Event(), threading.Event()
    open_one = runner.open

    def slowly(*about, **more):
        begun.set()
        go_on.wait(PATIENCE_S)
        return open_one(*about, **more)

    runner.open = slowly
    one.prepare_in_background([RELU], EFFORT)
    assert begun.wait(PATIENCE_S)
    closing = threading.Thread(target=one.close, kwargs={"wait": True})
    closing.start()
    go_on.set()
    closing.join(PATIENCE_S)
    assert (len(runner.opened), runner.left) == (1, 0)
