"""A few kernels of the corpus, and a few hand-made ones, judged on a real GPU."""

import subprocess
import sys

import pytest

from kerneltruth.documents.verdict import Crashed, Failed, Passed, RuntimeFault

pytestmark = pytest.mark.gpu

CLEAN = ("relu", "softmax", "layernorm", "matmul", "flash_attention", "argmax", "lerp")

CAUGHT = (
    "softmax_other_zero",
    "matmul_no_accumulate",
    "tanh_naive_exp",
    "layernorm_one_pass_variance",
    "sigmoid_flat_noncontiguous",
    "cumsum_drops_carry",
)

HEAD = "import torch, triton\nimport triton.language as tl\n"


GLUON = """
import torch, triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl

@gluon.jit
def relu_kernel(x, y, n, BLOCK: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([4], [32], [4], [0])
    i = gl.program_id(0).to(gl.int64) * BLOCK + gl.arange(0, BLOCK, layout=layout)
    v = gl.load(x + i, mask=i < n)
    gl.store(y + i, gl.where(v < 0, {below}, v), mask=i < n)

def relu(x):
    x = x.contiguous()
    y = torch.empty_like(x)
    if x.numel():
        relu_kernel[(triton.cdiv(x.numel(), 512),)](x, y, x.numel(), BLOCK=512, num_warps=4)
    return y
"""


def test_a_gluon_kernel_is_judged_by_its_results(judge):
    right = judge(GLUON.format(below="0"), task="relu")
    assert (right.verdict, right.candidate.language) == (Passed(), "gluon")
    assert right.kernel.own == 1
    wrong = judge(GLUON.format(below="-1"), task="relu")
    assert isinstance(wrong.verdict, Failed)


@pytest.mark.parametrize("name", CLEAN)
def test_a_control_is_clean_on_the_gpu(evaluate, name):
    attempt = evaluate(name)
    assert attempt.verdict == Passed(), attempt.failure
    assert attempt.skipped == {}


@pytest.mark.parametrize("name", CAUGHT)
def test_a_bug_is_caught_on_the_gpu(evaluate, name):
    attempt = evaluate(name)
    # What the contract does not ask is a hazard beside a pass.
    assert isinstance(attempt.verdict, Failed) or attempt.hazards


def test_a_write_to_an_input_is_seen_on_the_gpu(evaluate):
    verdict = evaluate("relu_in_place").verdict
    assert isinstance(verdict, Failed)
    assert verdict.kind in ("input_mutated", "aliased_output")


def test_the_one_wrong_configuration_of_an_autotuned_kernel_is_caught(evaluate):
    attempt = evaluate("lerp_one_config_wrong")
    assert isinstance(attempt.verdict, Failed)
    assert attempt.failure.config > 0 or attempt.cases > 1


def test_an_unwritten_tail_is_uninitialized_memory(judge):
    attempt = judge(
        HEAD + "@triton.jit\n"
        "def k(x, y, n, B: tl.constexpr):\n"
        "    i = tl.program_id(0) * B + tl.arange(0, B)\n"
        "    v = tl.load(x + i, mask=i < n)\n"
        "    tl.store(y + i, tl.where(v > 0, v, v * 0.0), mask=i < n - 1)\n"
        "def relu(x):\n"
        "    x = x.contiguous()\n"
        "    y = torch.empty_like(x)\n"
        "    if x.numel():\n"
        "        k[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), B=64)\n"
        "    return y\n",
        task="relu",
    )
    assert isinstance(attempt.verdict, Failed)
    assert attempt.verdict.kind == "uninitialized"


def test_a_read_beyond_an_input_is_out_of_bounds(judge):
    attempt = judge(
        HEAD + "@triton.jit\n"
        "def k(x, y, n, B: tl.constexpr):\n"
        "    i = tl.program_id(0) * B + tl.arange(0, B)\n"
        "    v = tl.load(x + i + 1, mask=i < n)\n"
        "    tl.store(y + i, tl.where(v != v, v, tl.maximum(v, 0.0)), mask=i < n)\n"
        "def relu(x):\n"
        "    x = x.contiguous()\n"
        "    y = torch.empty_like(x)\n"
        "    if x.numel():\n"
        "        k[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), B=64)\n"
        "    return y\n",
        task="relu",
    )
    assert isinstance(attempt.verdict, Failed)
    assert attempt.verdict.kind in ("value", "nan", "out_of_bounds")


def test_an_illegal_address_is_the_kernels_fault_and_judging_goes_on(judge, evaluate):
    attempt = judge(
        HEAD + "@triton.jit\n"
        "def k(x, B: tl.constexpr):\n"
        "    i = tl.arange(0, B).to(tl.int64) * 1099511627776\n"
        "    tl.store(x + i, tl.load(x) * 0)\n"
        "def relu(x):\n"
        "    k[(1,)](x, B=64)\n"
        "    return x.clamp(min=0)\n",
        task="relu",
    )
    assert isinstance(attempt.verdict, RuntimeFault | Crashed)
    assert evaluate("relu", cases=4).verdict == Passed()


def test_asking_for_more_memory_than_the_device_has_is_the_kernels_fault(judge, evaluate):
    attempt = judge(
        "import torch\n"
        "def relu(x):\n"
        "    torch.empty(2**42, dtype=torch.uint8, device=x.device)\n"
        "    return x.clamp(min=0)\n",
        task="relu",
    )
    assert isinstance(attempt.verdict, RuntimeFault)
    assert "OutOfMemory" in attempt.verdict.error
    assert evaluate("relu", cases=4).verdict == Passed()


def test_an_endless_kernel_does_not_hold_the_device(evaluator, evaluate):
    from kerneltruth.runner.arguments import TensorArgument
    from kerneltruth.runner.candidate import read_candidate

    source = (
        HEAD + "@triton.jit\n"
        "def k(x):\n"
        "    v = tl.load(x, volatile=True)\n"
        "    while v == v:\n"
        "        v = tl.load(x, volatile=True)\n"
        "def relu(x):\n"
        "    k[(1,)](x)\n"
        "    return x.clamp(min=0)\n"
    )
    argument = TensorArgument(
        name="x", dtype="float32", shape=(1,), strides=(1,), offset=0, buffer=bytes(4)
    )
    with evaluator.runner.open(read_candidate(source, "f.py", task_names=("relu",))) as session:
        assert session.call([argument], poison=bytes(16), deadline_s=20).ended == "timeout"
    assert evaluate("relu", cases=4).verdict == Passed()


def test_an_output_left_on_the_cpu_is_on_the_wrong_device(judge):
    attempt = judge("import torch\ndef relu(x): return x.cpu().clamp(min=0)\n", task="relu")
    assert isinstance(attempt.verdict, Failed)
    assert attempt.verdict.kind == "device"


def test_the_judge_never_touches_the_device():
    code = (
        "import torch\n"
        "from kerneltruth.engine.evaluator import EvaluationRequest, Evaluator\n"
        "from kerneltruth.oracle.bounds import Policy\n"
        "from kerneltruth.oracle.plan import Plan\n"
        "from kerneltruth.runner.candidate import read_candidate\n"
        "candidate = read_candidate('def relu(x): return x.clamp(min=0)', 'f.py',\n"
        "    task_names=('relu',))\n"
        "evaluator = Evaluator(device='cuda:0', targets=(), policy=Policy())\n"
        "request = EvaluationRequest(name='f', task='relu', candidate=candidate,\n"
        "    plan=Plan(cases=16))\n"
        "said = evaluator.evaluate(request).attempt.verdict.word\n"
        "evaluator.close()\n"
        "print(said, torch.cuda.is_initialized())\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["pass", "False"]
