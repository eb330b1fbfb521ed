"""On a real GPU, a wrong result is named by what it depends on, and every allocation is guarded."""

import pytest
import torch

from faulty_relus import FAULTY, RIGHT
from kerneltruth.documents.verdict import Failed, Passed
from kerneltruth.runner.child.guards import ALIGNMENT, Guard

pytestmark = pytest.mark.gpu

POISON = b"0123456789abcdef"

ALLOCATIONS = {
    "zeros": lambda like: torch.zeros(5, 3, device="cuda"),
    "zeros_like": torch.zeros_like,
    "new_zeros": lambda like: like.new_zeros(7, dtype=torch.int64),
    "ones": lambda like: torch.ones(3, dtype=torch.bfloat16, device="cuda"),
    "full": lambda like: torch.full((2, 3), 7, device="cuda"),
    "full_like": lambda like: torch.full_like(like, 0.5),
    "clone": lambda like: like.clone(),
    "contiguous": lambda like: like.contiguous(),
    "to a dtype": lambda like: like.half(),
    "to the device": lambda like: torch.arange(5.0).to("cuda"),
    "tensor": lambda like: torch.tensor([1.0, 2.0], device="cuda"),
}


@pytest.mark.parametrize("name", ALLOCATIONS)
def test_an_allocation_is_what_it_would_be_and_guarded(name):
    like = torch.arange(24.0, device="cuda").reshape(6, 4).t()
    plain = ALLOCATIONS[name](like)
    with Guard(POISON) as guard:
        kept, hit = ALLOCATIONS[name](like), ALLOCATIONS[name](like)
        hit.as_strided((1,), (1,), hit.storage_offset() + hit.numel()).fill_(5)
    assert torch.equal(kept, plain)
    assert (kept.stride(), kept.dtype, kept.device) == (plain.stride(), plain.dtype, plain.device)
    assert kept.data_ptr() % ALIGNMENT == 0
    (seen,) = guard.hits()
    assert seen.endswith("after it")


@pytest.mark.parametrize("name", FAULTY)
def test_a_fault_is_named(judge, name):
    source, kind = FAULTY[name]
    verdict = judge(source, task="relu", cases=24, contract="torch").verdict
    assert isinstance(verdict, Failed), verdict
    assert verdict.kind == kind, verdict


@pytest.mark.parametrize("name", RIGHT)
def test_what_is_right_is_clean(judge, name):
    attempt = judge(RIGHT[name], task="relu", cases=24)
    assert attempt.verdict == Passed(), attempt.failure
