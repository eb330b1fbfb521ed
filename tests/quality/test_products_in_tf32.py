"""Products that follow a decomposition: TF32 passes there, and no mistake hides behind it.

Each candidate has its products in TF32, as `tl.dot` has them on a GPU.
"""

from functools import partial

import pytest

from kerneltruth.oracle.bounds import Policy
from kerneltruth.oracle.expectation_builder import ExpectationCache
from kerneltruth.oracle.plan import Plan
from kerneltruth.runner.candidate import read_candidate

HEAD = """import torch


def cut(x, half=0):
    if x.dtype == torch.complex64:
        return torch.view_as_complex(cut(torch.view_as_real(x.resolve_conj()), half))
    if x.dtype != torch.float32:
        return x
    return ((x.contiguous().view(torch.int32) + half) & ~0x1FFF).view(torch.float32)


def narrow(x):
    return x.bfloat16().float() if x.dtype == torch.float32 else x


"""
TORCH = {
    "fused_svd_reconstruct": """
def fused_svd_reconstruct(A):
    U, S, Vh = torch.linalg.svd(A, full_matrices=False)
    return cut(U * S) @ cut(Vh)
""",
    "low_rank_svd_approximation": """
def low_rank_svd_approximation(A, k, *, full_matrices=True, out=None):
    U, S, Vh = torch.linalg.svd(A, full_matrices=full_matrices)
    return torch.matmul(cut(U[..., :k] * S[..., None, :k]), cut(Vh[..., :k, :]), out=out)
""",
    "pseudoinverse_svd": """
def pseudoinverse_svd(A, full_matrices=True, rcond=1e-15, out=None):
    U, S, Vh = torch.linalg.svd(A, full_matrices=False)
    inverse = torch.where(rcond * S.amax(-1, keepdim=True) < S, 1 / S, 0.0)
    return torch.matmul(cut(Vh.mH * inverse.unsqueeze(-2)), cut(U.mH), out=out)
""",
    "matrix_power_eig": """
def matrix_power_eig(A, k, *, out=None):
    w, V = torch.linalg.eigh(A)
    return torch.matmul(cut(V * w.pow(k).unsqueeze(-2)), cut(V.mH), out=out)
""",
    "fused_qr_solve": """
def fused_qr_solve(A, b):
    Q, R = torch.linalg.qr(A)
    return torch.linalg.solve_triangular(R, cut(Q.mH) @ cut(b), upper=True)
""",
}
TRITON = """import torch
import triton
import triton.language as tl


@triton.jit
def cut(x):
    return (x.to(tl.int32, bitcast=True) & -8192).to(tl.float32, bitcast=True)


@triton.jit
def product(u_ptr, s_ptr, v_ptr, out_ptr, M, N, K, B: tl.constexpr):
    rows = tl.program_id(0) * B + tl.arange(0, B)
    cols = tl.program_id(1) * B + tl.arange(0, B)
    acc = tl.zeros((B, B), dtype=tl.float32)
    for start in range(0, K, B):
        k = start + tl.arange(0, B)
        u_at, v_at = rows[:, None] * K + k[None, :], k[:, None] * N + cols[None, :]
        u = tl.load(u_ptr + u_at, mask=(rows[:, None] < M) & (k[None, :] < K), other=0.0)
        s = tl.load(s_ptr + k, mask=k < K, other=0.0)
        v = tl.load(v_ptr + v_at, mask=(k[:, None] < K) & (cols[None, :] < N), other=0.0)
        acc += tl.dot(cut(u * s[None, :]), cut(v))
    mask = (rows[:, None] < M) & (cols[None, :] < N)
    tl.store(out_ptr + rows[:, None] * N + cols[None, :], acc, mask=mask)


def fused_svd_reconstruct(A):
    U, S, Vh = (t.contiguous() for t in torch.linalg.svd(A, full_matrices=False))
    (M, K), N = U.shape, Vh.shape[1]
    out = torch.empty((M, N), dtype=A.dtype, device=A.device)
    product[(triton.cdiv(M, 32), triton.cdiv(N, 32))](U, S, Vh, out, M, N, K, B=32)
    return out
"""
# What is replaced in the function, and by what.
RIGHT = {
    "cut off": ("", ""),
    "rounded": ("half=0", "half=0x1000"),
    "cut in each of two products": (
        "cut(U * S) @ cut(Vh)",
        "cut(cut(U) @ cut(torch.diag(S))) @ cut(Vh)",
    ),
}
WRONG = {
    "fused_svd_reconstruct": {
        "the smallest value dropped": ("U * S", "U * torch.where(S == S.min(), 0.0, S)"),
        "a sign lost": ("cut(U * S)", "cut(U * S * torch.where(S == S.min(), -1.0, 1.0))"),
        "V transposed": ("cut(Vh)", "cut(Vh.flip(0))"),
        "values squared": ("U * S", "U * S * S"),
        "bfloat16": ("cut(", "narrow("),
    },
    "low_rank_svd_approximation": {
        "one too many": (":k", ":k + 1"),
        "one too few": ("S[..., None, :k]", "S[..., None, :k] * (torch.arange(k) < max(k - 1, 1))"),
        "of the smallest": ("U[..., :k] * S[..., None, :k]", "U[..., :k] * S[..., None, -k:]"),
        "a sign lost": ("S[..., None, :k]", "S[..., None, :k] * (1 - 2 * (torch.arange(k) == 0))"),
        "bfloat16": ("cut(", "narrow("),
    },
    "pseudoinverse_svd": {
        "rcond ignored": ("rcond *", "0.0 *"),
        "the largest value dropped": ("< S, 1", "< S * (S < S.amax(-1, keepdim=True)), 1"),
        "not inverted": ("1 / S", "S"),
        "bfloat16": ("cut(", "narrow("),
    },
    "matrix_power_eig": {
        "the smallest value dropped": ("w.pow(k)", "(w.pow(k) * (w > w.amin(-1, keepdim=True)))"),
        "a whole exponent": ("w.pow(k)", "w.pow(round(k))"),
        "bfloat16": ("cut(", "narrow("),
    },
    "fused_qr_solve": {
        "normal equations": (
            "torch.linalg.solve_triangular(R, cut(Q.mH) @ cut(b), upper=True)",
            "torch.linalg.solve(A.mH @ A, A.mH @ b)",
        ),
        "R in TF32": ("solve_triangular(R", "solve_triangular(cut(R)"),
        "the last row forgotten": (
            "cut(b)",
            "cut(b * (torch.arange(len(b)) < len(b) - 1)[:, None])",
        ),
        "bfloat16": ("cut(", "narrow("),
    },
}


def changed(name, *parts):
    """The candidate with each odd part replaced by the even one that follows it."""
    source = HEAD + TORCH[name]
    for old, new in zip(parts[::2], parts[1::2], strict=True):
        source = source.replace(old, new)
    return source


def word_on(verdict_on, name, source, **plan):
    task = f"kernelbenchx/{name}"
    candidate = read_candidate(source, f"{name}.py", task_names=(name,), task=name)
    return verdict_on(task, candidate, Plan(compile=False, **plan)).word


@pytest.mark.slow
@pytest.mark.parametrize("way", RIGHT)
@pytest.mark.parametrize("name", TORCH)
def test_tf32_passes(verdict_on, name, way):
    source = changed(name, *RIGHT[way])
    if way == "cut off" or source != changed(name):
        assert word_on(verdict_on, name, source, cases=24, promises=True) == "pass"


@pytest.mark.slow
@pytest.mark.parametrize(("name", "mistake"), [(n, m) for n in WRONG for m in WRONG[n]])
def test_a_mistake_beside_tf32_is_found(verdict_on, name, mistake):
    source = changed(name, *WRONG[name][mistake])
    assert source != changed(name)
    assert word_on(verdict_on, name, source, cases=16, promises=True) == "fail"


@pytest.mark.slow
@pytest.mark.parametrize("name", TORCH)
def test_a_policy_without_tf32_holds_products_to_float32(verdict_on, name):
    strict = partial(verdict_on, cache=ExpectationCache(Policy(tf32=False)))
    assert word_on(strict, name, changed(name), cases=8) == "fail"


@pytest.mark.slow
@pytest.mark.parametrize(("last", "verdict"), [("K", "pass"), ("K - 1", "fail")])
def test_a_triton_kernel_in_tf32_passes_only_with_all_singular_values(verdict_on, last, verdict):
    source = TRITON.replace("s_ptr + k, mask=k < K", f"s_ptr + k, mask=k < {last}")
    plan = {"cases": 10, "dtypes": ("float32",)}
    assert word_on(verdict_on, "fused_svd_reconstruct", source, **plan) == verdict
