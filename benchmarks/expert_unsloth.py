"""How `expert_kernels.py` calls Unsloth's Triton kernels, and what each must compute."""

from __future__ import annotations

from expert_operator import Collection, Operator

# What the kernels import beside Triton and PyTorch, as Unsloth has it for one GPU of Nvidia's.
_UTILITIES = """
from contextlib import nullcontext

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

MAX_FUSED_SIZE = 65536
triton_tanh, triton_cast = libdevice.tanh, tl.cast
torch_device_stream = None


def torch_gpu_device(device):
    return nullcontext()


def is_cdna():
    return False


def calculate_settings(n):
    size = triton.next_power_of_2(n)
    if size > MAX_FUSED_SIZE:
        raise RuntimeError(f"n = {n} exceeds {MAX_FUSED_SIZE}")
    return size, 32 if size >= 32768 else 16 if size >= 8192 else 8 if size >= 2048 else 4
"""
_STUBS = {
    "unsloth/kernels/utils.py": _UTILITIES,
    "unsloth/device_type.py": "DEVICE_COUNT = 1\n",
    "unsloth_zoo/utils.py": "from packaging.version import Version\n",
    "unsloth_zoo/patching_utils.py": "patch_layernorm = None\n",
    "unsloth_zoo/loss_utils.py": "patch_loss_functions = post_patch_loss_function = None\n",
    "transformers/models/llama/modeling_llama.py": "logger, LlamaRMSNorm = None, object\n",
}
_FORMULAS = {
    "_root_mean_square": """
def _root_mean_square(x, eps):
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)
""",
    "_turned": """
def _turned(x, cos, sin):
    half = x.shape[-1] // 2
    return x * cos + torch.cat((-x[..., half:], x[..., :half]), -1) * sin
""",
    "_capped": """
def _capped(x, cap):
    return cap * torch.tanh(x / cap)
""",
}
_GATED = (
    "    batch, steps, hidden = 2, 12, 100\n"
    "    return torch.randn(batch, steps, hidden), torch.randn(batch, steps, hidden)"
)
_NORM = (
    "    rows, hidden = 16, 200\n    x, weight = torch.randn(rows, hidden), torch.randn(hidden)\n"
)
_LOGITS = (
    "    batch, steps, vocab = 2, 8, 200\n    x = torch.randn(batch, steps, vocab)\n"
    "    return x, torch.randint(0, vocab, (batch, steps))"
)
_LOSS = "from unsloth.kernels.cross_entropy_loss import fast_cross_entropy_loss"
_GEGLU = "from unsloth.kernels import geglu"

OPERATORS = (
    Operator(
        "swiglu",
        "x, y",
        "swiglu_fg_kernel(x, y)",
        "F.silu(x) * y",
        _GATED,
        "from unsloth.kernels.swiglu import swiglu_fg_kernel",
    ),
    Operator(
        "geglu_exact",
        "x, y",
        "geglu.geglu_exact_forward_kernel(x, y)",
        "F.gelu(x) * y",
        _GATED,
        _GEGLU,
    ),
    Operator(
        "geglu_approximate",
        "x, y",
        "geglu.geglu_approx_forward_kernel(x, y)",
        'F.gelu(x, approximate="tanh") * y',
        _GATED,
        _GEGLU,
    ),
    Operator(
        "rms_norm",
        "x, weight, eps",
        "Fast_RMS_Layernorm.apply(x, weight, eps)",
        "_root_mean_square(x, eps) * weight",
        f"{_NORM}    return x, weight, 1e-6",
        "from unsloth.kernels.rms_layernorm import Fast_RMS_Layernorm",
    ),
    Operator(
        "rms_norm_gemma",
        "x, weight, eps",
        "Fast_RMS_Layernorm.apply(x, weight, eps, True)",
        "_root_mean_square(x, eps) * (weight + 1)",
        f"{_NORM}    return x, weight, 1e-6",
        "from unsloth.kernels.rms_layernorm import Fast_RMS_Layernorm",
    ),
    Operator(
        "layer_norm",
        "x, weight, bias, eps",
        "Fast_Layernorm.apply(x, weight, bias, eps)",
        "F.layer_norm(x, (x.shape[-1],), weight, bias, eps)",
        f"{_NORM}    return x, weight, torch.randn(hidden), 1e-5",
        "from unsloth.kernels.layernorm import Fast_Layernorm",
    ),
    Operator(
        "rotary",
        "q, k, cos, sin",
        "fast_rope_embedding(q, k, cos, sin)",
        "_turned(q, cos, sin), _turned(k, cos, sin)",
        "    batch, heads, kv, steps, dim = 2, 6, 2, 12, 32\n"
        "    angle = (torch.rand(steps, dim // 2) * 6.28).repeat(1, 2)\n"
        "    q, k = torch.randn(batch, heads, steps, dim), torch.randn(batch, kv, steps, dim)\n"
        "    return q, k, angle.cos(), angle.sin()",
        "from unsloth.kernels.rope_embedding import fast_rope_embedding",
    ),
    Operator(
        "cross_entropy",
        "x, target",
        "fast_cross_entropy_loss(x, target)",
        "F.cross_entropy(x.flatten(0, 1).float(), target.flatten())",
        _LOGITS,
        _LOSS,
    ),
    Operator(
        "cross_entropy_capped",
        "x, target",
        "fast_cross_entropy_loss(x, target, logit_softcapping=30.0)",
        "F.cross_entropy(_capped(x.flatten(0, 1).float(), 30.0), target.flatten())",
        _LOGITS,
        _LOSS,
    ),
)
UNSLOTH = Collection(
    "unsloth",
    "unsloth/kernels",
    "unsloth/kernels",
    OPERATORS,
    formulas=_FORMULAS,
    stubs=_STUBS,
    left_out=("__init__.py", "moe", "fp8.py", "fast_lora.py", "flex_attention.py"),
)
