"""`--require-kernel`: a right result must be the work of the candidate's own kernels."""

import json

import pytest

OWN = """
import torch, triton
import triton.language as tl

@triton.jit
def relu_kernel(x, y, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i, i < n)
    tl.store(y + i, tl.where(v < 0, 0, v), i < n)

def relu(input, inplace=False):
    x = input.contiguous()
    y = x if inplace else torch.empty_like(x)
    if x.numel():
        relu_kernel[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), B=64)
    return input.copy_(y) if inplace else y
"""
# Right without its kernel: PyTorch computes the result that is returned.
PRETENDING = OWN.replace("else y\n", "else torch.relu(input)\n")
PLAIN = (
    "import torch\ndef relu(input, inplace=False):\n    return torch.relu_(input) if inplace else "
)
PLAIN += "torch.relu(input)\n"
ARGUMENTS = ("--device", "cpu", "--json")


@pytest.fixture
def kernel(tmp_path):
    def write(source, name="relu.py"):
        path = tmp_path / name
        path.write_text(source)
        return path

    return write


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "fact"),
    [(OWN, (1, "needed")), (PRETENDING, (1, "not_needed")), (PLAIN, (0, None))],
)
def test_whose_work_it_is_decides_nothing_by_itself(kt, kernel, source, fact):
    ran = kt("check", kernel(source), "--task", "kernelbenchx/relu", "--domain", "core", *ARGUMENTS)
    document = json.loads(ran.out)
    assert (ran.code, document["verdict"]) == (0, "pass"), document["detail"]
    assert (document["kernel"]["own_launches"], document["kernel"]["probe"]) == fact


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "code", "kind"),
    [(OWN, 0, None), (PRETENDING, 1, "no_kernel"), (PLAIN, 1, "no_kernel")],
)
def test_where_a_kernel_is_required_the_work_of_others_fails(kt, kernel, source, code, kind):
    arguments = ("--task", "kernelbenchx/relu", "--domain", "core", "--require-kernel")
    ran = kt("check", kernel(source), *arguments, *ARGUMENTS)
    document = json.loads(ran.out)
    assert (ran.code, document["kind"]) == (code, kind)
    assert (document["score"] <= 0.1) == (kind is not None)
    assert ("judge without --require-kernel" in document["detail"]) == (kind is not None)


def test_a_run_fails_torch_only_answers_where_a_kernel_is_required(kt, kernel, tmp_path):
    answers = kernel(
        "\n".join(json.dumps({"file": "relu.py", "predict": source}) for source in (OWN, PLAIN)),
        "answers.jsonl",
    )
    stage = ("--stage", "exe", "--cases", "4", "--require-kernel")
    ran = kt("run", "--candidates", answers, "--out", tmp_path / "run", *stage, *ARGUMENTS)
    document = json.loads(ran.out)
    assert document["stages"]["exe"] == {"pass": 1, "fail": 1}
    assert [c["kind"] for c in document["candidates"] if c["torch_only"]] == ["no_kernel"]
    assert document["obligations"]["kernel"]["held"] == 1
