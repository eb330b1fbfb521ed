"""A wrong kernel of a random task is named by what it depends on; a right one stays clean."""

import pytest

from kerneltruth.documents.verdict import Failed, Passed
from kerneltruth.engine.evaluator import EvaluationRequest
from kerneltruth.explain.diagnosis import DiagnosisEffort
from kerneltruth.oracle.plan import Plan
from kerneltruth.runner.candidate import read_candidate
from kerneltruth.tasks.registry import TASKS

DROPOUT = """
import time, torch, triton
import triton.language as tl

@triton.jit
def k(x, y, n, p, lambd, seed, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i, mask=i < n).to(tl.float32)
    v = tl.where(tl.rand(seed, i) < p, 0.0, v / (1 - p) * {scale})
    tl.store(y + i, tl.where(tl.abs(v) <= lambd, 0.0, v), mask={mask})

def fused_hardshrink_dropout(input, p=0.5, training=True, inplace=False, lambd=0.5):
    if not training or p == 0 or p == 1:
        return torch.nn.functional.hardshrink(torch.dropout(input, p, training), lambd)
    x = input.contiguous()
    y = torch.empty_like(x)
    k[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), p, lambd, {seed}, B=64)
    return y
"""
# Every element of a stretch beyond the input, in place of the last ones.
BEYOND = """
import torch

def fused_hardshrink_dropout(input, p=0.5, training=True, inplace=False, lambd=0.5):
    x = torch.dropout(input, p, training).contiguous()
    behind = torch.as_strided(input, (3,), (1,), input.storage_offset() + input.numel())
    x.view(-1)[-3:] = behind
    return torch.nn.functional.hardshrink(x, lambd)
"""
BLOCK = """
import torch

def fused_transformer_block(
    input, weight1, weight2, residual, dropout_p=0.1, eps=1e-5, *, out=None
):
    x = torch.softmax(input @ weight1, -1)
    x = torch.dropout(x, dropout_p, True) @ weight2 + residual
    return torch.nn.functional.layer_norm(x, x.shape[-1:], eps=eps) * 2 + 1
"""
SEEDED = "int(torch.randint(2**31, ()))"
CLOCKED = "time.perf_counter_ns() % 2**31"
HARDSHRINK = "kernelbenchx/fused_hardshrink_dropout"


def dropout(*, scale="1.0", mask="i < n", seed=SEEDED):
    return DROPOUT.format(scale=scale, mask=mask, seed=seed)


@pytest.fixture
def attempt(evaluator):
    def judge(source, key=HARDSHRINK, **more):
        name = TASKS[key].name
        candidate = read_candidate(source, "one.py", task_names=(name,), task=name)
        plan = Plan(cases=12, compile=False, dtypes=("float32",))
        job = EvaluationRequest(name="one", task=key, candidate=candidate, plan=plan, **more)
        return evaluator.evaluate(job).attempt

    return judge


@pytest.mark.slow
@pytest.mark.sampled(by=lambda seed, fault, kind: [seed, str(fault)])
@pytest.mark.parametrize("seed", [SEEDED, CLOCKED])
@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ({"mask": "(i < n) & (i < n // 64 * 64)"}, "uninitialized"),
        ({"mask": "(i < n) & (i % 7 != 3)"}, "uninitialized"),
        ({"scale": "2.0"}, "value"),
        # Few elements that were never written are not what is wrong with all.
        ({"scale": "2.0", "mask": "(i < n) & (i != 5)"}, "value"),
    ],
)
def test_a_fault_is_named(attempt, seed, fault, kind):
    verdict = attempt(dropout(seed=seed, **fault)).verdict
    assert isinstance(verdict, Failed), verdict
    assert verdict.kind == kind, verdict


def test_a_read_beyond_an_input_is_named(attempt):
    verdict = attempt(BEYOND).verdict
    assert isinstance(verdict, Failed)
    assert verdict.kind == "out_of_bounds", verdict


@pytest.mark.slow
@pytest.mark.parametrize("seed", [SEEDED, CLOCKED])
def test_a_right_one_is_clean(attempt, seed):
    judged = attempt(dropout(seed=seed))
    assert judged.verdict == Passed(), judged.failure


@pytest.mark.slow
def test_the_sentence_shows_a_wrong_element_and_where_they_are(attempt):
    effort = DiagnosisEffort(evaluations=9, seconds=9.0)
    explanation = attempt(dropout(scale="2.0"), effort=effort).explanation
    assert "which is not an accepted answer." in explanation
    assert "Elements neither kept nor dropped: " in explanation
    explanation = attempt(dropout(mask="(i < n) & (i < n // 64 * 64)"), effort=effort).explanation
    assert "wrong only in the last partial tile of size 64" in explanation


def test_the_sentence_names_every_broken_claim(attempt):
    judged = attempt(
        BLOCK,
        "kernelbenchx/fused_transformer_block",
        effort=DiagnosisEffort(evaluations=9, seconds=9.0),
    )
    assert "mean of a row, of what rounding allows" in judged.explanation.lower()
    assert "mean square of a row" in judged.explanation
