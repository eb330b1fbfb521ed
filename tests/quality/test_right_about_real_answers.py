"""Answers as models write them: what convicted them wrongly, and what let them through."""

import pytest

from kerneltruth.engine.evaluator import EvaluationRequest
from kerneltruth.explain.diagnosis import DiagnosisEffort
from kerneltruth.oracle.plan import Plan
from kerneltruth.runner.candidate import read_candidate
from kerneltruth.tasks.registry import find

HEAD = "import torch, triton\nimport torch.nn.functional as F\nimport triton.language as tl\n"

# Loads every dtype as float32 and stores it so.
WIDENING = """
@triton.jit
def kernel(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n).to(tl.float32)
    tl.store(out + at, tl.erf(v) FAULT, mask=at < n)

def erf(input_tensor, *, out=None):
    x = input_tensor.contiguous()
    result = torch.empty(x.shape, dtype=torch.float32, device=x.device)
    if x.numel():
        kernel[(triton.cdiv(x.numel(), 256),)](x, result, x.numel(), 256)
    return result if out is None else out.copy_(result)
"""

# libdevice-like functions exist for float32 alone, so that float16 does not compile.
FLOAT32_ONLY = """
@triton.jit
def kernel(x, out, n, BLOCK: tl.constexpr):
    tl.static_assert(x.dtype.element_ty == tl.float32)
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n)
    tl.store(out + at, tl.erf(v), mask=at < n)

def erf(input_tensor, *, out=None):
    x = input_tensor.contiguous()
    result = torch.empty_like(x)
    if x.numel():
        kernel[(triton.cdiv(x.numel(), 256),)](x, result, x.numel(), 256)
    return result if out is None else out.copy_(result)
"""

TOTAL_OF_ONE = """
def scaled_add_dot(y, x, alpha):
    y.add_(x, alpha=alpha)
    return torch.dot(y, y).reshape(1)
"""

CUT_OFF = """
def fused_tile_exp(input, dims, *, out=None):
    shape = [n * d for n, d in zip(input.shape, dims)]
    result = torch.empty(shape, dtype=input.dtype, device=input.device)
    rank = len(shape)
    # Expand all sizes up to
"""

AFFINE = """
def grid_sample_with_affine(
    input, theta, size, mode="bilinear", padding_mode="zeros", align_corners=False
):
    grid = F.affine_grid(theta, list(size), align_corners)
    return F.grid_sample(input, grid, mode, padding_mode, align_corners)
"""

ERFC = """
def erfc_sqrt(input):
    return 1 - torch.erf(input), torch.sqrt(input)
"""

GIVES_UP = """
from kerneltruth.runner.unsupported import UnsupportedError

def erf(input_tensor, *, out=None):
    if input_tensor.numel() > 99 or not input_tensor.isfinite().all():
        raise UnsupportedError("not here")
    return torch.erf(input_tensor, out=out)
"""
NAMED_ALIKE = GIVES_UP.replace(
    "from kerneltruth.runner.unsupported import UnsupportedError",
    """class UnsupportedError(Exception):
    __module__ = "kerneltruth.runner.unsupported"
""",
)

EXPECTED = [
    ("float32 for float16", WIDENING.replace("FAULT", ""), "kernelbenchx/erf", "pass", None),
    ("and wrong", WIDENING.replace("FAULT", "+ (at == 40)"), "kernelbenchx/erf", "fail", "value"),
    ("float16 does not compile", FLOAT32_ONLY, "kernelbenchx/erf", "pass", None),
    ("(1,) for ()", TOTAL_OF_ONE, "tritonbench/scaled_add_dot", "pass", None),
    ("cut off", CUT_OFF, "kernelbenchx/fused_tile_exp", "fail", "type"),
    ("PyTorch lacks half here", AFFINE, "kernelbenchx/grid_sample_with_affine", "pass", None),
    ("1 - erf", ERFC, "kernelbenchx/erfc_sqrt", "pass", None),
    ("gives up aloud", GIVES_UP, "kernelbenchx/erf", "unsupported_here", None),
    ("by an error of that name", NAMED_ALIKE, "kernelbenchx/erf", "runtime_error", None),
]


@pytest.fixture(scope="module")
def attempts(evaluator):
    return {}


@pytest.fixture
def attempt_on(evaluator, attempts):
    def judge(what):
        if what not in attempts:
            source, name = next((s, n) for w, s, n, _, _ in EXPECTED if w == what)
            task = find(name)
            candidate = read_candidate(
                HEAD + source, "a.py", task_names=(task.name,), task=task.name
            )
            job = EvaluationRequest(
                name=what,
                task=name,
                candidate=candidate,
                plan=Plan(cases=40, compile=False),
                effort=DiagnosisEffort(evaluations=60, seconds=20.0),
            )
            attempts[what] = evaluator.evaluate(job).attempt
        return attempts[what]

    return judge


@pytest.mark.slow
@pytest.mark.parametrize(("what", "verdict", "kind"), [(w, v, k) for w, _, _, v, k in EXPECTED])
def test_the_verdict_is_what_a_reader_would_say(attempt_on, what, verdict, kind):
    attempt = attempt_on(what)
    assert (attempt.verdict.word, getattr(attempt.verdict, "kind", None)) == (verdict, kind)


def test_the_form_stands_beside_the_verdict(attempt_on):
    for what, form in (("float32 for float16", "dtype"), ("(1,) for ()", "shape")):
        notes = attempt_on(what).interface
        assert {n.kind for n in notes} == {form}
    assert attempt_on("(1,) for ()").hazards.keys() == {"interface"}


def test_a_refusal_to_compile_beyond_the_promised_dtype_is_declined(attempt_on):
    declined = attempt_on("float16 does not compile").declined
    assert {case.dtype for case, _ in declined} == {"float16", "bfloat16"}


def test_an_answer_that_was_cut_off_is_said_to_be(attempt_on):
    assert "the source never returns a value" in attempt_on("cut off").verdict.detail


def test_the_smallest_case_is_shown_with_its_numbers(attempt_on):
    attempt = attempt_on("and wrong")
    assert attempt.shown.startswith("input_tensor=")
    assert "expected" in attempt.shown


def test_what_has_a_kernel_and_what_has_none_is_told_apart(attempt_on):
    assert attempt_on("1 - erf").torch_only
    assert not attempt_on("float32 for float16").torch_only
