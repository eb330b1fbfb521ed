"""Own and library kernels of a result, where a GPU runs Triton and CUDA C++."""

import importlib.util
import shutil
from types import SimpleNamespace

import pytest
from test_cuda_source_gpu import SOURCE

from kerneltruth.clock.protocol.effort import Effort
from kerneltruth.clock.schedule.timed_cases import timed_cases
from kerneltruth.documents.verdict import Passed
from kerneltruth.engine.benchmark.baselines import baseline_sources
from kerneltruth.engine.benchmark.benchmarker import Benchmarker
from kerneltruth.engine.benchmark.machine import Machine
from kerneltruth.engine.benchmark.profiling import device_share
from kerneltruth.engine.benchmark.timed_file import time_file
from kerneltruth.engine.candidates import PerfStage
from kerneltruth.engine.evaluator import Evaluation, EvaluationRequest
from kerneltruth.engine.requests import TimeRequest, result_of
from kerneltruth.oracle.plan import Plan
from kerneltruth.report.kernel_words import shares
from kerneltruth.runner.candidate import read_candidate
from kerneltruth.runner.host import Runner
from kerneltruth.tasks.registry import find

pytestmark = pytest.mark.gpu
needs_nvcc = [
    pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc"),
    pytest.mark.skipif(
        shutil.which("ninja") is None and importlib.util.find_spec("ninja") is None,
        reason="needs ninja",
    ),
]

KERNEL = """
import torch, triton
import triton.language as tl

@triton.jit
def bias(x, y, n, B: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * B + tl.arange(0, B)
    v = tl.load(x + i, i < n)
    tl.store(y + i, {value}, i < n)

def through(x):
    x = x.contiguous()
    y = torch.empty_like(x)
    if x.numel():
        bias[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), B=256)
    return y
"""
RELU = KERNEL.format(value="tl.where(v < 0, 0, v)")
COPY = KERNEL.format(value="v")
OWN = RELU + "\ndef relu(x):\n    return through(x)\n"
PRETENDING = COPY + "\ndef relu(x):\n    through(x)\n    return torch.relu(x)\n"
NEVER_LAUNCHED = COPY + "\ndef relu(x):\n    return torch.relu(x)\n"
MIXED = COPY + "\ndef relu(x):\n    return through(torch.relu(x))\n"
CUDA = SOURCE.replace("LIMIT", "n")
CUDA_PRETENDING = CUDA.replace("NAME", "pretending").replace(
    "    return _extension.relu_cuda(x)",
    "    _extension.relu_cuda(x)\n    return torch.relu(x)",
)


COMPILED = (
    RELU
    + """
def relu(x):
    x = x.contiguous()
    y = torch.empty_like(x)
    if x.numel():
        compiled = bias.warmup(x, y, x.numel(), B=256, grid=(1,))
        compiled[(triton.cdiv(x.numel(), 256), 1, 1)](x, y, x.numel(), 256)
    return y
"""
)


def names(attempt, *, own):
    return {run.name for run in attempt.kernel.runs if run.own == own}


def test_a_triton_kernel_does_its_own_work(judge):
    attempt = judge(OWN, task="relu")
    assert attempt.kernel.probe == "needed"
    assert names(attempt, own=True) == {"bias"}
    assert not attempt.torch_only


def test_a_kernel_that_is_compiled_ahead_is_seen(judge):
    attempt = judge(COMPILED, task="relu")
    assert attempt.kernel.own_launches == 1
    assert attempt.kernel.probe in ("needed", None)


def test_a_kernel_whose_result_is_thrown_away_did_not_do_the_work(judge):
    attempt = judge(PRETENDING, task="relu")
    assert attempt.verdict == Passed()
    assert (attempt.kernel.probe, attempt.profile["kernel"].status) == ("not_needed", "broken")
    assert "relu" in names(attempt, own=False)


def test_a_kernel_that_is_never_launched_is_none(judge):
    attempt = judge(NEVER_LAUNCHED, task="relu")
    assert attempt.kernel.own_launches == 0
    assert attempt.torch_only


def test_a_library_call_before_an_own_kernel_is_counted(judge):
    attempt = judge(MIXED, task="relu")
    assert (attempt.kernel.own_launches, attempt.kernel.probe) == (1, "needed")
    assert "relu" in names(attempt, own=False)


@pytest.mark.parametrize(
    ("source", "probe"),
    [
        pytest.param(CUDA.replace("NAME", "own"), "needed", marks=needs_nvcc),
        pytest.param(CUDA_PRETENDING, "not_needed", marks=needs_nvcc),
    ],
)
def test_launches_of_cuda_sources_are_seen_and_can_be_left_out(judge, source, probe):
    attempt = judge(source, task="relu")
    assert attempt.verdict == Passed(), attempt.verdict
    assert attempt.kernel.own_launches == 1
    assert attempt.kernel.probe == probe


@pytest.mark.parametrize("name", ["softmax", "layernorm", "matmul"])
def test_a_control_does_its_own_work(evaluate, name):
    fact = evaluate(name, cases=4).kernel
    assert fact.own_launches
    assert fact.probe == "needed"


MATMUL = """
import torch, triton
import triton.language as tl

@triton.jit
def copied(x, y, n, B: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * B + tl.arange(0, B)
    tl.store(y + i, tl.load(x + i, i < n), i < n)

def matmul(a, b):
    product = torch.matmul(a, b)
    out = torch.empty_like(product)
    copied[(triton.cdiv(out.numel(), 1024),)](product, out, out.numel(), B=1024)
    return out
"""
PLAIN = "import torch\ndef relu(x):\n    return torch.relu(x)\n"


def shares_of(source, name):
    task = find(name)
    candidate = read_candidate(source, "f.py", task_names=(task.name,), task=task.name)
    with Runner(device="cuda:0") as runner:
        return device_share(runner, candidate, task, timed_cases(task)[-1])


def test_a_product_of_the_library_and_an_own_kernel_share_the_time():
    share = shares_of(MATMUL, "matmul")
    assert share.reason is None
    assert 0 < share.own < 1
    assert share.own + share.library == pytest.approx(1)
    assert {kernel.name for kernel in share.kernels if kernel.own} == {"copied"}


@pytest.mark.parametrize(("source", "own"), [(OWN, 1.0), (PLAIN, 0.0)])
def test_one_kernel_takes_all_of_the_time(source, own):
    share = shares_of(source, "relu")
    assert (share.reason, share.own) == (None, own)


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")
def test_kernels_of_cuda_sources_are_told_from_the_librarys():
    share = shares_of(CUDA.replace("NAME", "shares"), "relu")
    assert (share.reason, share.own) == (None, 1.0)
    assert {kernel.name for kernel in share.kernels} == {"relu_kernel"}


QUICK = Effort(blocks=(6, 6), budget_s=0.0, memory_bytes=2**30, deadline_s=120.0)


def test_time_says_whose_kernels_take_the_time_of_its_largest_shape(tmp_path):
    file = tmp_path / "relu.py"
    file.write_text(MIXED)
    request = TimeRequest(
        file=file,
        task="relu",
        device="cuda:0",
        baselines=("eager",),
        budget_s=0.0,
        kernels=None,
    )
    machine = Machine(device="cuda:0")
    with Runner(device="cuda:0") as runner:
        document = result_of(
            time_file(request, runner, 0.0, measure=lambda runner, *, anew: machine)
        )
    assert document.outcome == "timed", document.detail
    assert document.kernel.case == document.shapes[-1].summary
    assert 0.2 < document.kernel.own < 0.8
    assert shares(document.kernel).endswith("%)")


@pytest.mark.parametrize(("source", "own"), [(OWN, 1.0), (PLAIN, 0.0)])
def test_the_perf_stage_says_it_of_a_right_candidate_where_it_is_asked_for(judge, source, own):
    candidate = read_candidate(source, "relu.py", task_names=("relu",), task="relu")
    job = EvaluationRequest(name="relu", task="relu", candidate=candidate, plan=Plan(cases=4))
    with Runner(device="cuda:0") as runner:

        def make(runner, baselines):
            return Benchmarker(
                runner,
                machine=Machine(device="cuda:0"),
                seed=5,
                baselines=("eager",),
                effort=QUICK,
                sources=baseline_sources,
            )

        stage = PerfStage(SimpleNamespace(runner=runner), kernels=True, make=make)
        before = Evaluation(attempt=judge(source, task="relu"))
        (after,) = stage.time([(job, before)])
    assert after.perf.outcome == "timed", after.perf.detail
    assert after.perf.kernel.own == own
