"""The perf stage of a run: which candidates are timed, against what, and what a failure leaves."""

from contextvars import copy_context
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from blank_documents import document
from kerneltruth.documents.lines import StageRecord, StagesRecord
from kerneltruth.documents.model import plain
from kerneltruth.documents.records import Attempt, CandidateRef
from kerneltruth.documents.timing import CandidateTimes, DeviceShare, ShapeTimes
from kerneltruth.documents.verdict import CompileError, Crashed, Failed, Infra, Passed
from kerneltruth.engine.candidates import EvaluatorFactory, PerfStage, scheduler_of
from kerneltruth.engine.evaluator import Evaluation, EvaluationRequest, Evaluator, lost, not_timed
from kerneltruth.engine.requests import RunRequest
from kerneltruth.engine.stages import ListedLine
from kerneltruth.engine.submissions import not_valid
from kerneltruth.errors import EnvironmentFault, ReferenceLost
from kerneltruth.oracle.bounds import Policy
from kerneltruth.oracle.candidate_session import CandidateSession
from kerneltruth.oracle.plan import Plan
from kerneltruth.runner.candidate import read_candidate
from kerneltruth.runner.host import Runner
from kerneltruth.runner.observation import Observation
from kerneltruth.runner.protocol import Rehearse
from kerneltruth.runner.timing.messages import Supply
from kerneltruth.suites.catalog import on_device, open_suite
from kerneltruth.suites.suite import Opening
from kerneltruth.tasks.registry import opened_tasks, opening

pytestmark = pytest.mark.processes

ON_CPU = SimpleNamespace(device="cpu")
CANDIDATE = read_candidate("def relu(x):\n    return x\n", "k.py", task_names=("relu",))


def attempt(verdict, language="triton"):
    ref = CandidateRef(sha256="0" * 64, path="k.py", language=language, entry="relu")
    failed = 3 if isinstance(verdict, CompileError) else 0
    return Attempt(task="relu", candidate=ref, verdict=verdict, cases=3, failed=failed)


def job(name="one", **more):
    settings = {"task": "kernelbenchx/relu", "candidate": CANDIDATE, "plan": Plan(), "timed": True}
    return EvaluationRequest(name=name, **settings | more)


def evaluation(verdict=None, perf=None):
    return Evaluation(attempt=attempt(verdict or Passed()), perf=perf)


@pytest.mark.parametrize("timed", [False, True])
def test_a_judged_candidate_leaves_the_device_before_others_are_timed(timed):
    """Contexts that end beside batches would disturb them unnoticed."""
    requests = []

    def session(*about, ends_first, **more):
        requests.append(ends_first)
        raise MemoryError("none left")

    evaluator = Evaluator(policy=Policy(), runner=ON_CPU, sessions=session)
    assert "none left" in evaluator.evaluate(job(timed=timed)).attempt.verdict.reason
    assert requests == [timed]


def test_a_lost_reference_costs_one_attempt_and_no_run():
    def session(*about, **more):
        raise ReferenceLost("the child of a reference was lost")

    evaluator = Evaluator(policy=Policy(), runner=ON_CPU, sessions=session)
    assert evaluator.evaluate(job()).attempt.verdict == Infra(
        reason="the child of a reference was lost"
    )


PROBLEM = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return 2 * x

def get_inputs():
    return [torch.rand(4, 8)]

def get_init_inputs():
    return []
"""


def test_judges_of_a_device_ask_references_on_it(tmp_path):
    """With all on the first, its memory would not do for the judges of four."""
    (tmp_path / "level1").mkdir()
    (tmp_path / "level1" / "1_Double.py").write_text(PROBLEM)
    first, second = (Runner(device="cpu") for _ in range(2))
    seen = []

    def session(task, *about, **more):
        seen.append(opened_tasks("kernelbench").opening.on_device)
        raise MemoryError("enough is known")

    given = Opening(option=f"kernelbench:{tmp_path}", runner=Runner(device="cpu"), on_device=first)
    request = job(task="kernelbenchx/relu")
    with opening("kernelbench", open_suite(given)):
        for runner in (first, second):
            suite = on_device("kernelbench", runner)
            evaluator = Evaluator(policy=Policy(), runner=runner, sessions=session, suite=suite)
            copy_context().run(evaluator.evaluate, request)
    assert seen == [first, second]


@pytest.mark.parametrize("language", ["triton", "cuda", "torch"])
def test_a_right_kernel_is_to_be_timed_on_a_gpu(language):
    assert not_timed(attempt(Passed(), language), "cuda:0") is None


@pytest.mark.parametrize(
    ("verdict", "says"),
    [
        (Failed(kind="value", detail="5 of 9"), "exe: fail"),
        (Crashed(signal=11, detail=""), "exe: crash"),
        (CompileError(detail="no entry"), "call: compile_error"),
        (Infra(reason="lost"), "call: infra"),
    ],
)
def test_what_is_not_right_is_not_timed_and_says_why(verdict, says):
    perf = not_timed(attempt(verdict), "cuda:0")
    assert perf == CandidateTimes(outcome="not_run", detail=says)


def test_nothing_is_timed_where_kernels_are_interpreted():
    assert not_timed(attempt(Passed()), "cpu").detail.startswith("no GPU")


def test_a_numpy_kernel_is_not_timed_on_a_gpu():
    assert "runs on the host" in not_timed(attempt(Passed(), "numpy"), "cuda:0").detail


@pytest.fixture
def keepers(monkeypatch, tmp_path):
    """Benchmarkers that a stage makes; `answer` is what they find, or raise."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    made = SimpleNamespace(
        count=0, requests=[], ready=[], beside=[], answer=CandidateTimes(outcome="timed")
    )

    class Keeper:
        capacity = 4

        def ready(self, tasks):
            made.ready.append([task.name for task in tasks])

        def prepare_in_background(self, tasks):
            made.beside.append([task.name for task in tasks])

        def time(self, task, candidate, *, then=None):
            made.requests.append(task.key)
            if isinstance(made.answer, Exception):
                raise made.answer
            return made.answer

    def make(runner, baselines):
        made.count += 1
        made.baselines = baselines
        return Keeper()

    made.make = make
    return made


class OnGpu:
    """An evaluator on a GPU, which finds what it was given."""

    runner = SimpleNamespace(device="cuda:0")

    def __init__(self, result=None):
        self.result = result

    def evaluate(self, job, report):
        return self.result

    def start(self):
        """Warm nothing up."""

    warm = open_suite = start


@pytest.fixture
def stage(keepers):
    return PerfStage(OnGpu(), make=keepers.make)


def test_one_timekeeper_times_all_that_come(stage, keepers):
    first = [*stage.time([(job("one"), evaluation()), (job("two"), evaluation())])]
    second = [*stage.time([(job("three"), evaluation())])]
    assert [h.perf for h in (*first, *second)] == [CandidateTimes(outcome="timed")] * 3
    assert keepers.count == 1
    assert keepers.requests == ["kernelbenchx/relu"] * 3


def test_baselines_of_a_few_tasks_are_prepared_while_others_are_timed(stage, keepers):
    names = ("relu", "relu", "gelu", "softmax", "relu")
    batch = [(job(task=f"kernelbenchx/{name}"), evaluation()) for name in names]
    assert len([*stage.time(batch)]) == len(batch)
    assert keepers.ready == [["relu", "gelu"]]
    assert keepers.beside == [["softmax", "relu"], []]
    assert keepers.requests == [job.task for job, _ in batch]


@pytest.mark.parametrize("against", [(), ("eager",)])
def test_an_evaluator_elsewhere_times_against_the_same(keepers, against):
    factory = EvaluatorFactory(
        device="cuda:0",
        targets=(),
        policy=Policy(),
        against=against,
        evaluator=lambda **how: OnGpu(evaluation()),
        stage=partial(PerfStage, make=keepers.make),
    )
    assert factory()(job()).perf == CandidateTimes(outcome="timed")
    assert keepers.baselines == (against or None)


def test_the_stage_takes_a_choice_of_baselines(stage, keepers):
    assert [*stage.time([(job(), evaluation())])]
    assert keepers.baselines is None
    chosen = PerfStage(OnGpu(), baselines=("eager",), make=keepers.make)
    assert [*chosen.time([(job(), evaluation())])]
    assert keepers.baselines == ("eager",)


SHARE = DeviceShare(case="N=4", own=0.25, library=0.75, kernels=(), reason=None)


@pytest.mark.parametrize("on_a_cluster", [False, True])
def test_a_timed_candidate_says_whose_kernels_take_the_time_where_it_is_asked_for(
    keepers, on_a_cluster
):
    requests = []

    def share(runner, candidate, task):
        requests.append((runner.device, task.key))
        return SHARE

    stage = partial(PerfStage, make=keepers.make, share=share)
    if on_a_cluster:
        factory = EvaluatorFactory(
            device="cuda:0",
            targets=(),
            policy=Policy(),
            kernels=True,
            evaluator=lambda **how: OnGpu(evaluation()),
            stage=stage,
        )
        after = factory()(job())
    else:
        (pool,) = scheduler_of(
            RunRequest(suite="core", candidates=Path(), kernels=True), [OnGpu()], stage=stage
        ).pools
        (after,) = pool.then.work([(job(), evaluation())])
    assert after.perf == CandidateTimes(outcome="timed", kernel=SHARE)
    assert requests == [("cuda:0", "kernelbenchx/relu")]


@pytest.mark.parametrize(("outcome", "kernels"), [("timed", False), ("wrong", True)])
def test_nobody_looks_at_kernels_unasked_or_where_there_is_no_time(keepers, outcome, kernels):
    def share(runner, candidate, task):
        raise AssertionError("nobody asked")

    keepers.answer = CandidateTimes(outcome=outcome)
    stage = PerfStage(OnGpu(), make=keepers.make, kernels=kernels, share=share)
    (after,) = stage.time([(job(), evaluation())])
    assert after.perf == CandidateTimes(outcome=outcome)


def test_what_was_judged_stays_with_it(stage, keepers):
    before = Evaluation(attempt=attempt(Passed()), tags=("tag",))
    (after,) = [*stage.time([(job(), before)])]
    assert (after.attempt, after.tags) == (before.attempt, ("tag",))


@pytest.mark.parametrize(
    "error", [RuntimeError("CUDA out of memory"), MemoryError("no more of it")]
)
def test_a_judge_without_memory_speaks_neither_for_nor_against(stage, keepers, error):
    keepers.answer = error
    (after,) = [*stage.time([(job(), evaluation())])]
    assert after.perf.outcome == "infra"
    assert str(error) in after.perf.detail


def test_a_fault_of_the_machine_is_one(stage, keepers):
    keepers.answer = EnvironmentFault("no device")
    with pytest.raises(EnvironmentFault, match="no device"):
        [*stage.time([(job(), evaluation())])]


@pytest.mark.parametrize(
    ("job_", "result", "timed"),
    [
        (job(), evaluation(), True),
        (job(), evaluation(perf=CandidateTimes(outcome="not_run", detail="exe: fail")), False),
        (job(timed=False), evaluation(), False),
    ],
)
def test_where_one_judge_does_it_all_only_right_ones_are_timed(keepers, job_, result, timed):
    after = PerfStage(OnGpu(result), make=keepers.make).evaluate_and_time(job_)
    assert bool(keepers.requests) is timed
    assert after.perf == (CandidateTimes(outcome="timed") if timed else result.perf)


def pool_of(keepers, **options):
    """The pool of a run on one GPU."""
    request = RunRequest(suite="core", candidates=Path(), **options)
    (pool,) = scheduler_of(request, [OnGpu()], stage=partial(PerfStage, make=keepers.make)).pools
    return pool


@pytest.mark.parametrize("against", [(), ("eager", "compile")])
def test_a_run_times_against_what_it_was_asked_for(keepers, against):
    then = pool_of(keepers, against=against).then
    assert [*then.work([(job(), evaluation())])]
    assert keepers.baselines == (against or None)


@pytest.mark.parametrize(
    ("requested", "perf", "timed"),
    [(True, None, True), (True, CandidateTimes(outcome="not_run"), False), (False, None, False)],
)
def test_only_right_ones_go_on_to_be_timed(keepers, requested, perf, timed):
    then = pool_of(keepers).then
    assert then.wanted(job(timed=requested), evaluation(perf=perf)) is timed


def test_a_candidate_that_could_not_be_timed_keeps_its_verdict(keepers):
    lost = pool_of(keepers).then.lost
    after = lost(job(), evaluation(), "the process that times died twice")
    assert isinstance(after.attempt.verdict, Passed)
    assert after.perf == CandidateTimes(outcome="infra", detail="the process that times died twice")


def test_a_lost_job_has_no_perf_stage_of_its_own():
    assert lost(job(), "the judge died").perf is None


TRITON = """
import torch, triton
import triton.language as tl

@triton.jit
def kernel(x, y, n, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(y + at, tl.maximum(tl.load(x + at, at < n), 0), at < n)

def relu(x):
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    kernel[(triton.cdiv(x.numel(), 64),)](x.contiguous(), y, x.numel(), 64)
    return y
"""
WRONG = TRITON.replace("tl.maximum(", "tl.minimum(")
TORCH = "import torch\ndef relu(x):\n    return torch.relu(x)\n"


@pytest.fixture(scope="module")
def runner(tmp_path_factory):
    with Runner(targets=(), cache_root=tmp_path_factory.mktemp("cache")) as runner:
        yield runner


class Forgets:
    """A runner that does not keep what children compile."""

    keeps_compiled = False

    def __init__(self, runner):
        self._runner = runner

    def __getattr__(self, name):
        return getattr(self._runner, name)


@pytest.fixture
def judge(runner):
    """Judge a source that may be timed afterwards; gives the shapes that were rehearsed."""

    def judge(source, *, timed=True, keeps=True):
        rehearsed = []

        class Child:
            """The candidate's child, which makes no call of a rehearsal."""

            def __init__(self, child):
                self._child = child

            def __getattr__(self, name):
                return getattr(self._child, name)

            def request(self, message, *, deadline_s):
                assert deadline_s > 0
                if not isinstance(message, Rehearse):
                    return self._child.request(message, deadline_s=deadline_s)
                rehearsed.append(message.arguments)
                return Observation(ended="returned")

        class Rehearsed(CandidateSession):
            @property
            def child(self):
                return Child(super().child)

        evaluator = Evaluator(
            policy=Policy(),
            runner=runner if keeps else Forgets(runner),
            sessions=Rehearsed,
            untimed=on_a_gpu,
        )
        candidate = read_candidate(source, "k.py", task_names=("relu",), task="relu")
        plan = Plan(cases=2, dtypes=("float32",), compile=False)
        evaluator.evaluate(job(candidate=candidate, plan=plan, timed=timed))
        return [a.shape for given in rehearsed for a in given if isinstance(a, Supply)]

    return judge


def on_a_gpu(attempt, device):
    return not_timed(attempt, "cuda:0")


@pytest.mark.slow
def test_a_right_kernel_that_is_timed_next_compiles_at_the_timed_shapes(judge):
    assert judge(TRITON) == [(1024, 1024), (4096, 4096)]


@pytest.mark.slow
@pytest.mark.parametrize("source", [WRONG, TORCH], ids=["wrong", "torch"])
def test_no_other_candidate_rehearses(judge, source):
    assert judge(source) == []


@pytest.mark.slow
@pytest.mark.parametrize("how", [{"timed": False}, {"keeps": False}], ids=["untimed", "forgotten"])
def test_nothing_compiles_if_no_candidate_is_timed(judge, how):
    assert judge(TRITON, **how) == []


def line(**stages):
    return ListedLine(
        key="relu.py",
        task="relu",
        category="",
        stages=StagesRecord(**stages),
        verdict="pass",
        kind=None,
        finding=None,
        reason="",
        torch_only=False,
        same_as=None,
    )


def test_baselines_that_are_none_are_listed_with_their_reason():
    failed = {"eager": "no valid baseline: it ran elsewhere", "compile": "it died"}
    shape = document(ShapeTimes, summary="N=9", baselines_failed=failed)
    timed = line(perf=CandidateTimes(outcome="timed", shapes=(shape,)))
    (listed,) = not_valid([timed, timed, line(call=StageRecord(outcome="pass"))])
    assert plain(listed) == {
        "task": "relu",
        "shape": "N=9",
        "baseline": "eager",
        "why": "no valid baseline: it ran elsewhere",
        "candidates": 2,
    }
