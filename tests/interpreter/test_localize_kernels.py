"""Each sentence of an explanation, told of a kernel that has that fault and was judged for it."""

from __future__ import annotations

import textwrap

import pytest

from kerneltruth.corpus import ENTRIES
from kerneltruth.corpus.entry import source
from kerneltruth.documents.case import Case
from kerneltruth.documents.records import Judgement
from kerneltruth.documents.verdict import is_bad
from kerneltruth.engine.evaluator import Evaluator
from kerneltruth.explain.diagnosis import Diagnosis, DiagnosisEffort, diagnose
from kerneltruth.oracle.bounds import Policy
from kerneltruth.oracle.candidate_session import CandidateSession
from kerneltruth.oracle.probes import probe
from kerneltruth.runner.candidate import read_candidate
from kerneltruth.tasks.core import TASKS

CORPUS = {e.name: e for e in ENTRIES}
EFFORT = DiagnosisEffort(evaluations=50, seconds=5.0)


@pytest.fixture(scope="module")
def evaluator(runner):
    return Evaluator(policy=Policy(), runner=runner)


def case_of(task: str, *, dtype="float32", layout="contiguous", recipe="uniform", **names) -> Case:
    spec = TASKS[task]
    return Case(
        task=task,
        dims=tuple((d.symbol, names.pop(d.symbol)) for d in spec.dims),
        attributes=tuple((a.name, names.pop(a.name, a.default)) for a in spec.attributes),
        dtype=dtype,
        layout=layout,
        recipe=recipe,
        seed=20260117,
        absent=tuple(names.pop("absent", ())),
        **names,
    )


def diagnosed(evaluator: Evaluator, text: str, case: Case) -> Diagnosis:
    """Judge a kernel on one case, as a session does, and explain its failure."""
    task = TASKS[case.task]
    candidate = read_candidate(text, "kernel.py", task_names=tuple(TASKS), task=case.task)
    with CandidateSession(
        task, candidate, evaluator.runner, evaluator.cache, deadline_s=20.0
    ) as session:
        expectation = evaluator.cache.get(task, case)
        assert expectation.unrefereeable is None
        ruling, _, _ = session.call(expectation)
        assert is_bad(ruling.verdict), ruling.verdict
        verdict = probe(session, expectation, ruling, config=0).refine(ruling.verdict)
        failure = Judgement(case=case, verdict=verdict, stats=ruling.stats)
        return diagnose(session, failure, (), EFFORT)


def of_corpus(evaluator: Evaluator, name: str, **names) -> Diagnosis:
    entry = CORPUS[name]
    return diagnosed(evaluator, source(entry), case_of(entry.task, **names))


ROWS = """
import time

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n_rows, n_cols, seed, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    start = tl.program_id(1) * BLOCK
    cols = start + tl.arange(0, BLOCK)
    mask = cols < n_cols
    {load}
    x = x.to(tl.float32)
    y = 1.0 / (1.0 + tl.exp(-x))
    {change}
    tl.store(out_ptr + row * n_cols + cols, y, mask={mask})


def sigmoid(input):
    x = input.contiguous()
    n_rows, n_cols = x.shape
    out = torch.{allocate}(x)
    grid = (n_rows, {tiles})
    kernel[grid](x, out, n_rows, n_cols, time.time_ns() % 2**31, BLOCK=64)
    return out
"""


def sigmoid(
    *,
    load="x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0)",
    change="",
    mask="mask",
    allocate="empty_like",
    tiles="triton.cdiv(n_cols, 64)",
) -> str:
    """A right kernel of the logistic function by rows and tiles of 64, but for what is given."""
    return textwrap.dedent(ROWS).format(
        load=load, change=change, mask=mask, allocate=allocate, tiles=tiles
    )


SUM = """
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0)
        total += {term}
    tl.store(out_ptr + row, tl.sum(total, axis=0))


def sum(input, dim=-1, keepdim=False):
    x = input.contiguous()
    out = torch.empty(x.shape[0], dtype=x.dtype, device=x.device)
    kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=16)
    return out.unsqueeze(-1) if keepdim else out
"""


def test_the_kernel_that_the_faults_are_planted_in_is_right(evaluator):
    task = TASKS["sigmoid"]
    for text, case in (
        (sigmoid(), case_of("sigmoid", M=3, N=100)),
        (SUM.format(term="x.to(tl.float32)"), case_of("sum", M=3, N=100)),
    ):
        task = TASKS[case.task]
        candidate = read_candidate(text, "kernel.py", task_names=tuple(TASKS), task=case.task)
        with CandidateSession(
            task, candidate, evaluator.runner, evaluator.cache, deadline_s=20.0
        ) as session:
            ruling, _, _ = session.call(evaluator.cache.get(task, case))
        assert not is_bad(ruling.verdict)


def test_wrong_only_in_the_last_partial_tile(evaluator):
    text = sigmoid(change="y = tl.where(start + BLOCK <= n_cols, y, 2.0 * y)")
    found = diagnosed(evaluator, text, case_of("sigmoid", M=3, N=100))
    assert found.tags == ("last_tile", "factor")
    assert found.explanation.startswith(
        "The wrong elements are off by the constant factor 2, "
        "only in the last partial tile of size 64, columns 64 to 99 of 100."
    )
    assert found.minimal.sizes == {"M": 1, "N": 1}


@pytest.mark.slow
def test_wrong_only_past_a_column(evaluator):
    text = sigmoid(allocate="zeros_like", tiles="1")
    found = diagnosed(evaluator, text, case_of("sigmoid", M=3, N=192))
    assert found.tags == ("size_threshold", "past", "zeros")
    assert found.explanation == (
        "The wrong elements are 0 where they should not be, only from column 64 on, of 192, "
        "a multiple of the tile size 64. Only N > 64 shows it."
    )
    assert found.minimal.sizes == {"M": 1, "N": 65}


def test_a_constant_factor_is_reported(evaluator):
    found = of_corpus(evaluator, "gelu_no_half", M=3, N=57)
    assert found.tags == ("factor",)
    assert found.explanation.startswith("Every element is off by the constant factor 2.")


def test_a_factor_made_of_a_size_is_named(evaluator):
    found = of_corpus(evaluator, "mean_padded_size", M=5, N=257)
    assert found.explanation.startswith(
        "Every element is off by the constant factor 0.502 = N/512 with N=257, "
        "the size padded to its tiles."
    )


def test_an_error_that_grows_with_the_reduced_dim(evaluator):
    # A sum in fixed point, each term rounded down.
    text = SUM.format(term="tl.floor(x.to(tl.float32) * 256.0) / 256.0")
    found = diagnosed(evaluator, text, case_of("sum", M=2, N=512, recipe="normal"))
    assert "grows" in found.tags
    assert found.explanation.lower().endswith("the error grows with n.")


def test_nan_beyond_a_magnitude(evaluator):
    text = sigmoid(change="y = tl.exp(x) / (tl.exp(x) + 1.0) + 0.0 * tl.exp(-x)")
    found = diagnosed(evaluator, text, case_of("sigmoid", M=3, N=100, recipe="exp_edge"))
    assert found.tags[-2:] == ("threshold", "nan")
    head = "NaN where a finite value is expected, only where |input| > "
    assert found.explanation.startswith(head)
    assert 87 < float(found.explanation.removeprefix(head).split()[0].rstrip(".,")) < 89.5
    assert found.minimal.sizes == {"M": 1, "N": 1}


@pytest.mark.parametrize("layout", ["transposed", "row_gaps"])
def test_only_for_a_non_contiguous_input(evaluator, layout):
    found = of_corpus(evaluator, "sigmoid_flat_noncontiguous", M=6, N=39, layout=layout)
    assert found.tags[0] == "assumes_contiguous"
    assert found.explanation.startswith("It takes `input` for contiguous: it is right where")
    # A matrix has no channels to lay last.
    assert found.explanation.endswith(
        "It shows with row_gaps, strided and transposed inputs, and not with contiguous, "
        "misaligned or offset ones."
    )


def test_only_in_half_precision(evaluator):
    change = """if x_ptr.dtype.element_ty != tl.float32:
        y = tl.minimum(tl.maximum(0.25 * x + 0.5, 0.0), 1.0)"""
    case = case_of("sigmoid", M=3, N=100, dtype="float16")
    found = diagnosed(evaluator, sigmoid(change=change), case)
    assert found.tags == ("dtype",)
    assert found.explanation.endswith("It shows in bfloat16 and float16, and not in float32.")
    assert found.minimal.dtype == "float16"


def test_only_in_one_dtype(evaluator):
    found = of_corpus(evaluator, "rmsnorm_half_square", M=3, N=65, dtype="float16", recipe="large")
    assert found.explanation.endswith("It shows in float16, and not in bfloat16 or float32.")


def test_off_by_one_row(evaluator):
    load = (
        "x = tl.load(x_ptr + tl.minimum(row + 1, n_rows - 1) * n_cols + cols, mask=mask, other=0.0)"
    )
    found = diagnosed(evaluator, sigmoid(load=load), case_of("sigmoid", M=5, N=100))
    assert "shifted" in found.tags
    assert found.explanation.startswith("Off by one: each row holds the value of the next one.")
    assert found.minimal.sizes == {"M": 2, "N": 1}


def test_transposed(evaluator):
    load = "x = tl.load(x_ptr + (row * n_cols + cols) % n_cols * n_rows + row, mask=mask)"
    found = diagnosed(evaluator, sigmoid(load=load), case_of("sigmoid", M=33, N=33))
    assert "transposed" in found.tags
    assert found.explanation.startswith("The output is the expected one transposed.")


def test_nondeterministic(evaluator):
    text = sigmoid(change="y += 0.1 * tl.rand(seed, cols)")
    found = diagnosed(evaluator, text, case_of("sigmoid", M=3, N=100))
    assert found.tags == ("nondeterministic",)
    assert found.explanation == ("It is nondeterministic: the same call gives different results.")


def test_reads_uninitialized_memory_and_where(evaluator):
    found = diagnosed(evaluator, sigmoid(tiles="1"), case_of("sigmoid", M=3, N=192))
    assert found.tags == ("uninitialized", "size_threshold", "past")
    assert found.explanation.startswith(
        "It reads uninitialized memory, or leaves part of its output unwritten; "
        "wrong only from column 64 on, of 192, a multiple of the tile size 64."
    )
    assert found.minimal.sizes == {"M": 1, "N": 65}


def test_writes_out_of_bounds(evaluator):
    text = sigmoid(change="y = y * 1.0", mask="cols < n_cols + 3")
    found = diagnosed(evaluator, text, case_of("sigmoid", M=3, N=100))
    assert found.tags[0] == "writes_out_of_bounds"
    assert found.explanation.startswith(
        "It writes out of bounds: it wrote element 300 of float32[3, 100] #0, "
        "which has 300 elements (line 19, in `kernel`, program (2, 1, 0))."
    )


def test_reads_out_of_bounds(evaluator):
    text = sigmoid(load="x = tl.load(x_ptr + row * n_cols + cols + 8, mask=mask, other=0.0)")
    found = diagnosed(evaluator, text, case_of("sigmoid", M=1, N=100))
    assert found.tags[0] == "reads_out_of_bounds"
    assert found.explanation.startswith(
        "It reads out of bounds: element 100 of input, which has 100 elements (line "
    )


def test_writes_to_its_input(evaluator):
    found = of_corpus(evaluator, "relu_in_place", M=3, N=100)
    assert found.tags == ("input_mutated",)
    assert found.explanation == "It wrote to its input `input`."


def test_where_an_answer_is_one_of_several(evaluator):
    text = """
    import torch
    import triton


    def topk(input, k=3):
        values, indices = torch.topk(input, k)
        indices[:, k - 1] = -1
        return values, indices
    """
    found = diagnosed(evaluator, textwrap.dedent(text), case_of("topk", M=7, N=65))
    assert found.tags == ("last_line",)
    said = "In output `indices`: wrong only in the last column: 7 of 21 elements are wrong"
    assert found.explanation.startswith(said)
    assert found.explanation.endswith("which is not an accepted answer.")
