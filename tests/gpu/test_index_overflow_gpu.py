"""Kernels whose offsets overflow beyond 2^31 elements, and ones whose offsets do not."""

import pytest
import torch

from kerneltruth.documents.verdict import Passed
from kerneltruth.oracle.large import LARGE

pytestmark = pytest.mark.gpu

HEAD = "import torch, triton\nimport triton.language as tl\n"
# `{pid}` is an int32, which wraps, or an int64.
SOURCES = {
    "relu": """
@triton.jit
def k(x, y, n, B: tl.constexpr):
    i = {pid} * B + tl.arange(0, B)
    v = tl.load(x + i, mask=i < n)
    tl.store(y + i, tl.where(v != v, v, tl.maximum(v, 0.0)), mask=i < n)

def relu(input):
    x = input.contiguous()
    y = torch.empty_like(x)
    if x.numel():
        k[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), B=1024)
    return y
""",
    "softmax": """
@triton.jit
def k(x, y, n, B: tl.constexpr):
    start, at = {pid} * n, tl.arange(0, B)
    v = tl.load(x + start + at, mask=at < n, other=float("-inf")).to(tl.float32)
    e = tl.exp(v - tl.max(v, 0))
    tl.store(y + start + at, e / tl.sum(e, 0), mask=at < n)

def softmax(input, dim=-1):
    moved = input.movedim(dim, -1).contiguous()
    y = torch.empty_like(moved)
    n = moved.shape[-1]
    if y.numel():
        k[(y.numel() // n,)](moved, y, n, triton.next_power_of_2(n))
    return y.movedim(-1, dim)
""",
    "lerp": """
@triton.jit
def k(a, b, y, w, n, B: tl.constexpr):
    i = {pid} * B + tl.arange(0, B)
    p = tl.load(a + i, mask=i < n).to(tl.float32)
    q = tl.load(b + i, mask=i < n).to(tl.float32)
    out = tl.where(w < 0.5, p + w * (q - p), q - (q - p) * (1.0 - w))
    tl.store(y + i, out, mask=i < n)

def lerp(input, end, weight=0.5):
    a, b = input.contiguous(), end.contiguous()
    y = torch.empty_like(a)
    if a.numel():
        k[(triton.cdiv(a.numel(), 1024),)](a, b, y, float(weight), a.numel(), B=1024)
    return y
""",
}
WRAPS, HOLDS = "tl.program_id(0)", "tl.program_id(0).to(tl.int64)"
# Inputs and outputs of the largest call, and half as much beside: lerp has three operands.
NEEDED_BYTES = 38 * 2**30


def _large_of(judge, task, pid):
    free, _ = torch.cuda.mem_get_info()
    if free < NEEDED_BYTES:
        pytest.skip(f"{free / 2**30:.0f} GiB of the device are free; the call needs 38 GiB")
    attempt = judge(HEAD + SOURCES[task].format(pid=pid), task=task, large=True)
    assert attempt.verdict == Passed(), attempt.failure
    return attempt.profile["shapes"], attempt.hazards


@pytest.mark.parametrize("task", SOURCES)
def test_int64_offsets_hold_beyond_2_31_elements(judge, task):
    shapes, hazards = _large_of(judge, task, HOLDS)
    assert LARGE not in hazards
    assert "more than 2^31 elements" in (shapes.reason or ""), shapes


@pytest.mark.parametrize("task", SOURCES)
def test_int32_offsets_are_a_hazard_beyond_2_31_elements(judge, task):
    shapes, hazards = _large_of(judge, task, WRAPS)
    assert shapes.status == "held"
    wrong, _, right = hazards[LARGE].partition("right at")
    assert "more than 2^31 elements" in wrong
    # These offsets count elements, so bytes do not overflow them.
    assert "more than 2^31 bytes" in right


def test_the_memory_is_free_again(judge):
    before, _ = torch.cuda.mem_get_info()
    _large_of(judge, "relu", HOLDS)
    after, _ = torch.cuda.mem_get_info()
    assert after > before - 4 * 2**30
