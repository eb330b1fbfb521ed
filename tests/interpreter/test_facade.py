"""Host code that asks for CUDA runs on a machine without a GPU, and means what it means on one."""

import pytest
from candidates_for_tests import call_once, floats

ASKS = {
    "is_cuda": "assert x.is_cuda and not x.is_cpu and x.get_device() == 0",
    "device": "assert x.device == torch.device('cuda', 0) and x.device.type == 'cuda'",
    "type": "assert x.type() == 'torch.cuda.FloatTensor'",
    "factories": "assert all(t.is_cuda for t in (torch.empty(2, device='cuda'), "
    "torch.tensor([1], device='cuda:0'), torch.arange(3, device=x.device), torch.ones(2).cuda(), "
    "torch.zeros_like(x), x.new_empty(3), torch.zeros(2).to('cuda'), torch.ones(1).to(x), "
    "torch.empty(2, device=0), torch.Tensor([1, 2]).to(x.device), torch.cuda.FloatTensor(2)))",
    "default device": "torch.set_default_device('cuda'); assert torch.randn(2).is_cuda; "
    "torch.set_default_device(None); assert not torch.randn(2).is_cuda",
    "device context": "with torch.device('cuda'): assert torch.zeros(2).is_cuda",
    "torch operations": "assert all(t.is_cuda for t in (x + 1, torch.softmax(x, 0), "
    "torch.nn.functional.gelu(x), x.to(torch.float16), x.half().float(), torch.stack([x, x]), "
    "x.unsqueeze(0) @ x.unsqueeze(1), *x.split(1), x.max(dim=0).values, x[x > 0]))",
    "modules": "assert torch.nn.Linear(1, 2).cuda()(x[:1]).is_cuda; "
    "assert torch.nn.Linear(1, 2, device='cuda').half().weight.is_cuda",
    "buffers of modules": "norm = torch.nn.BatchNorm1d; assert all(m.running_mean.is_cuda for m in "
    "(norm(1).cuda(), norm(1).to('cuda'), norm(1).to(x.device), norm(1).to(device=x.device), "
    "norm(1).to(device='cuda', dtype=torch.float16), norm(1).to(x)))",
    "properties": "p = torch.cuda.get_device_properties(x.device); "
    "assert (p.multi_processor_count, p.major, p.warp_size) == (132, 9, 32)",
    "capability": "assert torch.cuda.get_device_capability() >= (8, 0) "
    "and torch.cuda.is_available() and torch.cuda.device_count() == 1 "
    "and 'H100' in torch.cuda.get_device_name(0) and torch.cuda.is_bf16_supported()",
    "streams": "s = torch.cuda.Stream(); s.wait_stream(torch.cuda.current_stream())\n"
    "    with torch.cuda.stream(s): assert torch.cuda.current_stream().cuda_stream == 0\n"
    "    torch.cuda.synchronize()",
    "streams have all that PyTorch's have": "s = torch.accelerator.current_stream(); "
    "assert all(hasattr(s, name) for name in dir(torch.Stream)) and not s.is_capturing()",
    "optimizers": "p = torch.nn.Parameter(x.clone()); p.grad = torch.ones_like(x); "
    "torch.optim.Adam([p]).step(); assert p[0] < x[0]",
    "annotations": "def g(s: torch.cuda.Stream | None, g: torch.cuda.CUDAGraph | None, "
    "m: torch.cuda.MemPool | None, t: torch.cuda.FloatTensor | None): pass\n"
    "    assert isinstance(x, torch.cuda.FloatTensor)\n"
    "    assert not isinstance(x, torch.cuda.HalfTensor)\n"
    "    assert not isinstance(x.cpu(), torch.cuda.FloatTensor)",
    "events": "e = torch.cuda.Event(enable_timing=True); e.record(); e.synchronize(); "
    "assert e.elapsed_time(e) > 0",
    "device guard": "with torch.cuda.device(x.device): torch.cuda.set_device(x.device)",
    "memory": "torch.cuda.empty_cache(); assert torch.cuda.mem_get_info()[0] > 2**30",
    "nvtx": "torch.cuda.nvtx.range_push('a'); torch.cuda.nvtx.range_pop()",
    "driver": "d = triton.runtime.driver.active; assert d.get_current_target().arch == 90; "
    "assert d.utils.get_device_properties(d.get_current_device())['multiprocessor_count'] == 132",
    "raw stream": "from torch._C import _cuda_getCurrentRawStream as s; assert s(0) == 0",
    "flags": "torch.backends.cuda.matmul.allow_tf32 = True; assert torch.version.cuda; "
    "torch.backends.cudnn.benchmark = True",
    "autocast": "with torch.autocast('cuda', dtype=torch.float16): "
    "assert (x.reshape(1, -1) @ x.reshape(-1, 1)).dtype == torch.float16",
    "generator": "g = torch.Generator(device='cuda').manual_seed(1); "
    "assert torch.rand(2, generator=g, device='cuda').is_cuda; torch.cuda.manual_seed_all(3)",
    "compile": "assert torch.compile(lambda t: t + 1)(x).is_cuda",
    "do_bench": "assert triton.testing.do_bench(lambda: x + 1) > 0",
    "host copies": "h = x.cpu(); h.fill_(9); assert h.device.type == 'cpu' and x[0] != 9; "
    "assert h.numpy()[0] == 9 and (h + 1).is_cpu and h.view(1, -1).is_cpu and h.cuda().is_cuda",
    "other devices": "assert torch.empty(2, device='meta').device.type == 'meta'",
}


def ending_of(runner, body):
    observation = call_once(runner, f"def f(x):\n    {body}\n    return x + 0\n", 1.0, 2.0)
    return observation.ended, observation.message


@pytest.mark.slow
@pytest.mark.parametrize("what", ASKS)
def test_code_that_asks_for_cuda_runs(runner, what):
    assert ending_of(runner, ASKS[what]) == ("returned", None)


def test_an_autograd_function_sees_cuda_tensors_in_both_passes(runner):
    text = """
    class Double(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type="cuda")
        def forward(ctx, x):
            assert x.is_cuda
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        @torch.amp.custom_bwd(device_type="cuda")
        def backward(ctx, gradient):
            (x,) = ctx.saved_tensors
            assert x.is_cuda and gradient.is_cuda
            return gradient * 2

    def f(x):
        x = x.clone().requires_grad_()
        Double.apply(x).sum().backward()
        assert x.grad.is_cuda
        return x.grad
    """
    assert floats(call_once(runner, text, 1.0, 5.0)) == [2.0, 2.0]


@pytest.mark.slow
def test_a_custom_operator_sees_cuda_tensors(runner):
    text = """
    @torch.library.custom_op("kerneltruth_tests::double", mutates_args=(), device_types="cuda")
    def double(x: torch.Tensor) -> torch.Tensor:
        assert x.is_cuda
        return x * 2

    def f(x):
        return double(x)
    """
    assert floats(call_once(runner, text, 1.0, 5.0)) == [2.0, 10.0]


@pytest.mark.parametrize(
    "what",
    [
        "torch.cuda.CUDAGraph()",
        "torch.utils.cpp_extension.load_inline('m', cpp_sources='', cuda_sources='')",
        "x.__cuda_array_interface__",
    ],
)
def test_what_needs_a_device_is_unsupported_here(runner, what):
    assert ending_of(runner, what)[0] == "unsupported"


def test_a_cuda_tensor_is_no_numpy_array(runner):
    observed = ending_of(runner, "x.numpy()")
    assert observed[0] == "raised"
    assert "cuda:0" in observed[1]


LAUNCH = """
@triton.jit
def copy(x, y, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i))

def f(x):
    y = torch.empty(2{device})
    copy[lambda meta: (torch.cuda.current_device() + 1,)](x, y, BLOCK=2)
    return y
"""


def test_a_kernel_writes_into_a_tensor_made_for_cuda(runner):
    assert floats(call_once(runner, LAUNCH.format(device=", device=x.device"), 3.0, 4.0)) == [
        3.0,
        4.0,
    ]


def test_a_kernel_given_a_host_tensor_is_refused_as_on_a_gpu(runner):
    observation = call_once(runner, LAUNCH.format(device=""), 3.0, 4.0)
    assert observation.ended == "raised"
    assert "cpu tensor" in observation.message


def test_results_say_where_they_would_be(runner):
    devices = [
        call_once(runner, f"def f(x):\n    return {result}\n", 1.0).results[0].device
        for result in ("x + 1", "torch.ones(1, device='cuda')", "x.cpu()", "torch.ones(1)")
    ]
    assert devices == ["cuda:0", "cuda:0", "cpu", "cpu"]
