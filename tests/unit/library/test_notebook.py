"""A real notebook: a kernel process with a running event loop, and cells that follow each other."""

import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

pytestmark = [pytest.mark.processes, pytest.mark.slow]

TASK = """
import torch
import triton
import triton.language as tl

import kerneltruth as kt

ROLES = {"M": "batch", "N": "spatial"}
DOUBLED = kt.task("doubled(x[M, N])", dims=ROLES, reference=lambda x: x * 2)
"""
KERNEL = """
BLOCK = 64

@triton.jit
def _double(x, out, n, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + at, tl.load(x + at, mask=at < n) * 2, mask=at < n)

def doubled(x):
    out = torch.empty_like(x, memory_format=torch.contiguous_format)
    _double[(triton.cdiv(x.numel(), BLOCK),)](x.contiguous(), out, x.numel(), B=BLOCK)
    return out
"""
JUDGED = """
few = {"task": DOUBLED, "cases": 4}
with kt.Judge(device="cpu", workers=1, seed=0) as judge:
    threads = torch.get_num_threads()
    plain = judge.check(doubled, **few)
    awaited = await judge.acheck(doubled, **few)
    wrong = [r async for r in judge.acheck_many(["def d(x): return x + 1"], **few)]
own = plain.profile["kernel"].status
(plain.verdict, own, awaited.passed, wrong[0].kind, threads == torch.get_num_threads())
"""
IN_A_LINE = "kt.check(lambda x: x * 2, task=DOUBLED, device='cpu')"
UNEQUAL = """
def tripled(x):
    return x * 3

kt.assert_correct(tripled, device="cpu", **few)
"""


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    """What each cell shows: the text of its value, or the name and text of its error."""
    cells = (TASK, KERNEL, JUDGED, IN_A_LINE, UNEQUAL)
    notebook = new_notebook(cells=[new_code_cell(cell) for cell in cells])
    client = NotebookClient(notebook, timeout=300, allow_errors=True)
    client.execute(cwd=str(tmp_path_factory.mktemp("notebook")))
    return [_outcome_of(cell.outputs) for cell in notebook.cells]


def _outcome_of(outputs):
    for output in outputs:
        if output.output_type == "error":
            return output.ename, output.evalue
        if output.output_type == "execute_result":
            return output.data["text/plain"]
    return None


def test_a_task_and_a_kernel_of_cells_are_judged_while_an_event_loop_runs(outputs):
    assert outputs[:2] == [None, None]
    assert outputs[2] == "('pass', 'held', True, 'value', True)"


def test_a_function_within_an_expression_is_refused_in_one_line(outputs):
    name, said = outputs[3]
    assert name == "UserError"
    assert "define it there" in said
    assert "\n" not in said


def test_a_failing_assertion_shows_the_smallest_case(outputs):
    name, said = outputs[4]
    assert name == "KernelIncorrect"
    assert "smallest: M=1 N=1 float32" in said
    assert "  breaks published\n" in said
