"""What a kernel is timed with is compiled while it is checked, beside others."""

import pytest
from softmax_kernel import KERNEL

from kerneltruth.clock.protocol.effort import Effort
from kerneltruth.documents.verdict import Passed
from kerneltruth.engine.benchmark.baselines import baseline_sources
from kerneltruth.engine.benchmark.benchmarker import Benchmarker
from kerneltruth.engine.benchmark.machine import Machine
from kerneltruth.engine.evaluator import EvaluationRequest, Evaluator
from kerneltruth.oracle.bounds import Policy
from kerneltruth.oracle.plan import Plan
from kerneltruth.runner.candidate import read_candidate
from kerneltruth.tasks.registry import find

pytestmark = pytest.mark.gpu

DEVICE = "cuda:0"
TASK = "kernelbenchx/softmax"
# Its block is as wide as a row, so that each shape takes a kernel of its own; rows of the sizes
# that are checked have one configuration, those that are timed have more.
TUNED = f"""
import torch, triton
import triton.language as tl

def pruned(configs, named, **more):
    return configs if named["n"] > 512 else configs[:1]

@triton.autotune(
    [triton.Config({{}}, num_warps=n) for n in (2, 4, 8)],
    key=["n"],
    prune_configs_by={{"early_config_prune": pruned}},
)
{KERNEL}
def softmax(input, dim=-1, dtype=None):
    input = input if dtype is None else input.to(dtype)
    at = dim % input.dim()
    moved = input.movedim(at, -1).contiguous()
    out = torch.empty_like(moved)
    n = moved.shape[-1]
    if out.numel():
        kernel[(out.numel() // n,)](moved, out, n, triton.next_power_of_2(n))
    return out.movedim(-1, at)
"""


@pytest.mark.parametrize("timed", [True, False])
def test_a_timed_candidate_finds_its_shapes_compiled(tmp_path, timed):
    evaluator = Evaluator(device=DEVICE, policy=Policy(), cache_root=tmp_path)
    evaluator.start()
    try:
        candidate = read_candidate(TUNED, "k.py", task_names=("softmax",), task="softmax")
        plan = Plan(cases=8, compile=False, deadline_s=60.0)
        job = EvaluationRequest(name="one", task=TASK, candidate=candidate, plan=plan, timed=timed)
        heard = evaluator.evaluate(job)
        assert heard.attempt.verdict == Passed(), heard.attempt
        assert heard.perf is None
        before = compiled(tmp_path / candidate.sha256)
        benchmarker = Benchmarker(
            evaluator.runner,
            machine=Machine(device=DEVICE),
            seed=5,
            baselines=("eager",),
            effort=Effort(blocks=(6, 6), budget_s=0.5, memory_bytes=2**31, deadline_s=120.0),
            sources=baseline_sources,
        )
        document = benchmarker.time(find(TASK), candidate)
        benchmarker.close(wait=True)
    finally:
        evaluator.close()
    assert document.outcome == "timed", document
    assert len(document.shapes) > 1
    after = compiled(tmp_path / candidate.sha256)
    assert (before == after) is timed, after - before


def compiled(folder):
    """Names of the kernels there; the folder's name is the kernel's key."""
    return {path.parent.name for path in folder.rglob("*.cubin")}
