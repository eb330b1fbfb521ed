"""How `expert_kernels.py` calls flash-attention's Triton kernels, and what each must compute."""

from __future__ import annotations

from expert_operator import Collection, Operator

_FORMULAS = {
    "_turned": """
def _turned(x, cos, sin):
    half = cos.shape[-1]
    a, b, rest = x[..., :half], x[..., half : 2 * half], x[..., 2 * half :]
    c, s = cos[: x.shape[1], None], sin[: x.shape[1], None]
    return torch.cat((a * c - b * s, a * s + b * c, rest), -1)
""",
    "_turned_pairs": """
def _turned_pairs(x, cos, sin):
    a, b = x[..., ::2], x[..., 1::2]
    c, s = cos[: x.shape[1], None], sin[: x.shape[1], None]
    return torch.stack((a * c - b * s, a * s + b * c), -1).flatten(-2)
""",
    "_root_mean_square": """
def _root_mean_square(x, weight, eps):
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * weight
""",
}
_NORM = (
    "    rows, hidden = 16, 200\n"
    "    x, weight, bias = torch.randn(rows, hidden), torch.randn(hidden), torch.randn(hidden)\n"
)
_LOGITS = (
    "    rows, vocab = 16, 200\n"
    "    return torch.randn(rows, vocab), torch.randint(0, vocab, (rows,)){}"
)
_ROTARY = (
    "    batch, steps, heads, half = 2, 40, 3, 16\n    angle = torch.rand(steps, half) * 6.28\n"
    "    return torch.randn(batch, steps, heads, {}), angle.cos(), angle.sin()"
)
_NORMS = "from flash_attn.ops.triton.layer_norm import layer_norm_fn, rms_norm_fn"
_LOSS = "from flash_attn.ops.triton.cross_entropy import cross_entropy_loss"
_TURN = "from flash_attn.ops.triton.rotary import apply_rotary"

OPERATORS = (
    Operator(
        "layer_norm",
        "x, weight, bias, eps",
        "layer_norm_fn(x, weight, bias, eps=eps)",
        "F.layer_norm(x, (x.shape[-1],), weight, bias, eps)",
        f"{_NORM}    return x, weight, bias, 1e-5",
        _NORMS,
    ),
    Operator(
        "rms_norm",
        "x, weight, eps",
        "rms_norm_fn(x, weight, None, eps=eps)",
        "_root_mean_square(x, weight, eps)",
        f"{_NORM}    return x, weight, 1e-5",
        _NORMS,
    ),
    Operator(
        "rms_norm_residual",
        "x, weight, residual, eps",
        "rms_norm_fn(x, weight, None, residual, eps=eps, prenorm=True)",
        "_root_mean_square(x + residual, weight, eps), x + residual",
        f"{_NORM}    return x, weight, torch.randn(rows, hidden), 1e-5",
        _NORMS,
    ),
    Operator(
        "layer_norm_scaled_rows",
        "x, weight, bias, scale, eps",
        "layer_norm_fn(x, weight, bias, rowscale=scale, eps=eps)",
        "F.layer_norm(x * scale[:, None], (x.shape[-1],), weight, bias, eps)",
        f"{_NORM}    return x, weight, bias, torch.rand(rows) + 0.1, 1e-5",
        _NORMS,
    ),
    Operator(
        "cross_entropy",
        "x, target",
        "cross_entropy_loss(x, target)[0]",
        'F.cross_entropy(x, target, reduction="none")',
        _LOGITS.format(""),
        _LOSS,
    ),
    Operator(
        "cross_entropy_smooth",
        "x, target, smoothing",
        "cross_entropy_loss(x, target, label_smoothing=smoothing)[0]",
        'F.cross_entropy(x, target, reduction="none", label_smoothing=smoothing)',
        _LOGITS.format(", 0.1"),
        _LOSS,
    ),
    Operator(
        "rotary",
        "x, cos, sin",
        "apply_rotary(x, cos, sin)",
        "_turned(x, cos, sin)",
        _ROTARY.format("2 * half"),
        _TURN,
    ),
    Operator(
        "rotary_part",
        "x, cos, sin",
        "apply_rotary(x, cos, sin)",
        "_turned(x, cos, sin)",
        _ROTARY.format("2 * half + 8"),
        _TURN,
    ),
    Operator(
        "rotary_pairs",
        "x, cos, sin",
        "apply_rotary(x, cos, sin, interleaved=True)",
        "_turned_pairs(x, cos, sin)",
        _ROTARY.format("2 * half"),
        _TURN,
    ),
)
FLASH = Collection(
    "flash_attn",
    "flash_attn",
    "flash_attn",
    OPERATORS,
    formulas=_FORMULAS,
    # The package's own imports what is compiled for a GPU.
    left_out=("__init__.py", "cute", "models", "modules"),
)
