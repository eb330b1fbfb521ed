"""PyTorch's functions timed against themselves: what is a tie, and why others are none."""

import io
import os
import signal
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest
from msgspec import structs
from rich.console import Console

from blank_documents import document
from kerneltruth.clock.protocol.effort import Effort
from kerneltruth.clock.schedule.timed_cases import timed_cases
from kerneltruth.documents.suites import TimedSuiteDocument
from kerneltruth.documents.timing import BaselineTime, CandidateTimes, GradedCalls, ShapeTimes
from kerneltruth.engine.benchmark.audited_shapes import AuditedShape, shapes_of
from kerneltruth.engine.benchmark.baselines import baseline_sources
from kerneltruth.engine.benchmark.benchmarker import Benchmarker
from kerneltruth.engine.benchmark.setup import PYTORCH_TOO
from kerneltruth.engine.benchmark.timed_audit import (
    LOOK_S,
    keys_of,
    still_to_time,
    suite_document,
    time_suite,
)
from kerneltruth.engine.requests import AuditRequest
from kerneltruth.engine.start import run
from kerneltruth.errors import EnvironmentFault, UserError
from kerneltruth.report import exit_codes
from kerneltruth.report.suite_view import timed_audit_view
from kerneltruth.runner.host import Runner
from kerneltruth.suites.catalog import SuiteTasks
from kerneltruth.suites.kernelbench.problem import problem_of
from kerneltruth.suites.kernelbench.suite import KernelBench
from kerneltruth.tasks.registry import find, opening

pytestmark = pytest.mark.processes


@pytest.fixture(autouse=True)
def own_locks(monkeypatch, tmp_path):
    """Time at once, also while other tests check or time on this device."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


def shape(*, flags=(), wrong=(), not_graded=None, eager=(1.0, 0.99, 1.01, "tie"), failed=None):
    """A timed shape."""
    names = ("ratio", "low", "high", "outcome")
    timed = document(BaselineTime, us=5.0, efficiency=0.5, **dict(zip(names, eager, strict=True)))
    return document(
        ShapeTimes,
        summary="M=4",
        flags=flags,
        graded=GradedCalls(calls=2, wrong=wrong, not_graded=not_graded),
        baselines={} if failed else {"eager": timed},
        baselines_failed={"eager": failed} if failed else {},
    )


def outcome(**about):
    (found,) = shapes_of("relu", CandidateTimes(outcome="timed", shapes=(shape(**about),)))
    return found.outcome, found.why


def test_a_narrow_tie_is_one_and_needs_no_reason():
    assert outcome() == ("tie", "")
    assert outcome(eager=(1.0, 0.981, 1.019, "tie"), flags=("repeated_blocks",)) == ("tie", "")


@pytest.mark.parametrize(
    ("about", "found", "why"),
    [
        ({"eager": (1.0, 0.97, 1.01, "tie")}, "unresolved", "1.0000 (0.9700 to 1.0100)"),
        ({"eager": (1.0, 0.99, 1.03, "tie")}, "unresolved", "(0.9900 to 1.0300)"),
        ({"eager": (1.05, 1.03, 1.07, "faster"), "flags": ("throttled",)}, "faster", "throttled"),
        ({"eager": (0.9, 0.89, 0.92, "slower")}, "slower", "0.9000"),
        ({"flags": ("timing_suspect",)}, "suspect", "timing_suspect"),
        ({"wrong": ("fail: 3 of 9",)}, "wrong", "fail: 3 of 9"),
        ({"failed": "no valid baseline: it ran elsewhere"}, "no_valid_baseline", "ran elsewhere"),
        ({"flags": ("not_graded",), "not_graded": "no memory"}, "not_graded", "no memory"),
        ({"flags": ("not_graded",), "not_graded": f"{PYTORCH_TOO}: 3"}, "void", ": 3"),
        ({"eager": (1.3, 0.9, 1.8, "tie"), "flags": ("host_bound",)}, "host_bound", "1.3000"),
        ({"eager": (1.9, 1.5, 2.2, "faster"), "flags": ("host_bound",)}, "faster", "1.9000"),
    ],
)
def test_every_other_outcome_has_a_reason(about, found, why):
    said, reason = outcome(**about)
    assert said == found
    assert why in reason


def test_a_task_that_could_not_be_timed_to_its_end_has_failed():
    times = CandidateTimes(outcome="failed", detail="M=8: raised", shapes=(shape(),))
    found = shapes_of("relu", times)
    assert [s.outcome for s in found] == ["tie", "failed"]
    assert found[1].why == "M=8: raised"


SMALL = ({"M": 4, "N": 32}, {"M": 8, "N": 64})
RELU, SOFTMAX = "kernelbenchx/relu", "kernelbenchx/softmax"


class Small(Benchmarker):
    """Times each task at two small shapes."""

    def ready(self, tasks):
        super().ready([replace(task, perf=SMALL) for task in tasks])

    def prepare_in_background(self, tasks):
        super().prepare_in_background([replace(task, perf=SMALL) for task in tasks])

    def time(self, task, candidate):
        return super().time(replace(task, perf=SMALL), candidate)


def small(options, runner, machine, effort):
    quick = Effort(
        batch_s=1e-4, graph_batch_s=3e-4, blocks=(6, 6), budget_s=0.0, memory_bytes=2**18, shown=1
    )
    return Small(
        runner,
        machine=machine,
        seed=options.seed,
        baselines=("eager",),
        effort=quick,
        itself=True,
        sources=baseline_sources,
    )


class Scripted:
    """Gives each task's times at once, or does what a script says of the task first."""

    capacity = 8

    def __init__(self, scripts, shapes):
        self.scripts, self.shapes = scripts, shapes

    def ready(self, tasks):
        pass

    def prepare_in_background(self, tasks):
        pass

    def close(self, *, wait):
        pass

    def time(self, task, candidate):
        self.scripts.get(task.key, lambda: None)()
        return CandidateTimes(outcome="timed", shapes=self.shapes)


def scripted(shapes=None, **scripts):
    scripts = {f"kernelbenchx/{name}": script for name, script in scripts.items()}
    return lambda *_: Scripted(scripts, shapes or (shape(),))


def audit(benchmarker, *, runner=None, start=None, stop_after=None, **more):
    """Time two tasks; gives the document and the texts of the steps."""
    options = AuditRequest(suite="kernelbenchx", timed=True, only=("relu", "softmax"), **more)
    start, texts = time.monotonic() if start is None else start, []
    runner = runner or SimpleNamespace(device="cpu")
    steps = time_suite(options, runner, start, benchmarker=benchmarker)
    try:
        texts.append(next(steps).text)
        while True:
            stop = len(texts) == stop_after
            texts.append((steps.throw(KeyboardInterrupt) if stop else next(steps)).text)
    except StopIteration as end:
        return end.value, texts


@pytest.mark.slow
def test_every_shape_of_a_suite_is_timed_and_counted():
    """On the CPU, where hosts are busy: the test only requires that none is wrong or fails."""
    with Runner(device="cpu") as runner:
        document, texts = audit(small, runner=runner)
    assert document.timed == 4
    assert document.tie + len(document.other) == 4
    assert not {"wrong", "failed", "not_graded"} & {o.outcome for o in document.other}
    assert all(o.why for o in document.other)
    assert (document.not_timed, document.interrupted) == ((), False)
    assert {"waited_for_baselines", "laps", "references"} <= {*document.spent}
    assert all(text.endswith(" s)") for text in texts)


def test_ctrl_c_keeps_what_was_timed():
    document, texts = audit(scripted(), stop_after=1)
    assert len(texts) == 1
    assert document.interrupted
    assert {s.task for s in document.shapes} == {RELU}
    assert document.not_timed == (SOFTMAX,)


def test_a_spent_budget_begins_no_task_and_says_which_are_left():
    document, _ = audit(scripted(), budget_s=1.0, start=time.monotonic() - 2.0)
    assert document.shapes == ()
    assert document.not_timed == (RELU, SOFTMAX)
    assert not document.interrupted
    assert exit_codes.of_timed_suite(document) == exit_codes.NO_JUDGEMENT


def test_a_budget_keeps_time_to_look_again_at_what_is_in_doubt():
    unresolved = [
        structs.replace(shape(eager=(1.0, 0.9, 1.1, "tie")), summary=f"M={n}")
        for n in range(int(100 / LOOK_S) + 1)
    ]
    relu = find(RELU)
    named = structs.replace(unresolved[0], summary=timed_cases(relu)[0].summary())
    document, _ = audit(scripted((named, *unresolved)), budget_s=100.0)
    assert {s.task for s in document.shapes} == {RELU}
    assert any(s.again for s in document.shapes)
    assert document.not_timed == (SOFTMAX,)


def test_what_a_budget_leaves_over_of_a_checkout_is_some_of_each_level():
    """And no problem is run to learn its key."""
    problems = (problem_of(level, number, "Title", "") for level in (1, 2) for number in (9, 10))
    suite = KernelBench({p.name: p for p in problems}, Runner(device="cpu"), None)
    suite.schema = None
    with opening("kernelbench", SuiteTasks(suite, "kernelbench:here")):
        keys = keys_of("kernelbench", ())
        assert keys_of("kernelbench", ("level1/9", "level1/9_Title")) == keys[:1]
    names = ("level1/9", "level2/9", "level1/10", "level2/10")
    assert keys == [f"kernelbench/{name}" for name in names]


@pytest.mark.slow
def test_a_task_that_outlasts_the_budget_does_not_outlast_the_command():
    began = time.monotonic()
    document, _ = audit(scripted(softmax=lambda: time.sleep(600)), budget_s=8.0)
    assert time.monotonic() - began < 60
    assert {s.task for s in document.shapes} == {RELU}
    assert document.not_timed == (SOFTMAX,)
    assert not document.interrupted


def test_the_process_that_times_goes_on_after_its_death(tmp_path):
    def die_once():
        if not (tmp_path / "died").exists():
            (tmp_path / "died").touch()
            os.kill(os.getpid(), signal.SIGKILL)

    document, texts = audit(scripted(softmax=die_once))
    assert document.not_timed == ()
    assert [t.partition(":")[0] for t in texts] == [RELU, SOFTMAX]


@pytest.mark.parametrize(("said", "code"), [("tie", exit_codes.GOOD), ("slower", exit_codes.BAD)])
def test_tasks_that_were_not_timed_do_not_make_the_exit_code_bad(said, code):
    document = suite_document(
        AuditRequest(suite="core", device="cpu"),
        [AuditedShape(task="core/relu", shape="M=4", outcome=said)],
        "cpu",
        not_timed=["core/softmax"],
        unrefereeable={},
        interrupted=False,
        spent={},
        seconds=1.0,
    )
    assert exit_codes.of_timed_suite(document) == code


@pytest.mark.parametrize(
    ("interrupted", "said"), [(True, "Ctrl-C ended it"), (False, "the budget was spent")]
)
def test_what_was_not_timed_is_shown_with_the_reason(interrupted, said):
    audited = document(
        TimedSuiteDocument,
        timed=2,
        not_timed=["kernelbenchx/relu"],
        interrupted=interrupted,
        spent={"laps": 3.25},
    )
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(timed_audit_view(audited))
    shown = console.export_text()
    assert f"1 not timed because {said}: kernelbenchx/relu" in shown
    assert "seconds: laps 3.2" in shown


def test_of_a_task_only_doubted_shapes_are_timed_once_more():
    task = replace(find("kernelbenchx/relu"), perf=({"M": 4, "N": 32}, {"M": 8, "N": 64}))
    names = [case.summary() for case in timed_cases(task)]

    def found(*outcomes):
        return [
            AuditedShape(task=task.key, shape=name, outcome=said)
            for name, said in zip(names, outcomes, strict=True)
        ]

    assert list(still_to_time(task, None)) == [task]
    assert list(still_to_time(task, found("tie", "wrong"))) == []
    for outcome in ("faster", "slower", "unresolved", "suspect"):
        (again,) = still_to_time(task, found("tie", outcome))
        assert [case.summary() for case in timed_cases(again)] == names[1:]
    # One that names no shapes is timed on one all the same.
    bare = replace(task, perf=())
    (again,) = still_to_time(
        bare,
        [replace(found("tie", "tie")[0], shape=timed_cases(bare)[0].summary(), outcome="slower")],
    )
    assert again.perf == ()


def test_a_budget_is_one_of_suites():
    with pytest.raises(UserError, match="--suite"):
        list(run(AuditRequest(budget_s=5.0, device="cpu")))


def test_without_a_gpu_there_is_one_line():
    with pytest.raises(EnvironmentFault, match="needs a GPU"):
        list(run(AuditRequest(suite="core", timed=True, device="cpu")))


def test_a_suite_must_be_named():
    with pytest.raises(UserError, match="--suite"):
        list(run(AuditRequest(timed=True, device="cpu")))
