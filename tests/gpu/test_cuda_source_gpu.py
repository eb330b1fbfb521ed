"""A CUDA C++ candidate compiled by nvcc and judged like any other."""

import importlib.util
import shutil

import pytest
import torch

from kerneltruth.documents.verdict import CompileError, Failed, Passed
from kerneltruth.engine.evaluator import EvaluationRequest, Evaluator
from kerneltruth.oracle.bounds import Policy
from kerneltruth.oracle.plan import Plan
from kerneltruth.runner.candidate import read_candidate

pytestmark = [
    pytest.mark.gpu,
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


GUARDED = (
    SOURCE.replace("#include <ATen/Dispatch.h>", "#include <c10/cuda/CUDAGuard.h>")
    .replace("FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, ", "FLOATING_TYPES(")
    .replace("    return y;\n}", "    C10_CUDA_KERNEL_LAUNCH_CHECK();\n    return y;\n}")
    .replace(
        "    x = x.contiguous();",
        "    const at::cuda::OptionalCUDAGuard guard(device_of(x));\n"
        '    TORCH_CHECK(x.is_cuda(), "x must be on the device, not ", x.dim());\n'
        "    x = x.contiguous();",
    )
)


@pytest.fixture(scope="module")
def try_lean(tmp_path_factory):
    """Judge a source on float32 inputs with an evaluator whose cache spares headers."""
    evaluator = Evaluator(
        device="cuda:0", targets=(), policy=Policy(), cache_root=tmp_path_factory.mktemp("cache")
    )
    evaluator.start()

    def judge_one(source, name):
        candidate = read_candidate(source, f"{name}.py", task_names=("relu",), task="relu")
        plan = Plan(cases=8, dtypes=("float32",), compile=False, deadline_s=60.0)
        return evaluator.evaluate(
            EvaluationRequest(name=name, task="relu", candidate=candidate, plan=plan)
        ).attempt

    yield judge_one
    evaluator.close()


def test_a_right_kernel_passes_as_few_headers_build_it(try_lean):
    attempt = try_lean(GUARDED.replace("LIMIT", "n").replace("NAME", "lean"), "lean")
    assert attempt.verdict == Passed(), attempt.verdict
    assert attempt.headers == "lean"


def test_a_wrong_kernel_is_convicted_as_few_headers_build_it(try_lean):
    attempt = try_lean(GUARDED.replace("LIMIT", "n - 1").replace("NAME", "wrong"), "wrong")
    assert isinstance(attempt.verdict, Failed), attempt.verdict
    assert attempt.verdict.kind == "uninitialized"
    assert attempt.headers == "lean"


def test_what_few_headers_lack_is_built_with_all_of_them(try_lean):
    more = "TORCH_CHECK(torch::get_num_threads() > 0); return torch::relu(y);"
    source = GUARDED.replace("    return y;\n}", f"    {more}\n}}")
    attempt = try_lean(source.replace("LIMIT", "n").replace("NAME", "more"), "more")
    assert attempt.verdict == Passed(), attempt.verdict
    assert attempt.headers == "full"


def test_a_compile_error_is_that_of_pytorchs_own_build(try_lean):
    source = GUARDED.replace("LIMIT", "no_such_name").replace("NAME", "broken")
    attempt = try_lean(source, "broken")
    assert isinstance(attempt.verdict, CompileError), attempt.verdict
    assert "extensions_lean" not in attempt.verdict.detail
    assert attempt.headers == "full"


CUBLAS = '''
import torch
from torch.utils.cpp_extension import load_inline

CUDA = """
#include <torch/extension.h>
#include <cublas_v2.h>

torch::Tensor product(torch::Tensor a, torch::Tensor b) {
    TORCH_CHECK(a.scalar_type() == torch::kFloat32, "float32 only");
    a = a.contiguous(), b = b.contiguous();
    long m = a.size(0), k = a.size(1), n = b.size(1);
    auto c = torch::zeros({m, n}, a.options());
    cublasHandle_t handle;
    cublasCreate(&handle);
    const float one = 1.0f, none = 0.0f;
    cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, n, m, k, &one, b.data_ptr<float>(), n,
                a.data_ptr<float>(), k, &none, c.data_ptr<float>(), n);
    cublasDestroy(handle);
    return c;
}
"""

_extension = load_inline(
    name="product_with_cublas",
    cpp_sources="torch::Tensor product(torch::Tensor a, torch::Tensor b);",
    cuda_sources=CUDA,
    functions=["product"],
    extra_ldflags=["-lcublas"],
)


def matmul(a, b):
    return _extension.product(a, b)
'''


@pytest.mark.parametrize("number", range(max(1, torch.cuda.device_count())))
def test_a_candidate_that_makes_a_cublas_handle_in_each_call_is_right_on_each_device(number):
    """Published answers do; an error that they leave behind would be found at a later check."""
    candidate = read_candidate(CUBLAS, "product.py", task_names=("matmul",), task="matmul")
    plan = Plan(cases=12, compile=False, deadline_s=60.0)
    job = EvaluationRequest(name="product", task="matmul", candidate=candidate, plan=plan)
    evaluator = Evaluator(device=f"cuda:{number}", targets=(), policy=Policy())
    evaluator.start()
    try:
        attempt = evaluator.evaluate(job).attempt
    finally:
        evaluator.close()
    assert attempt.profile["published"].status == "held", attempt.profile["published"].reason
