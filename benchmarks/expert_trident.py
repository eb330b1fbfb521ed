"""How `expert_kernels.py` calls Trident, and what each function must compute."""

from __future__ import annotations

from expert_operator import Collection, Operator

# Its own gives arguments of Triton 2 by their places.
_AUTOTUNE = """

def autotune(configs, key, prune_configs_by=None, reset_to_zero=None, **_):
    return triton.autotune(configs, key, prune_configs_by, reset_to_zero)
"""
# Functions by the names that Triton 2 had for them.
_NAMES = """

import triton.language as tl
from triton.language.extra.cuda import libdevice

tl.math.tanh, tl.math.pow, tl.math.max = libdevice.tanh, libdevice.pow, tl.maximum
tl.math.fast_expf = tl.exp
"""
_FORMULAS = {
    "_shares": """
def _shares(x, mask):
    weights = torch.where(mask, torch.zeros_like(x), (x - x.amax(-1, keepdim=True)).exp())
    return weights / weights.sum(-1, keepdim=True)
""",
    "_gated": """
def _gated(x, weight, bias):
    state, gate = F.linear(x, weight, bias).chunk(2, -1)
    return state * F.gelu(gate, approximate="tanh")
""",
}
_SIZES = "    rows, hidden = 16, 200\n"
_X = f"{_SIZES}    return (torch.randn(rows, hidden),)"
_LINEAR = (
    "    rows, inner, outer = 16, 40, 24\n"
    "    return torch.randn(rows, inner), torch.randn({}outer, inner), torch.randn({}outer)"
)
_CHANNELS = "    batch, channels, width = 4, 12, 50\n    x = torch.randn(batch, channels, width)\n"
_HEADS = (
    "    batch, heads, steps, dim = 2, 3, 64, 16\n"
    "    return tuple(torch.randn(batch, heads, steps, dim) for _ in range(3))"
)


def _of_rows(name: str, by: str, given: str = "x, -1") -> Operator:
    return Operator(name, "x", f"trident.function.{name}({given})", by, _X)


OPERATORS = (
    _of_rows("argmax", "torch.argmax(x, -1)"),
    _of_rows("max", "tuple(torch.max(x, -1))"),
    _of_rows("mean", "torch.mean(x, -1)"),
    _of_rows("sum", "torch.sum(x, -1)"),
    _of_rows("var", "torch.var(x, -1)"),
    _of_rows("var_mean", "tuple(torch.var_mean(x, -1))"),
    _of_rows("softmax", "torch.softmax(x, -1)"),
    _of_rows("gelu", 'F.gelu(x, approximate="tanh")', "x"),
    _of_rows("relu", "F.relu(x)", "x"),
    _of_rows("silu", "F.silu(x)", "x"),
    _of_rows("leaky_relu", "F.leaky_relu(x, 0.2)", "x, 0.2"),
    Operator(
        "prelu",
        "x, weight",
        "trident.function.prelu(x, weight)",
        "F.prelu(x, weight)",
        f"{_SIZES}    return torch.randn(rows, hidden), torch.randn(hidden)",
    ),
    Operator(
        "shift_gelu",
        "x, bias",
        "trident.function.shift_gelu(x, bias)",
        'F.gelu(x + bias, approximate="tanh")',
        f"{_SIZES}    return torch.randn(rows, hidden), torch.randn(hidden)",
    ),
    Operator(
        "masked_softmax",
        "x, mask",
        "trident.function.masked_softmax(x, mask, -1)",
        "_shares(x, mask)",
        f"{_SIZES}    mask = torch.rand(rows, hidden) < 0.3\n"
        "    mask[:, 0] = False\n    return torch.randn(rows, hidden), mask",
    ),
    Operator(
        "cosine_similarity",
        "x, y",
        "trident.function.cosine_similarity(x, y, 1)",
        "F.cosine_similarity(x, y, 1)",
        "    batch, channels, width = 3, 12, 20\n"
        "    return torch.randn(batch, channels, width), torch.randn(batch, channels, width)",
    ),
    Operator(
        "layer_norm",
        "x, weight, bias, eps",
        "trident.function.layer_norm(x, [x.shape[-1]], weight, bias, eps)",
        "F.layer_norm(x, (x.shape[-1],), weight, bias, eps)",
        f"{_SIZES}    x = torch.randn(rows, hidden)\n"
        "    return x, torch.randn(hidden), torch.randn(hidden), 1e-5",
    ),
    Operator(
        "rms_norm",
        "x, weight, eps",
        "trident.function.rms_norm(x, 1.0, weight, None, eps)",
        "x / (x.square().mean(-1, keepdim=True).sqrt() + eps) * weight",
        f"{_SIZES}    return torch.randn(rows, hidden), torch.randn(hidden), 1e-8",
    ),
    Operator(
        "group_norm",
        "x, weight, bias, groups, eps",
        "trident.function.group_norm(x, groups, weight, bias, eps)",
        "F.group_norm(x, groups, weight, bias, eps)",
        f"{_CHANNELS}    return x, torch.randn(channels), torch.randn(channels), 4, 1e-5",
    ),
    Operator(
        "instance_norm",
        "x, eps",
        "trident.function.instance_norm(x, eps=eps)",
        "F.instance_norm(x, eps=eps)",
        f"{_CHANNELS}    return x, 1e-5",
    ),
    Operator(
        "batch_norm",
        "x, weight, bias, eps",
        "trident.function.batch_norm(x, weight=weight, bias=bias, training=True, eps=eps)",
        "F.batch_norm(x, None, None, weight, bias, True, 0.1, eps)",
        f"{_CHANNELS}    return x, torch.randn(channels), torch.randn(channels), 1e-5",
    ),
    Operator(
        "linear",
        "x, weight, bias",
        "trident.function.linear(x, weight, bias)",
        "F.linear(x, weight, bias)",
        _LINEAR.format("", ""),
    ),
    Operator(
        "geglu",
        "x, weight, bias",
        "trident.function.geglu(x, weight, bias)",
        "_gated(x, weight, bias)",
        _LINEAR.format("2 * ", "2 * "),
    ),
    Operator(
        "attention",
        "q, k, v",
        "trident.function.scaled_dot_product_attention(q, k, v)",
        "F.scaled_dot_product_attention(q, k, v)",
        _HEADS,
    ),
    Operator(
        "causal_attention",
        "q, k, v",
        "trident.function.scaled_dot_product_attention(q, k, v, is_causal=True)",
        "F.scaled_dot_product_attention(q, k, v, is_causal=True)",
        _HEADS,
    ),
)
TRIDENT = Collection(
    "trident",
    "trident",
    "trident",
    OPERATORS,
    "import trident",
    formulas=_FORMULAS,
    # It marks ranges for a profiler.
    stubs={"nvtx.py": ""},
    appended={"util/util.py": _AUTOTUNE, "config.py": _NAMES},
)
