"""Candidates timed beside baselines, in real children on the CPU; no time is asserted."""

import time
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import pytest
from msgspec import UNSET
from scripted_sessions import GONE, ScriptedMemory

from blank_documents import document
from kerneltruth.cases.philox import stream
from kerneltruth.clock.comparison import Comparison
from kerneltruth.clock.device.telemetry import NoTelemetry
from kerneltruth.clock.protocol.effort import Effort
from kerneltruth.clock.protocol.sides import Readiness, Side, SideError
from kerneltruth.clock.schedule.benchmark import InterleavedBenchmark
from kerneltruth.clock.statistics.summary import Interval
from kerneltruth.documents.model import plain
from kerneltruth.documents.timing import ShapeTimes
from kerneltruth.engine.benchmark.baselines import baseline_sources
from kerneltruth.engine.benchmark.benchmarker import Benchmarker
from kerneltruth.engine.benchmark.machine import BaselineNearLimit, Machine, NearLimit
from kerneltruth.engine.benchmark.measured_shape import MeasuredBaseline, MeasuredShape, retimed
from kerneltruth.errors import UserError
from kerneltruth.runner.candidate import read_candidate
from kerneltruth.runner.host import Runner
from kerneltruth.tasks.registry import find

pytestmark = pytest.mark.processes

SHAPES = ({"M": 4, "N": 32}, {"M": 8, "N": 64})
TASK = replace(find("kernelbenchx/softmax"), perf=SHAPES)
RELU = replace(find("kernelbenchx/relu"), perf=SHAPES)
# Processes are counted here: none is begun only since a ratio happens to lie near 1.
EFFORT = Effort(
    batch_s=1e-4,
    graph_batch_s=3e-4,
    blocks=(6, 6),
    budget_s=0.0,
    memory_bytes=2**18,
    deadline_s=120.0,
    near_tie=0.0,
)

RIGHT = """
import torch
def softmax(input, dim=-1, dtype=None):
    e = (input - input.amax(dim, keepdim=True)).exp()
    return e / e.sum(dim, keepdim=True)
"""
SKIPS = """
import torch
calls = 0
last = None
def softmax(input, dim=-1):
    global calls, last
    calls += 1
    if calls < 5:
        last = torch.softmax(input, dim)
    return last
"""


# Honest work, but for three calls in ten.
LEAVES_OUT = """
import random
import torch
last = None
def softmax(input, dim=-1):
    global last
    if last is None or random.random() > 0.3:
        last = torch.softmax(input, dim)
    return last.clone()
"""
# Where a call's inputs lie, all others' lie too; a pause tells that a batch begins.
ALL_AT_ONCE = """
import time
import torch
made, done = None, 0.0
def softmax(input, dim=-1):
    global made, done
    every = input._base
    if every is None:
        return torch.softmax(input, dim)
    if time.perf_counter() - done > 1e-3:
        made = torch.softmax(every[:, :input.numel()].reshape(-1, *input.shape), dim)
    result = made[input.storage_offset() // every.shape[1]]
    done = time.perf_counter()
    return result
"""


def of(source, task=TASK):
    return read_candidate(source, f"{task.name}.py", task_names=(task.name,), task=task.name)


class Watched:
    """The runner, which remembers what it opened, and how the end of each was asked for."""

    def __init__(self, runner):
        self._runner = runner
        self.opened, self.sessions, self.waited = [], [], []
        self.before_end = lambda candidate: None

    def __getattr__(self, name):
        return getattr(self._runner, name)

    def open(self, candidate, mode="run", **how):
        session = self._runner.open(candidate, mode, **how)
        close = session.close

        def noted(*, wait=True):
            self.before_end(candidate)
            self.waited.append(wait)
            close(wait=wait)

        session.close = noted
        self.opened.append(candidate)
        self.sessions.append(session)
        return session

    def of(self, entry):
        """The sessions of candidates whose entry has this name."""
        return [s for c, s in zip(self.opened, self.sessions, strict=True) if c.entry == entry]


class Looking(Machine):
    """A machine that has a function called whenever it is asked what disturbed a batch."""

    def __init__(self, look):
        super().__init__()
        self.look = look

    def watch(self):
        return SimpleNamespace(
            disturbance=self.look, flags=lambda benchmark: [], conditions=lambda: None
        )


def wait_until(true):
    end = time.monotonic() + 60
    while not true() and time.monotonic() < end:
        time.sleep(0.005)
    assert true()


@pytest.fixture(scope="module")
def runner():
    """A runner whose children see a test's files, which tell them when to fail."""
    with Runner(device="cpu", targets=(), isolation="process") as made:
        yield made


@pytest.fixture
def watched(runner):
    return Watched(runner)


@pytest.fixture
def benchmarker(watched):
    made = []

    def make(*baselines, sources=baseline_sources, new_benchmark=InterleavedBenchmark, **more):
        settings = {"machine": Machine(), "seed": 5, "effort": EFFORT} | more
        made.append(Benchmarker(watched, baselines=baselines, sources=sources, **settings))
        made[-1].new_benchmark = new_benchmark
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture(scope="module")
def timed(runner):
    """A right candidate's document."""
    benchmarker = Benchmarker(
        runner,
        machine=Machine(),
        seed=5,
        effort=EFFORT,
        baselines=("eager", "control"),
        sources=baseline_sources,
    )
    document = benchmarker.time(TASK, of(RIGHT))
    benchmarker.close()
    return document


@pytest.mark.slow
def test_a_right_candidate_is_timed_on_every_shape(timed):
    assert timed.outcome in ("timed", "timing_suspect")
    assert len(timed.shapes) == len(SHAPES)
    for shape in timed.shapes:
        assert shape.candidate_low <= shape.candidate_us <= shape.candidate_high
        assert shape.blocks == 6


def test_its_ratio_to_eager_pytorch_has_an_interval_and_an_outcome(timed):
    for shape in timed.shapes:
        eager = shape.baselines["eager"]
        assert 0 < eager.low <= eager.ratio <= eager.high
        assert eager.outcome in ("faster", "tie", "slower")
        assert eager.us > 0


def test_shown_results_of_every_shape_were_graded(timed):
    for shape in timed.shapes:
        assert shape.graded.calls >= 1
        assert shape.graded.wrong == ()


def test_shapes_that_are_too_large_to_be_timed_are_named(benchmarker):
    one, task = benchmarker("eager"), replace(TASK, perf=(SHAPES[0], {"M": 2**13, "N": 2**13}))
    document = one.time(task, of(RIGHT))
    assert len(document.shapes) == 1
    assert document.not_timed == ("M=8192 N=8192",)
    assert one.time(TASK, of(RIGHT)).not_timed == ()


@pytest.mark.parametrize("pretrained", [True, False])
def test_a_timed_candidate_gets_small_models_where_its_task_has_one(
    benchmarker, watched, pretrained
):
    broken = "raise OSError('no, thanks')\ndef softmax(input): pass"
    task = replace(TASK, perf=SHAPES[:1], pretrained=pretrained)
    assert benchmarker("eager").time(task, of(broken)).outcome != "timed"
    assert {c.pretrained for c in watched.opened if c.source == broken} == {pretrained}


def test_without_a_device_there_is_no_limit_and_the_times_are_those_of_the_host(timed):
    for shape in timed.shapes:
        assert (shape.efficiency, shape.floor_us, shape.bound_by) == (None, None, None)
        assert (shape.method, shape.regime) == ("calls", "cpu")


class Metered(NoTelemetry):
    """A card that takes 100 W, whatever runs."""

    def energy_j(self):
        return 100.0 * time.perf_counter()


@pytest.mark.slow
def test_energy_is_measured_of_each_side_on_each_shape_where_it_is_asked_for(benchmarker):
    machine = Machine(telemetry=Metered())
    effort = replace(EFFORT, energy=True)
    document = benchmarker("eager", machine=machine, effort=effort).time(TASK, of(RIGHT))
    for shape in document.shapes:
        assert shape.energy.idle_watts == pytest.approx(100, rel=0.05)
        assert [*shape.energy.sides] == ["candidate", "eager"]
        assert all(s.joules or "us in the loop" in s.reason for s in shape.energy.sides.values())
    assert document.spent["energy"] > 0


def test_energy_that_nobody_asks_for_is_not_measured(timed):
    assert {shape.energy for shape in timed.shapes} == {UNSET}
    assert "energy" not in timed.spent


def test_the_cost_before_the_steady_state_is_reported(timed):
    assert timed.import_s >= 0
    assert timed.first_call_s >= timed.compile_s >= 0
    assert timed.launch_us is None


@pytest.mark.slow
@pytest.mark.parametrize("near", [float("inf"), 1.0, 0.0], ids=["near", "near for a CPU", "far"])
def test_a_candidate_that_is_nearly_as_quick_is_timed_in_other_processes_too(benchmarker, near):
    slow = RIGHT.replace("    return e", "    for _ in range(200): e = e + 0.0\n    return e")
    document = benchmarker("eager", effort=replace(EFFORT, near_tie=near)).time(TASK, of(slow))
    assert {s.baselines["eager"].outcome for s in document.shapes} == {"slower"}
    assert ("confirming" in document.spent) is (near > 0)
    assert not any("processes_differ" in s.flags for s in document.shapes)


def test_work_that_is_skipped_after_some_calls_is_wrong(benchmarker):
    document = benchmarker("eager").time(TASK, of(SKIPS))
    assert document.outcome == "wrong"
    assert document.detail.startswith(f"{document.shapes[0].summary}: fail: ")
    outcomes = {b.outcome for s in document.shapes for b in s.baselines.values()}
    assert "faster" not in outcomes


@pytest.mark.parametrize("source", [LEAVES_OUT, ALL_AT_ONCE], ids=["leaves out", "all at once"])
def test_most_of_the_work_is_not_all_of_it(benchmarker, source):
    effort = replace(EFFORT, batch_s=2e-3, graph_batch_s=6e-3, memory_bytes=2**20)
    document = benchmarker("eager", effort=effort).time(replace(TASK, perf=SHAPES[:1]), of(source))
    assert document.outcome == "wrong"
    assert "samples of " in " ".join(document.shapes[0].graded.wrong)


def test_a_candidate_that_raises_has_failed_with_its_words(benchmarker):
    document = benchmarker("eager").time(
        TASK, of("def softmax(input):\n    raise OSError('no, thanks')")
    )
    assert document.outcome == "failed"
    assert "OSError no, thanks" in document.detail
    assert document.shapes == ()


def test_a_candidate_that_fails_on_a_later_shape_keeps_the_times_of_the_first(benchmarker):
    source = RIGHT.replace("    e = (", "    assert input.shape[0] < 8, 'too many rows'\n    e = (")
    document = benchmarker("eager").time(TASK, of(source))
    assert document.outcome == "failed"
    assert "M=8" in document.detail
    assert "too many rows" in document.detail
    assert len(document.shapes) == 1


def test_a_candidate_that_does_not_load_has_failed(benchmarker):
    document = benchmarker("eager").time(
        TASK, of("import torch\nno_name\ndef softmax(input): pass")
    )
    assert document.outcome == "failed"
    assert "no_name" in document.detail


def broken_control(task):
    control = of("def softmax(input):\n    raise OSError('broken')")
    return {**baseline_sources(task), "control": control}


def test_a_baseline_that_fails_is_named_and_left_out(benchmarker):
    document = benchmarker("eager", "control", sources=broken_control).time(TASK, of(RIGHT))
    assert document.outcome in ("timed", "timing_suspect")
    for shape in document.shapes:
        assert set(shape.baselines) == {"eager"}
        assert "broken" in shape.baselines_failed["control"]
        assert shape.graded.wrong == ()


def test_a_baseline_that_a_task_does_not_have_is_left_out(benchmarker):
    document = benchmarker("eager", "control", sources=lambda task: {}).time(TASK, of(RIGHT))
    for shape in document.shapes:
        assert shape.baselines == shape.baselines_failed == {}
        assert shape.candidate_us > 0


@pytest.fixture
def opened(watched):
    """Candidates for which children were started."""
    return watched.opened


@pytest.mark.slow
def test_baselines_stay_warm_for_the_next_candidate_of_the_task(benchmarker, opened):
    one = benchmarker("eager")
    eager = baseline_sources(TASK)["eager"]
    for _ in range(2):
        assert one.time(TASK, of(RIGHT)).shapes
    assert opened.count(eager) == 1
    assert len(opened) == 2 + 1


def relu_candidate():
    return of("def relu(input, inplace=False):\n    return input.clamp(min=0)", RELU)


@pytest.mark.slow
def test_baselines_stay_warm_while_another_task_has_its_turn(benchmarker, opened):
    one = benchmarker("eager")
    first, last = baseline_sources(TASK)["eager"], baseline_sources(RELU)["eager"]
    one.ready([TASK, RELU])
    for _ in range(2):
        assert one.time(TASK, of(RIGHT)).shapes[1].baselines["eager"].us > 0
        assert one.time(RELU, relu_candidate()).shapes[0].baselines["eager"].us > 0
    assert (opened.count(first), opened.count(last)) == (1, 1)


def test_waiting_baselines_hold_no_buffers_and_stay_compiled(benchmarker):
    one = benchmarker("eager")
    one.time(TASK, of(RIGHT))
    task_baselines = one.baseline_cache.begin(TASK)
    sides = [task_baselines.of(case).sides[0] for case in task_baselines.cases]
    assert all(side.buffers for side in sides)
    one.time(RELU, relu_candidate())
    assert [(side.buffers, side.readiness) for side in sides] == [(0, Readiness.COMPILED)] * 2


def test_baselines_of_shapes_not_reached_survive_the_wait(benchmarker):
    one = benchmarker("eager")
    document = one.time(TASK, of("def softmax(input):\n    raise OSError('no, thanks')"))
    assert document.shapes == ()
    one.time(RELU, relu_candidate())
    for shape in one.time(TASK, of(RIGHT)).shapes:
        assert shape.baselines["eager"].us > 0


def test_a_baseline_that_was_lost_is_there_again_at_the_next_turn_of_its_task(benchmarker):
    one = benchmarker("eager")
    one.time(TASK, of(RIGHT))
    task_baselines = one.baseline_cache.begin(TASK)
    task_baselines.of(task_baselines.cases[0]).sides[0].child.session.close()
    one.time(RELU, relu_candidate())
    assert one.baseline_cache.tasks == (RELU.key,)
    for shape in one.time(TASK, of(RIGHT)).shapes:
        assert shape.baselines["eager"].us > 0


def test_the_current_task_waits_too_while_others_are_prepared(benchmarker):
    one = benchmarker("eager")
    one.time(TASK, of(RIGHT))
    task_baselines = one.baseline_cache.begin(TASK)
    one.ready([RELU])
    sides = [side for case in task_baselines.cases for side in task_baselines.of(case).sides]
    assert [side.buffers for side in sides] == [0] * len(SHAPES)
    # Nor is what is due kept: the judge finds it out again.
    assert [task_baselines.of(case).expected for case in task_baselines.cases] == [[]] * len(SHAPES)
    for shape in one.time(TASK, of(RIGHT)).shapes:
        assert shape.graded.calls >= 1
        assert shape.baselines["eager"].us > 0


def test_the_current_task_keeps_its_buffers_if_it_comes_next(benchmarker):
    one = benchmarker("eager")
    one.time(TASK, of(RIGHT))
    task_baselines = one.baseline_cache.begin(TASK)
    one.ready([RELU, TASK])
    assert all(
        side.buffers for case in task_baselines.cases for side in task_baselines.of(case).sides
    )


@pytest.mark.parametrize("wait", [False, True])
def test_the_end_of_all_is_waited_for_or_only_requested(benchmarker, watched, wait):
    one, task = benchmarker("eager"), replace(TASK, perf=SHAPES[:1])
    one.time(task, of(RIGHT), then=of("# another\n" + RIGHT))
    # That of the candidate, which is gone.
    wait_until(lambda: watched.waited)
    one.close(wait=wait)
    assert watched.waited[1:] == [wait] * 2


def test_a_baseline_without_memory_while_it_gets_ready_has_another_try(benchmarker, tmp_path):
    flag = tmp_path / "flag"
    one = benchmarker("eager", sources=lambda task: {"eager": of(out_of_memory(flag))})
    one.ready([TASK])
    flag.touch()
    for shape in one.time(TASK, of(RIGHT)).shapes:
        assert shape.baselines["eager"].us > 0


def test_no_candidate_is_timed_before_the_previous_one_is_gone(benchmarker, watched):
    said, first = [], of(RIGHT)

    def slowly(candidate):
        if candidate is first:
            time.sleep(1.0)
            said.append("gone")

    watched.before_end = slowly
    one = benchmarker("eager", machine=Looking(lambda: said.append("timed")))
    task = replace(TASK, perf=SHAPES[:1])
    one.time(task, first)
    one.time(task, of("# another\n" + RIGHT))
    assert [word for i, word in enumerate(said) if word not in said[:i]] == ["timed", "gone"]
    assert said.index("gone") < len(said) - 1 - said[::-1].index("timed")


def test_the_second_look_is_part_of_the_time_alone(benchmarker):
    one = benchmarker("eager", sources=slow_baseline, new_benchmark=OneClock)
    document = one.time(TASK, of(RIGHT))
    assert document.spent["again"] > 0.01
    assert document.device_s >= document.spent["laps"] + document.spent["again"]


@pytest.mark.parametrize("buffers", [0, 8])
def test_a_baseline_without_buffers_is_not_timed_again(buffers):
    """Its process began anew with a later shape."""
    sides = [Side(name="candidate", child=None), Side(name="eager", child=None)]
    sides[1].buffers = buffers
    benchmark = Alone(None, sides=sides, inputs=None, effort=EFFORT, rng=stream(1, "again"))
    twice = Comparison(
        baseline="eager", baseline_s=2e-5, ratio=Interval(estimate=2.0, low=1.9, high=2.1)
    )
    beaten = MeasuredBaseline(
        first=twice, confirmation=None, warm_us=None, limit=BaselineNearLimit()
    )
    measured = MeasuredShape(times=document(ShapeTimes), baselines={"eager": beaten})
    gone = []
    shape = retimed(measured, benchmark, Machine(), wait_for_end=lambda: gone.append(True))
    assert gone == [True] * bool(buffers)
    assert benchmark.requests == [["eager"]] * bool(buffers)
    assert ("alone" in plain(shape.times)) is bool(buffers)


def test_on_a_cpu_no_interpreted_kernel_is_a_baseline(benchmarker):
    """It would be timed without its work."""
    task = replace(find("relu"), perf=SHAPES)
    assert baseline_sources(task)["control"].language == "triton"
    source = "import torch\ndef relu(x):\n    return torch.relu(x)\n"
    for shape in benchmarker("eager", "control").time(task, of(source, task)).shapes:
        assert set(shape.baselines) == {"eager"}
        assert shape.baselines_failed == {}


def test_another_task_has_its_own_baselines(benchmarker):
    one = benchmarker("eager")
    relu = replace(find("kernelbenchx/relu"), perf=SHAPES[:1])
    one.time(replace(TASK, perf=SHAPES[:1]), of(RIGHT))
    source = "def relu(input, inplace=False):\n    return input.clamp(min=0)"
    document = one.time(relu, of(source, relu))
    assert document.outcome in ("timed", "timing_suspect")
    assert document.shapes[0].graded.wrong == ()


def test_the_dtype_can_be_chosen(benchmarker):
    document = benchmarker("eager").time(replace(TASK, perf=SHAPES[:1]), of(RIGHT), dtype="float16")
    assert document.shapes[0].case.dtype == "float16"


def test_a_task_whose_reference_fails_is_timed_and_not_graded(benchmarker):
    def refuse(**given):
        raise RuntimeError("no reference today")

    blind = replace(TASK, perf=SHAPES[:1], reference=refuse)
    one = benchmarker("eager", sources=slow_baseline, new_benchmark=OneClock)
    document = one.time(blind, of(RIGHT))
    (shape,) = document.shapes
    assert (shape.graded.calls, shape.graded.wrong) == (0, ())
    assert "no reference today" in shape.graded.not_graded
    # It may have done nothing at all.
    assert "not_graded" in shape.flags
    assert shape.baselines["eager"].outcome == "tie"


def test_an_unknown_baseline_is_refused_with_those_there_are(benchmarker):
    with pytest.raises(UserError, match="'eagre': must be one of eager, compile"):
        benchmarker("eagre")


def test_a_disturbed_device_is_said(benchmarker):
    class Busy:
        disturbance = staticmethod(lambda: "throttled")
        flags = staticmethod(lambda benchmark: ["throttled"] * bool(benchmark.disturbed))
        conditions = staticmethod(lambda: None)

    class Hot(Machine):
        def watch(self):
            return Busy()

    one = benchmarker("eager", machine=Hot(), effort=replace(EFFORT, repeats=2))
    (shape,) = one.time(replace(TASK, perf=SHAPES[:1]), of(RIGHT)).shapes
    assert shape.repeated == ("throttled",) * 2
    assert "throttled" in shape.flags


def test_a_time_below_what_the_device_can_do_is_never_faster(benchmarker):
    class Slow(Machine):
        def limits(self, *given, **more):
            return NearLimit(
                efficiency=7.0, floor_us=1e9, bound_by="memory", flags=("below_floor",)
            )

    sources = {"eager": of(RIGHT.replace("    e = ", "    sum(range(20000))\n    e = "))}
    document = benchmarker("eager", machine=Slow(), sources=lambda t: sources).time(TASK, of(RIGHT))
    assert document.outcome == "timing_suspect"
    assert all(s.baselines["eager"].outcome != "faster" for s in document.shapes)


SLOW = """
import time
import torch
def softmax(input, dim=-1, dtype=None):
    time.sleep(0.004)
    return torch.softmax(input, dim)
"""


def slow_baseline(task):
    return {"eager": of(SLOW)}


class OneClock(InterleavedBenchmark):
    """A benchmark whose judge sees what the events say.

    On a busy CPU its own clock may contradict batches of some microseconds.
    """

    def run_batch(self, side, order, contents=None, *, show=False):
        batch = super().run_batch(side, order, contents, show=show)
        return replace(batch, wall_s=batch.device_s + self.beyond())

    def overhead(self, side, *, show=False):
        super().overhead(side, show=show)
        return 0.0

    def beyond(self):
        """Return by how many seconds the judge's clock shows more than a batch's events."""
        return 0.0


class Alone(OneClock):
    """A benchmark whose baseline takes a given time without the candidate; None: it is gone."""

    def __init__(self, seconds, **how):
        super().__init__(**how)
        self.seconds_alone, self.requests = seconds, []

    def time_without_candidate(self, names, batches, *, settle_s=0.0):
        self.requests.append(names)
        if self.seconds_alone is None:
            raise SideError("eager", GONE)
        return {"eager": [self.seconds_alone] * batches}


class DoubtfulAtFirst(OneClock):
    """A benchmark whose events the judge's clock contradicts, until more blocks are run."""

    def beyond(self):
        return 0.0 if self.suspected else 1.0

    def run(self, enough, disturbance=lambda: None, *, most=None):
        super().run(enough, disturbance, most=most)
        if self.suspected:
            self.blocks = [
                {n: tuple(replace(b, wall_s=b.device_s) for b in bs) for n, bs in block.items()}
                for block in self.blocks
            ]


def test_a_baseline_that_is_quicker_without_the_candidate_was_hindered_by_it(benchmarker):
    one = benchmarker("eager", sources=slow_baseline, new_benchmark=partial(Alone, 1e-4))
    document = one.time(TASK, of(RIGHT))
    assert document.outcome == "timing_suspect"
    for shape in document.shapes:
        assert shape.baselines["eager"].outcome == "tie"
        assert "baseline_hindered" in shape.flags
        assert shape.alone.us == {"eager": pytest.approx(100)}


def test_a_baseline_that_stays_as_slow_was_not(benchmarker):
    # A sleep takes longer than it should, and on a busy CPU much longer.
    one = benchmarker("eager", sources=slow_baseline, new_benchmark=partial(Alone, 0.2))
    document = one.time(TASK, of(RIGHT))
    assert document.outcome == "timed"
    assert all(s.baselines["eager"].outcome == "faster" for s in document.shapes)


def test_a_task_with_other_shapes_is_timed_on_those(benchmarker):
    one = benchmarker("eager")
    for shapes in (SHAPES[:1], SHAPES[1:], SHAPES):
        document = one.time(replace(TASK, perf=shapes), of(RIGHT))
        assert [dict(s.case.dims) for s in document.shapes] == [*shapes]


def test_the_next_candidate_is_prepared_and_loads_nothing_yet(benchmarker, opened, tmp_path):
    log = tmp_path / "log"
    writes = f"open({str(log)!r}, 'a').write('loaded')\n"
    # Others may not write into a test's folder.
    one, first, second = benchmarker("eager"), of(RIGHT), replace(of(writes + RIGHT), trusted=True)
    one.time(replace(TASK, perf=SHAPES[:1]), first, then=second)
    assert opened.count(second) == 1
    assert not log.exists()
    document = one.time(replace(TASK, perf=SHAPES[:1]), second)
    assert document.shapes
    assert log.read_text() == "loaded"
    assert opened.count(second) == 1


def test_the_next_candidate_rests_while_batches_run(benchmarker, watched):
    """A context that is made beside batches would disturb them."""
    log, following = [], of("# another\n" + RIGHT)

    def look():
        log.append(watched.sessions[watched.opened.index(following)].paused)

    one, task = benchmarker("eager", machine=Looking(look)), replace(TASK, perf=SHAPES[:1])
    one.time(task, of(RIGHT), then=following)
    assert log
    assert all(log)
    assert one.time(task, following).shapes


@pytest.mark.slow
def test_baselines_are_prepared_beside_a_candidate_and_rest_during_its_batches(
    benchmarker, watched
):
    task, resting = replace(TASK, perf=SHAPES[:1]), []
    source = "import time\ntime.sleep(1)\ndef relu(input, inplace=False):\n    return input.relu()"
    one = benchmarker(
        "eager",
        sources=lambda task: {"eager": of(source if task.name == "relu" else RIGHT, task)},
        machine=Looking(lambda: resting.append([s.paused for s in watched.of("relu")])),
    )
    one.prepare_in_background([RELU])
    wait_until(lambda: watched.of("relu"))
    assert one.time(task, of(RIGHT)).shapes
    assert [True] in resting
    assert [False] not in resting
    assert one.time(RELU, relu_candidate()).shapes


def test_a_prepared_candidate_that_is_not_timed_is_released(benchmarker, watched):
    one = benchmarker("eager")
    task = replace(TASK, perf=SHAPES[:1])
    another = of("# another\n" + RIGHT)
    one.time(task, of(RIGHT), then=another)
    assert one.time(task, of("# yet another\n" + RIGHT)).shapes
    assert watched.sessions[watched.opened.index(another)].pid is None


def test_before_a_candidate_is_suspect_its_blocks_are_doubled(benchmarker):
    effort = replace(EFFORT, blocks=(6, 24), budget_s=60.0, precision=10.0)
    one = benchmarker("eager", effort=effort, new_benchmark=DoubtfulAtFirst)
    document = one.time(replace(TASK, perf=SHAPES[:1]), of(RIGHT))
    assert document.outcome == "timed"
    assert document.shapes[0].blocks == 12


def test_baselines_that_are_ready_are_not_started_again(benchmarker, opened):
    one = benchmarker("eager")
    one.ready([TASK, RELU])
    assert sorted(c.entry for c in opened) == ["relu", "softmax"]
    assert one.time(TASK, of(RIGHT)).shapes[1].baselines["eager"].us > 0
    assert len(opened) == 2 + 1
    document = one.time(RELU, of("def relu(input, inplace=False):\n    return input * 1", RELU))
    assert document.shapes[1].baselines["eager"].us > 0
    assert len(opened) == 2 + 2


def test_a_baseline_that_fails_while_it_gets_ready_is_left_out(benchmarker):
    one = benchmarker("eager", "control", sources=broken_control)
    one.ready([TASK])
    for shape in one.time(TASK, of(RIGHT)).shapes:
        assert set(shape.baselines) == {"eager"}
        assert "broken" in shape.baselines_failed["control"]


def test_a_task_whose_inputs_cannot_be_had_spoils_no_other(benchmarker):
    def refuse(settings):
        raise RuntimeError("CUDA out of memory")

    one, (x, *rest) = benchmarker("eager"), RELU.arguments
    spoilt = replace(RELU, arguments=(replace(x, held=refuse), *rest))
    one.ready([spoilt, TASK])
    assert one.time(TASK, of(RIGHT)).shapes
    with pytest.raises(RuntimeError, match="out of memory"):
        one.time(spoilt, of("def relu(input, inplace=False):\n    return input * 1", RELU))


def out_of_memory(flag):
    """A candidate for which there is no memory before the flag is there."""
    return RIGHT.replace(
        "import torch",
        "import pathlib, torch\n"
        "class OutOfMemoryError(RuntimeError): pass\n"
        f"flag = pathlib.Path({str(flag)!r})",
    ).replace(
        "    e = (", "    if not flag.exists(): raise OutOfMemoryError('no memory')\n    e = ("
    )


class Released(ScriptedMemory):
    """The memory of a device, which leaves a file when some of it is given back."""

    def __init__(self, flag):
        super().__init__()
        self.release = flag.touch


@pytest.mark.slow
def test_waiting_baselines_make_room_for_one_that_lacks_memory(benchmarker, tmp_path):
    one = benchmarker("eager")
    one.ready([TASK, RELU])
    one.baseline_cache.memory = Released(tmp_path / "flag")
    document = one.time(TASK, of(out_of_memory(tmp_path / "flag")))
    assert len(document.shapes) == len(SHAPES)
    assert document.shapes[0].baselines["eager"].us > 0
    assert one.baseline_cache.tasks == (TASK.key,)


def test_expected_results_are_computed_again_if_others_held_the_memory(benchmarker):
    one, lacked = benchmarker("eager"), []

    def reference(**given):
        if RELU.key in one.baseline_cache.tasks:
            lacked.append(given)
            raise RuntimeError("CUDA out of memory")
        return TASK.reference(**given)

    one.baseline_cache.begin(RELU)
    document = one.time(replace(TASK, reference=reference), of(RIGHT))
    assert lacked
    for shape in document.shapes:
        assert shape.graded.calls
        assert shape.graded.not_graded is None


def test_results_are_graded_again_if_others_held_the_memory(benchmarker):
    one, lacked = benchmarker("eager"), []

    def claims(evidence):
        if RELU.key in one.baseline_cache.tasks:
            lacked.append(evidence)
            raise RuntimeError("CUDA out of memory")
        return ()

    one.baseline_cache.begin(RELU)
    for shape in one.time(replace(TASK, claims=claims), of(RIGHT)).shapes:
        assert shape.graded.not_graded is None
    assert lacked


DIES_WITHOUT_MEMORY = """
import pathlib
class AcceleratorError(RuntimeError): pass
if not pathlib.Path(FLAG).exists():
    raise AcceleratorError("CUDA error: out of memory")
"""


@pytest.mark.parametrize("others", [(), (RELU,)])
def test_a_process_that_was_lost_for_lack_of_memory_is_tried_once_more(
    benchmarker, tmp_path, others
):
    """Even without waiting tasks: candidates that were beside it may be gone by then."""
    one, flag = benchmarker("eager"), tmp_path / "flag"
    one.ready([TASK, *others])
    one.baseline_cache.memory = Released(flag)
    source = DIES_WITHOUT_MEMORY.replace("FLAG", repr(str(flag))) + RIGHT
    document = one.time(TASK, of(source))
    assert document.outcome in ("timed", "timing_suspect")
    assert len(document.shapes) == len(SHAPES)


def test_lack_of_memory_without_waiting_tasks_is_a_failure(benchmarker, tmp_path):
    document = benchmarker("eager").time(TASK, of(out_of_memory(tmp_path / "flag")))
    assert document.outcome == "failed"
    assert "OutOfMemoryError no memory" in document.detail


@pytest.mark.parametrize(
    ("language", "cold", "anew"),
    [("triton", True, True), ("triton", False, False), ("cuda", True, False)],
)
@pytest.mark.parametrize("ahead", [False, True])
def test_a_triton_kernel_compiles_from_scratch_on_request(
    watched, benchmarker, language, cold, anew, ahead
):
    candidate = replace(of(RIGHT), language=language)
    requests, opened = [], watched.open

    def refusing(given, mode, **how):
        if given is not candidate:
            return opened(given, mode, **how)
        requests.append((mode, how["ahead"], how["cold"]))
        raise MemoryError("enough is known")

    watched.open = refusing
    first, then = (of(SKIPS), candidate) if ahead else (candidate, None)
    with pytest.raises(MemoryError):
        benchmarker("eager", cold=cold).time(TASK, first, then=then)
    assert requests == [("time", ahead, anew)]


LATER = """
import torch
def softmax(input, dim=-1):
    if input.shape[0] > 4:
        raise ValueError("too many rows")
    return torch.softmax(input, dim)
"""


def test_what_was_timed_before_a_shape_failed_is_kept_in_the_same_form(benchmarker, timed):
    stopped = benchmarker("eager").time(TASK, of(LATER))
    assert stopped.outcome == "failed"
    assert "M=8" in stopped.detail
    assert "raised: ValueError too many rows" in stopped.detail
    assert len(stopped.shapes) == 1
    assert plain(stopped.shapes[0]).keys() == plain(timed.shapes[0]).keys()
    assert plain(timed).keys() - plain(stopped).keys() == {"device_s", "spent", "seconds"}


def test_each_shape_is_announced_before_it_is_timed(benchmarker):
    shapes = benchmarker("eager").shapes(TASK, of(RIGHT))
    steps = [(number, count, case.sizes) for number, count, case in shapes]
    assert steps == [(0, 2, SHAPES[0]), (1, 2, SHAPES[1])]


def test_a_timeout_is_reported_with_its_seconds(benchmarker):
    slow = "import time\ndef softmax(input, dim=-1):\n    time.sleep(60)\n"
    effort = replace(EFFORT, deadline_s=0.5, first_call_s=0.5)
    document = benchmarker("eager", effort=effort).time(TASK, of(slow))
    assert document.outcome == "failed"
    assert document.detail.endswith("timeout: no answer within 0.5 s")
