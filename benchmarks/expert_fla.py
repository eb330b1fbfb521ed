"""How `expert_kernels.py` calls flash-linear-attention, and what each function must compute."""

from __future__ import annotations

from expert_operator import EINOPS, Collection, Operator

_FORMULAS = {
    "_recurrent": '''
def _recurrent(q, k, v, decay=None):
    """o_t = q_t S_t, with S_t = decay_t S_{t-1} + k_t v_t'."""
    batch, steps, heads, dim = q.shape
    state = torch.zeros(batch, heads, dim, v.shape[-1], dtype=q.dtype, device=q.device)
    out = []
    for t in range(steps):
        if decay is not None:
            state = state * decay[:, t]
        state = state + k[:, t].unsqueeze(-1) * v[:, t].unsqueeze(-2)
        out.append(torch.einsum("bhd,bhde->bhe", q[:, t], state))
    return torch.stack(out, 1)
''',
    "_delta": '''
def _delta(q, k, v, beta, g=None):
    """o_t = q_t S_t, with S_t = S + k_t beta_t (v_t - k_t S)', where S = exp(g_t) S_{t-1}."""
    batch, steps, heads, dim = q.shape
    state = torch.zeros(batch, heads, dim, v.shape[-1], dtype=q.dtype, device=q.device)
    out = []
    for t in range(steps):
        if g is not None:
            state = state * g[:, t].exp()[..., None, None]
        read = torch.einsum("bhd,bhde->bhe", k[:, t], state)
        new = (v[:, t] - read) * beta[:, t].unsqueeze(-1)
        state = state + k[:, t].unsqueeze(-1) * new.unsqueeze(-2)
        out.append(torch.einsum("bhd,bhde->bhe", q[:, t], state))
    return torch.stack(out, 1)
''',
    "_scan": """
def _scan(x, g):
    state, out = torch.zeros_like(x[:, 0]), []
    for t in range(x.shape[1]):
        state = state * g[:, t].exp() + x[:, t]
        out.append(state)
    return torch.stack(out, 1)
""",
    "_root_mean_square": """
def _root_mean_square(x, eps):
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)
""",
    "_convolved": """
def _convolved(x, weight, bias):
    padded = F.pad(x.transpose(1, 2), (weight.shape[-1] - 1, 0))
    return F.conv1d(padded, weight.unsqueeze(1), bias, groups=x.shape[-1]).transpose(1, 2)
""",
    "_turned": """
def _turned(x, cos, sin):
    half = cos.shape[-1]
    a, b = x[..., :half], x[..., half:]
    c, s = cos[: x.shape[1], None], sin[: x.shape[1], None]
    return torch.cat((a * c - b * s, a * s + b * c), -1)
""",
    "_attended": """
def _attended(q, k, v):
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2)
""",
}

_X = "    rows, hidden = 16, 200\n    return (torch.randn(rows, hidden),)"
_XY = "    rows, hidden = 16, 200\n    return torch.randn(rows, hidden), torch.randn(rows, hidden)"
_HEADS = (
    "    batch, steps, heads, dim = 2, 48, 2, 32\n"
    "    q, k, v = (torch.randn(batch, steps, heads, dim{}) for _ in range(3))\n"
)
_QKV = f"{_HEADS.format('')}    return q, k, v"
_GATED = (
    f"{_HEADS.format('')}    g = F.logsigmoid(torch.randn(batch, steps, heads, dim))\n"
    "    return q, k, v, g"
)
_GATED_BY_HEAD = _GATED.replace("heads, dim))", "heads))")
_NORMALIZED = "    k, beta = F.normalize(k, dim=-1), torch.rand(batch, steps, heads{0})\n"
_DELTA = f"{_HEADS.format('')}{_NORMALIZED.format('')}    return q, k, v, beta"
# In bfloat16 alone: the kernels give the product of two dtypes to the tensor cores.
_DELTA_BFLOAT16 = (
    f"{_HEADS.format(', dtype=torch.bfloat16')}{_NORMALIZED.format(', dtype=torch.bfloat16')}"
    "    return q, k, v, beta"
)
_GATED_DELTA = (
    f"{_HEADS.format('')}{_NORMALIZED.format('')}"
    "    return q, k, v, F.logsigmoid(torch.randn(batch, steps, heads)), beta"
)
_SEQUENCE = "    batch, steps, hidden = 2, 40, 64\n"

OPERATORS = (
    Operator(
        "linear_attn",
        "q, k, v",
        "chunk_linear_attn(q, k, v, scale=1.0, normalize=False)[0]",
        "_recurrent(q, k, v)",
        _QKV,
        "from fla.ops.linear_attn import chunk_linear_attn",
    ),
    Operator(
        "linear_attn_recurrent",
        "q, k, v",
        "fused_recurrent_linear_attn(q, k, v, scale=1.0, normalize=False)[0]",
        "_recurrent(q, k, v)",
        _QKV,
        "from fla.ops.linear_attn import fused_recurrent_linear_attn",
    ),
    Operator(
        "gla",
        "q, k, v, g",
        "chunk_gla(q, k, v, g, scale=1.0)[0]",
        "_recurrent(q, k, v, g.exp().unsqueeze(-1))",
        _GATED,
        "from fla.ops.gla import chunk_gla",
    ),
    Operator(
        "gla_recurrent",
        "q, k, v, g",
        "fused_recurrent_gla(q, k, v, gk=g, scale=1.0)[0]",
        "_recurrent(q, k, v, g.exp().unsqueeze(-1))",
        _GATED,
        "from fla.ops.gla import fused_recurrent_gla",
    ),
    Operator(
        "simple_gla",
        "q, k, v, g",
        "chunk_simple_gla(q, k, v, g=g, scale=1.0)[0]",
        "_recurrent(q, k, v, g.exp()[..., None, None])",
        _GATED_BY_HEAD,
        "from fla.ops.simple_gla import chunk_simple_gla",
    ),
    Operator(
        "delta_rule",
        "q, k, v, beta",
        "chunk_delta_rule(q, k, v, beta, scale=1.0)[0]",
        "_delta(q, k, v, beta)",
        _DELTA,
        "from fla.ops.delta_rule import chunk_delta_rule",
    ),
    Operator(
        "delta_rule_bfloat16",
        "q, k, v, beta",
        "chunk_delta_rule(q, k, v, beta, scale=1.0)[0]",
        "_delta(q, k, v, beta)",
        _DELTA_BFLOAT16,
        "from fla.ops.delta_rule import chunk_delta_rule",
    ),
    Operator(
        "delta_rule_recurrent",
        "q, k, v, beta",
        "fused_recurrent_delta_rule(q, k, v, beta, scale=1.0)[0]",
        "_delta(q, k, v, beta)",
        _DELTA,
        "from fla.ops.delta_rule import fused_recurrent_delta_rule",
    ),
    Operator(
        "gated_delta_rule",
        "q, k, v, g, beta",
        "chunk_gated_delta_rule(q, k, v, g, beta, scale=1.0)[0]",
        "_delta(q, k, v, beta, g)",
        _GATED_DELTA,
        "from fla.ops.gated_delta_rule import chunk_gated_delta_rule",
    ),
    Operator(
        "gated_delta_rule_recurrent",
        "q, k, v, g, beta",
        "fused_recurrent_gated_delta_rule(q, k, v, g, beta=beta, scale=1.0)[0]",
        "_delta(q, k, v, beta, g)",
        _GATED_DELTA,
        "from fla.ops.gated_delta_rule import fused_recurrent_gated_delta_rule",
    ),
    Operator(
        "hgrn",
        "x, g",
        "fused_recurrent_hgrn(x, g)[0]",
        "_scan(x, g)",
        f"{_SEQUENCE}    x = torch.randn(batch, steps, hidden)\n"
        "    return x, F.logsigmoid(torch.randn(batch, steps, hidden))",
        "from fla.ops.hgrn import fused_recurrent_hgrn",
    ),
    Operator(
        "attention",
        "q, k, v",
        "parallel_attn(q, k, v, scale=q.shape[-1] ** -0.5)",
        "_attended(q, k, v)",
        _QKV,
        "from fla.ops.attn import parallel_attn",
    ),
    Operator(
        "mean_pooling",
        "x",
        "mean_pooled(x, 16)",
        "torch.stack([part.mean(1) for part in x.split(16, 1)], 1)",
        "    batch, steps, heads, dim = 2, 48, 2, 32\n"
        "    return (torch.randn(batch, steps, heads, dim),)",
        "from fla.ops.utils import mean_pooling as mean_pooled",
    ),
    Operator(
        "cumsum",
        "x",
        "chunk_global_cumsum(x)",
        "x.cumsum(1)",
        "    batch, steps, heads = 2, 48, 3\n    return (torch.randn(batch, steps, heads),)",
        "from fla.ops.utils import chunk_global_cumsum",
    ),
    Operator(
        "l2norm",
        "x, eps",
        "normalized(x, eps)",
        "x * torch.rsqrt(x.square().sum(-1, keepdim=True) + eps)",
        "    rows, hidden = 16, 200\n    return torch.randn(rows, hidden), 1e-6",
        "from fla.modules.l2norm import l2norm as normalized",
    ),
    Operator(
        "rms_norm",
        "x, weight, eps",
        "normalized(x, weight, None, eps=eps)",
        "_root_mean_square(x, eps) * weight",
        "    rows, hidden = 16, 200\n"
        "    return torch.randn(rows, hidden), torch.randn(hidden), 1e-5",
        "from fla.modules.layernorm import rms_norm as normalized",
    ),
    Operator(
        "layer_norm",
        "x, weight, bias, eps",
        "normalized(x, weight, bias, eps=eps)",
        "F.layer_norm(x, (x.shape[-1],), weight, bias, eps)",
        "    rows, hidden = 16, 200\n"
        "    return torch.randn(rows, hidden), torch.randn(hidden), torch.randn(hidden), 1e-5",
        "from fla.modules.layernorm import layer_norm as normalized",
    ),
    Operator(
        "rms_norm_gated",
        "x, g, weight, eps",
        'normalized(x, g, weight, None, "swish", eps=eps)',
        "_root_mean_square(x, eps) * weight * F.silu(g)",
        "    rows, hidden = 16, 200\n"
        "    x, g = torch.randn(rows, hidden), torch.randn(rows, hidden)\n"
        "    return x, g, torch.randn(hidden), 1e-5",
        "from fla.modules.fused_norm_gate import rms_norm_gated as normalized",
    ),
    Operator(
        "swiglu",
        "x, y",
        "activations.swiglu(x, y)",
        "F.silu(x) * y",
        _XY,
        "from fla.modules import activations",
    ),
    Operator(
        "logsigmoid",
        "x",
        "activations.logsigmoid(x)",
        "F.logsigmoid(x)",
        _X,
        "from fla.modules import activations",
    ),
    Operator(
        "sqrelu",
        "x",
        "activations.sqrelu(x)",
        "F.relu(x).square()",
        _X,
        "from fla.modules import activations",
    ),
    Operator(
        "fast_gelu",
        "x",
        "activations.fast_gelu_impl(x)",
        'F.gelu(x, approximate="tanh")',
        _X,
        "from fla.modules import activations",
    ),
    Operator(
        "swish",
        "x",
        "activations.swish(x)",
        "F.silu(x)",
        _X,
        "from fla.modules import activations",
    ),
    Operator(
        "token_shift",
        "x",
        "shifted(x)",
        "F.pad(x, (0, 0, 1, -1)) - x",
        f"{_SEQUENCE}    return (torch.randn(batch, steps, hidden),)",
        "from fla.modules.token_shift import token_shift as shifted",
    ),
    Operator(
        "conv1d",
        "x, weight, bias",
        'causal_conv1d(x, weight, bias, activation="silu")[0]',
        "F.silu(_convolved(x, weight, bias))",
        f"{_SEQUENCE}    x, weight = torch.randn(batch, steps, hidden), torch.randn(hidden, 4)\n"
        "    return x, weight, torch.randn(hidden)",
        "from fla.modules.conv import causal_conv1d",
    ),
    Operator(
        "rotary",
        "x, cos, sin",
        "rotary_embedding(x, cos, sin)",
        "_turned(x, cos, sin)",
        "    batch, steps, heads, half = 2, 40, 3, 16\n"
        "    angle = torch.rand(steps, half) * 6.28\n"
        "    return torch.randn(batch, steps, heads, 2 * half), angle.cos(), angle.sin()",
        "from fla.modules.rotary import rotary_embedding",
    ),
    Operator(
        "cross_entropy",
        "x, target",
        "cross_entropy_loss(x, target)[0]",
        'F.cross_entropy(x, target, reduction="none")',
        "    rows, vocab = 16, 200\n"
        "    return torch.randn(rows, vocab), torch.randint(0, vocab, (rows,))",
        "from fla.modules.fused_cross_entropy import cross_entropy_loss",
    ),
)
FLA = Collection("fla", "fla", "fla", OPERATORS, formulas=_FORMULAS, stubs={"einops.py": EINOPS})
