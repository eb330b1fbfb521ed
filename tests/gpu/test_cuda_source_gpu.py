"""A CUDA C++ candidate compiled by nvcc and judged like any other."""

import importlib.util
import shutil

import pytest

from kerneltruth.oracle.verdict import CompileError, Failed, Passed

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc"),
    pytest.mark.skipif(
        shutil.which("ninja") is None and importlib.util.find_spec("ninja") is None,
        reason="needs ninja",
    ),
]

SOURCE = '''
import torch
from torch.utils.cpp_extension import load_inline

CUDA = """
#include <torch/extension.h>
#include <ATen/Dispatch.h>

template <typename T>
__global__ void relu_kernel(const T* x, T* y, long n) {
    long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
    if (i < LIMIT) { T v = x[i]; y[i] = v < T(0) ? T(0) : v; }
}

torch::Tensor relu_cuda(torch::Tensor x) {
    x = x.contiguous();
    auto y = torch::empty_like(x);
    long n = x.numel();
    if (n == 0) return y;
    AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, x.scalar_type(), "relu", [&] {
        relu_kernel<scalar_t><<<(n + 255) / 256, 256>>>(
            x.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(), n);
    });
    return y;
}
"""

_extension = load_inline(
    name="relu_inline_NAME",
    cpp_sources="torch::Tensor relu_cuda(torch::Tensor x);",
    cuda_sources=CUDA,
    functions=["relu_cuda"],
)


def relu(x):
    return _extension.relu_cuda(x)
'''


def test_a_right_cuda_kernel_passes(judge):
    right = SOURCE.replace("LIMIT", "n").replace("NAME", "right")
    attempt = judge(right, task="relu")
    assert attempt.candidate.language == "cuda"
    assert attempt.verdict == Passed(), attempt.verdict


def test_a_cuda_kernel_that_leaves_out_the_last_element_is_caught(judge):
    wrong = SOURCE.replace("LIMIT", "n - 1").replace("NAME", "wrong")
    attempt = judge(wrong, task="relu")
    assert isinstance(attempt.verdict, Failed), attempt.verdict
    assert attempt.verdict.kind == "uninitialized"


def test_what_nvcc_refuses_is_a_compile_error(judge):
    broken = SOURCE.replace("LIMIT", "no_such_name").replace("NAME", "broken")
    assert isinstance(judge(broken, task="relu").verdict, CompileError)
