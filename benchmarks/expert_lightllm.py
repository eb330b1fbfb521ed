"""How `expert_kernels.py` calls lightllm's Triton kernels, and what each must compute."""

from __future__ import annotations

from expert_operator import Collection, Operator

_HEAD = """
import torch
from lightllm.models.cohere.triton_kernels import layernorm
from lightllm.models.gemma_2b.triton_kernel.gelu_and_mul import gelu_and_mul_fwd
from lightllm.models.llama.triton_kernel import embedding as lookup
from lightllm.models.llama.triton_kernel.rmsnorm import rmsnorm_forward
from lightllm.models.llama.triton_kernel.rotary_emb import rotary_emb_fwd
from lightllm.models.llama.triton_kernel.silu_and_mul import silu_and_mul_fwd
from lightllm.models.vit.triton_kernel.gelu_vit import gelu_fwd
from lightllm.models.vit.triton_kernel.rms_norm_vit import rms_norm as vit_norm


def _gated(function, x):
    out = torch.empty(len(x), x.shape[1] // 2, dtype=x.dtype, device=x.device)
    function(x, out)
    return out


def _turned(q, k, cos, sin):
    q, k = q.clone(), k.clone()
    rotary_emb_fwd(q, k, cos, sin)
    return q, k


def _embedded(index, weight):
    out = torch.empty(len(index), weight.shape[1], dtype=weight.dtype, device=weight.device)
    lookup.embedding(index, weight, 0, weight.shape[0], out)
    return out
"""
_FORMULAS = {
    "_root_mean_square": """
def _root_mean_square(x, weight, eps):
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * weight
""",
    "_gated": """
def _gated(x, activation):
    gate, up = x.chunk(2, -1)
    return activation(gate) * up
""",
    "_turned": """
def _turned(x, cos, sin):
    a, b = x.chunk(2, -1)
    c, s = cos[:, None], sin[:, None]
    return torch.cat((a * c - b * s, a * s + b * c), -1)
""",
}
_NORM = (
    "    rows, hidden = 16, 200\n    return torch.randn(rows, hidden), torch.randn(hidden), 1e-5"
)
_HALVES = "    rows, half = 16, 100\n    return (torch.randn(rows, 2 * half),)"

OPERATORS = (
    Operator(
        "rms_norm",
        "x, weight, eps",
        "rmsnorm_forward(x, weight, eps)",
        "_root_mean_square(x, weight, eps)",
        _NORM,
    ),
    Operator(
        "rms_norm_vit",
        "x, weight, eps",
        "vit_norm(x, weight, eps)",
        "_root_mean_square(x, weight, eps)",
        _NORM,
    ),
    Operator(
        "norm_of_heads",
        "x, weight, eps",
        "layernorm.layernorm_forward(x, weight, eps)",
        "F.layer_norm(x, (x.shape[-1],), eps=eps) * weight",
        "    steps, heads, dim = 12, 3, 64\n"
        "    return torch.randn(steps, heads, dim), torch.randn(heads, dim), 1e-5",
    ),
    Operator(
        "silu_and_mul",
        "x",
        "_gated(silu_and_mul_fwd, x)",
        "_gated(x, F.silu)",
        _HALVES,
    ),
    Operator(
        "gelu_and_mul",
        "x",
        "_gated(gelu_and_mul_fwd, x)",
        "_gated(x, lambda gate: F.gelu(gate, approximate='tanh'))",
        _HALVES,
    ),
    Operator(
        "gelu",
        "x",
        "gelu_fwd(x)",
        "F.gelu(x)",
        "    rows, hidden = 16, 200\n    return (torch.randn(rows, hidden),)",
    ),
    Operator(
        "embedding",
        "index, weight",
        "_embedded(index, weight)",
        "weight[index]",
        "    count, rows, hidden = 30, 50, 40\n"
        "    return torch.randint(0, rows, (count,)), torch.randn(rows, hidden)",
    ),
    Operator(
        "rotary",
        "q, k, cos, sin",
        "_turned(q, k, cos, sin)",
        "_turned(q, cos, sin), _turned(k, cos, sin)",
        "    steps, heads, kv, half = 20, 6, 2, 16\n    angle = torch.rand(steps, half) * 6.28\n"
        "    q, k = torch.randn(steps, heads, 2 * half), torch.randn(steps, kv, 2 * half)\n"
        "    return q, k, angle.cos(), angle.sin()",
    ),
)
LIGHTLLM = Collection(
    "lightllm",
    "lightllm/models",
    "lightllm/models",
    OPERATORS,
    _HEAD,
    formulas=_FORMULAS,
    # The server's memory, which a call asks for.
    stubs={
        "lightllm/common/basemodel/layer_infer/cache_tensor_manager.py": "g_cache_manager = None\n"
    },
    # The models' own import the whole server.
    left_out=("__init__.py", "layer_*", "model.py"),
)
