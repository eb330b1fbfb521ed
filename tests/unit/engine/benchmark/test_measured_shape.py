"""A finished benchmark as a document: what contradicts itself is faster than nothing."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from msgspec import structs

from kerneltruth.clock.protocol.inputs import make_bench_inputs
from kerneltruth.clock.protocol.sides import Batch
from kerneltruth.clock.schedule.timed_cases import timed_cases
from kerneltruth.documents.timing import CandidateTimes
from kerneltruth.engine.benchmark.candidate_document import concluded
from kerneltruth.engine.benchmark.finished import finished
from kerneltruth.engine.benchmark.machine import Machine
from kerneltruth.engine.benchmark.measured_shape import measured_shape
from kerneltruth.engine.benchmark.setup import TimingSetup
from kerneltruth.runner.observation import Binary, Observation
from kerneltruth.tasks.registry import find

TASK = find("kernelbenchx/relu")
CASE = timed_cases(TASK)[0]
BINARY = Binary(kernel="k", target="sm_90", ok=True, registers=10)


class DeviceWatch:
    """Saw nothing, or what a test sets."""

    def __init__(self, *flags):
        self._flags = list(flags)

    def flags(self, benchmark):
        return self._flags

    def conditions(self):
        return None


def side(name, binaries=(), waits=False):
    answer = Observation(ended="returned", binaries=tuple(binaries))
    return SimpleNamespace(
        name=name,
        child=SimpleNamespace(request=lambda message: answer),
        launch_s=1e-5,
        waits=waits,
        warm_s=None,
        why_not=None,
        peak_bytes=64,
        ran=None,
    )


def batches(per_call_s, more_s=0.0):
    """Batches of 100 and 200 calls; on the judge's clock longer by `more_s` a call."""
    return tuple(
        Batch(
            calls=n, wall_s=1e-4 + n * (per_call_s + more_s), device_s=n * per_call_s, host_s=1e-4
        )
        for n in (100, 200)
    )


@pytest.fixture(scope="module")
def inputs():
    """Drawn once: it takes longer than all that is tested here."""
    return make_bench_inputs(TASK, CASE)


@pytest.fixture
def measured(inputs):
    """A shape on which a candidate and a baseline take so long."""

    def make(
        candidate_s,
        baseline_s,
        *,
        more_s=0.0,
        watch=None,
        binaries=(),
        waits=False,
        again_s=None,
        machine=None,
    ):
        benchmark = SimpleNamespace(
            sides=[side("candidate", binaries, waits), side("eager")],
            blocks=[{"candidate": batches(candidate_s, more_s), "eager": batches(baseline_s)}] * 8,
            overheads=[{"candidate": (1e-4, 1e-4)}] * 8,
            graphs=True,
            why_not_captured="memory holds inputs for 9 calls",
            on_gpu=True,
            shown=[],
            spot_checks=[],
            disturbed=["clock moved"],
        )
        setup = TimingSetup(
            task=TASK,
            case=CASE,
            inputs=inputs,
            device="cpu",
            drawn=[],
            failed={},
        )
        found = finished(setup, benchmark, watch or DeviceWatch())
        if again_s is not None:
            blocks = [{"candidate": batches(again_s), "eager": batches(baseline_s)}] * 8
            found = replace(
                found, confirmation=SimpleNamespace(**{**vars(benchmark), "blocks": blocks})
            )
        return measured_shape(found, machine=machine or Machine())

    return make


@pytest.fixture
def document(measured):
    """The document of such a shape, by itself."""
    return lambda *seconds, **more: measured(*seconds, **more).document()


def test_a_quicker_candidate_is_faster(document):
    found = document(1e-5, 2e-5)
    assert found.baselines["eager"].outcome == "faster"
    assert found.baselines["eager"].ratio == pytest.approx(2)
    assert found.candidate_us == pytest.approx(10)
    assert (found.method, found.regime, found.blocks) == ("graph", "cold", 8)


@pytest.mark.parametrize(("seconds", "word"), [(1.6e-5, "tie"), (1.4e-5, "faster")])
def test_a_gain_on_a_cpu_is_one_beyond_what_hosts_of_two_processes_differ(document, seconds, word):
    assert document(seconds, 2e-5).baselines["eager"].outcome == word


def test_what_the_judges_clock_contradicts_is_suspect_and_not_faster(document):
    found = document(1e-5, 2e-5, more_s=1e-5)
    assert found.flags == ("timing_suspect",)
    assert found.baselines["eager"].outcome == "tie"


def test_a_candidate_that_is_suspect_on_one_shape_is_faster_on_none(measured):
    shapes = [measured(1e-5, 2e-5, more_s=1e-5), measured(1e-5, 2e-5), measured(2e-5, 1e-5)]
    found = concluded(CandidateTimes(outcome="timed"), shapes)
    assert found.outcome == "timing_suspect"
    assert [s.baselines["eager"].outcome for s in found.shapes] == ["tie", "tie", "slower"]


def test_a_candidate_that_failed_on_a_later_shape_keeps_what_earlier_ones_showed(measured):
    failed = CandidateTimes(outcome="failed", detail="out of memory")
    found = concluded(failed, [measured(1e-5, 2e-5, more_s=1e-5), measured(1e-5, 2e-5)])
    assert (found.outcome, found.detail) == ("failed", "out of memory")
    assert [s.baselines["eager"].outcome for s in found.shapes] == ["tie", "faster"]


def test_a_wrong_result_on_one_shape_leaves_no_gain_on_another(measured):
    right, other = measured(1e-5, 2e-5), measured(1e-5, 2e-5)
    graded = structs.replace(right.times.graded, wrong=("call 7 is wrong",), not_graded=None)
    wrong = replace(right, times=structs.replace(right.times, graded=graded))
    found = concluded(CandidateTimes(outcome="timed"), [other, wrong])
    assert found.outcome == "wrong"
    assert found.detail.endswith(": call 7 is wrong")
    assert [s.baselines["eager"].outcome for s in found.shapes] == ["tie", "tie"]


@pytest.mark.parametrize(
    ("again_s", "outcome", "flags"),
    [
        (1.9e-5, "faster", ()),
        (2e-5, "tie", ("processes_differ",)),
        (2.1e-5, "tie", ("processes_differ",)),
    ],
    ids=["so again", "not again", "the other way"],
)
def test_a_small_gain_is_one_where_other_processes_show_it_too(document, again_s, outcome, flags):
    class Quiet(Machine):
        def noise_floor(self, seconds):
            return 0.003

    found = document(1.9e-5, 2e-5, again_s=again_s, machine=Quiet())
    eager = found.baselines["eager"]
    assert (eager.outcome, found.flags) == (outcome, flags)
    assert eager.low <= 2e-5 / again_s
    assert eager.high >= 2e-5 / 1.9e-5


def test_slower_stays_slower_whatever_is_flagged(document):
    found = document(4e-5, 2e-5, more_s=1e-5)
    assert found.baselines["eager"].outcome == "slower"


def test_the_reason_for_calls_without_graphs_is_reported(document):
    assert document(1e-5, 2e-5).not_captured == "memory holds inputs for 9 calls"


@pytest.mark.parametrize(("waits", "launch_s"), [(True, 1e-5), (False, None)])
def test_launching_counts_where_it_is_in_the_figures(document, waits, launch_s):
    given = []

    class RecordingMachine(Machine):
        def limits(self, task, case, seconds, launch_s, **more):
            given.append(launch_s)
            return super().limits(task, case, seconds, launch_s, **more)

    document(2e-5, 2e-5, waits=waits, machine=RecordingMachine())
    assert given == [launch_s]


@pytest.mark.parametrize("waits", [True, False])
def test_times_of_calls_that_wait_are_host_bound(document, waits):
    assert ("host_bound" in document(1e-5, 1e-5, waits=waits).flags) is waits


def test_disturbances_are_reported(document):
    found = document(1e-5, 2e-5, watch=DeviceWatch("throttled"))
    assert (found.flags, found.repeated) == (("throttled",), ("clock moved",))
    assert found.baselines["eager"].outcome == "faster"


def test_static_facts_are_listed_under_their_side(document):
    found = document(1e-5, 2e-5, binaries=[BINARY])
    assert list(found.kernels) == ["candidate"]
    assert found.kernels["candidate"][0].registers == 10
