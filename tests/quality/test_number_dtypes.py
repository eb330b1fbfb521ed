"""Complex and integer inputs where prompts promise them: right kernels, and wrong ones."""

import pytest

from kerneltruth.cases.strategies import generate
from kerneltruth.engine.evaluator import EvaluationRequest
from kerneltruth.engine.proof import prove
from kerneltruth.explain.diagnosis import DiagnosisEffort
from kerneltruth.oracle.bounds import Policy
from kerneltruth.oracle.expectation_builder import ExpectationCache
from kerneltruth.oracle.plan import Plan
from kerneltruth.runner.candidate import read_candidate
from kerneltruth.tasks.registry import TASKS

WRONG = {
    # The imaginary parts are lost.
    "mul": "def mul(input, other, out=None):\n    return torch.mul(input.real, other, out=out)\n",
    # Transposed where the conjugate transpose is due.
    "cholesky": """
def cholesky(A, upper=False, out=None):
    L = torch.linalg.cholesky(A).conj()
    return torch.clone(L.mH if upper else L) if out is None else out.copy_(L.mH if upper else L)
""",
    "cholesky_solve": """
def cholesky_solve(B, L, upper=False, out=None):
    A = L.mT @ L if upper else L @ L.mT
    return torch.linalg.solve(A, B, out=out)
""",
    "svd": """
def svd(A, full_matrices=True):
    U, S, Vh = torch.linalg.svd(A, full_matrices=full_matrices)
    return U, S, Vh.conj()
""",
    "conv2d": """
import torch.nn.functional as F
def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    return F.conv2d(input, weight.conj(), bias, stride, padding, dilation, groups)
""",
}
REFUSES = """
def add(input, other, *, alpha=1, out=None):
    if input.is_complex():
        raise TypeError("no complex numbers")
    return torch.add(input, other, alpha=alpha, out=out)
"""
IN_FLOAT = """
def add(input, other, *, alpha=1, out=None):
    result = torch.add(input.float(), other, alpha=alpha).to(input.dtype)
    return result if out is None else out.copy_(result)
"""


@pytest.fixture(scope="module")
def cache():
    return ExpectationCache(Policy())


def proof_of(evaluator, cache, name, source, dtype, cases=8):
    task = TASKS[f"kernelbenchx/{name}"]
    text = f"import torch\n{source}"
    candidate = read_candidate(text, "one.py", task_names=(name,), task=name, entry=name)
    return prove(task, candidate, evaluator.runner, cache, plan=Plan(cases=cases, dtypes=(dtype,)))


@pytest.mark.slow
@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_for_complex_numbers_alone_is_found(evaluator, cache, name):
    assert proof_of(evaluator, cache, name, WRONG[name], "complex64").flagged
    if name != "mul":
        assert proof_of(evaluator, cache, name, WRONG[name], "float32").flagged == []


def test_complex_numbers_that_are_promised_may_not_be_refused(evaluator, cache):
    found = proof_of(evaluator, cache, "add", REFUSES, "complex64").flagged
    assert {flag.verdict for flag in found} == {"runtime_error"}


def test_large_integers_that_float32_does_not_hold_are_found(evaluator, cache):
    assert proof_of(evaluator, cache, "add", IN_FLOAT, "int32", cases=24).flagged
    assert proof_of(evaluator, cache, "add", IN_FLOAT, "float32").flagged == []


def test_complex_inputs_are_finite_and_of_no_real_dtype():
    task = TASKS["kernelbenchx/fused_add_mean"]
    cases = list(generate(task, seed=0, count=60, dtypes=("complex64",)))
    assert len(cases) > 16
    assert not {"nan_injected", "adversarial"} & {case.recipe for case in cases}
    assert all(case.settings["dtype"] is None for case in cases)


def test_what_is_wrong_for_complex_numbers_is_explained(evaluator):
    source = f"import torch\n{WRONG['mul']}"
    candidate = read_candidate(source, "one.py", task_names=("mul",), task="mul", entry="mul")
    plan = Plan(cases=8, dtypes=("complex64",), compile=False)
    job = EvaluationRequest(
        name="one",
        task="kernelbenchx/mul",
        candidate=candidate,
        plan=plan,
        effort=DiagnosisEffort(),
    )
    attempt = evaluator.evaluate(job).attempt
    assert attempt.minimal is not None
    assert attempt.minimal.dtype == "complex64"
    assert "j)" in attempt.shown
