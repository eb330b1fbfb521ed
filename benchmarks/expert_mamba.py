"""How `expert_kernels.py` calls Mamba's Triton kernels, and what each must compute."""

from __future__ import annotations

from expert_operator import EINOPS, Collection, Operator

_FORMULAS = {
    "_products": '''
def _products(a, b, size):
    """Multiply rows of a by those of b, within each chunk of `size` steps."""
    a, b = (x.unflatten(1, (-1, size)) for x in (a, b))
    return a @ b.transpose(-1, -2)
''',
    "_decays": '''
def _decays(dt, a, bias, size):
    """Sums of each chunk's logarithms of decay, and its steps of time."""
    steps = F.softplus(dt + bias).unflatten(1, (-1, size)).permute(0, 3, 1, 2).float()
    return (steps * a.float()[:, None, None]).cumsum(-1), steps
''',
    "_states": '''
def _states(b, x, dt, decay):
    """What each chunk adds to the state."""
    chunks, size = dt.shape[2:]
    x, b = x.unflatten(1, (chunks, size)), b.unflatten(1, (chunks, size))
    b = b.repeat_interleave(x.shape[3] // b.shape[3], 3)
    weights = (decay[..., -1:] - decay).exp() * dt
    return torch.einsum("bclhn,bhcl,bclhp->bchpn", b, weights, x)
''',
    "_passed": '''
def _passed(states, decay):
    """The state before each chunk, and the last one."""
    state, before = torch.zeros_like(states[:, 0]), []
    for chunk in range(states.shape[1]):
        before.append(state)
        state = state * decay[:, :, chunk, None].exp() + states[:, chunk]
    return torch.stack(before, 1), state
''',
    "_scanned": '''
def _scanned(b, c, x, dt, decay, states):
    """Each chunk's results, of what came before it and of its own steps."""
    chunks, size = dt.shape[2:]
    x, b, c = (t.unflatten(1, (chunks, size)) for t in (x, b, c))
    groups = x.shape[3] // b.shape[3]
    b, c = b.repeat_interleave(groups, 3), c.repeat_interleave(groups, 3)
    before = torch.einsum("bclhn,bchpn,bhcl->bclhp", c, states, decay.exp())
    weights = (decay[..., :, None] - decay[..., None, :]).exp() * dt[..., None, :]
    scores = torch.einsum("bclhn,bcshn,bhcls->bhcls", c, b, weights).tril()
    return (before + torch.einsum("bhcls,bcshp->bclhp", scores, x)).flatten(1, 2)
''',
    "_updated": """
def _updated(state, x, dt, a, b, c, d, z, bias):
    dt = F.softplus(dt + bias)
    state = state * (dt[..., None] * a).exp() + (dt * x)[..., None] * b[:, None]
    return ((state * c[:, None]).sum(-1) + d * x) * F.silu(z)
""",
    "_gated": """
def _gated(x, weight, z, eps):
    x = x * F.silu(z)
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * weight
""",
}
_ROWS = "    rows, hidden = 16, 200\n"
_NORM = f"{_ROWS}    x, weight = torch.randn(rows, hidden), torch.randn(hidden)\n"
_CHUNKED = (
    "    batch, chunks, size, heads, dim, state = 2, 3, 16, 2, 32, 16\n"
    "    x = torch.randn(batch, chunks * size, heads, dim)\n"
    "    dt = torch.rand(batch, heads, chunks, size)\n"
    "    decay = -torch.rand(batch, heads, chunks, size).cumsum(-1)\n"
    "    b = torch.randn(batch, chunks * size, 1, state)\n"
)

OPERATORS = (
    Operator(
        "chunk_products",
        "a, b",
        "_bmm_chunk_fwd(a, b, 16)",
        "_products(a, b, 16)",
        "    batch, chunks, inner = 2, 3, 40\n"
        "    shape = batch, chunks * 16, inner\n    return torch.randn(shape), torch.randn(shape)",
        "from mamba_ssm.ops.triton.ssd_bmm import _bmm_chunk_fwd",
    ),
    Operator(
        "chunk_decays",
        "dt, a, bias",
        "_chunk_cumsum_fwd(dt, a, 16, dt_bias=bias, dt_softplus=True)",
        "_decays(dt, a, bias, 16)",
        "    batch, chunks, heads = 2, 3, 5\n    dt = torch.randn(batch, chunks * 16, heads)\n"
        "    return dt, -torch.rand(heads), torch.randn(heads)",
        "from mamba_ssm.ops.triton.ssd_chunk_state import _chunk_cumsum_fwd",
    ),
    Operator(
        "chunk_state",
        "b, x, dt, decay",
        "chunked(b, x, dt, decay)",
        "_states(b, x, dt, decay)",
        f"{_CHUNKED}    return b, x, dt, decay",
        "from mamba_ssm.ops.triton.ssd_chunk_state import chunk_state as chunked",
    ),
    Operator(
        "state_passing",
        "states, decay",
        "passing(states, decay)",
        "_passed(states, decay)",
        "    batch, chunks, heads, dim = 2, 4, 3, 40\n"
        "    return torch.randn(batch, chunks, heads, dim), -torch.rand(batch, heads, chunks)",
        "from mamba_ssm.ops.triton.ssd_state_passing import state_passing as passing",
    ),
    Operator(
        "chunk_scan",
        "b, c, x, dt, decay, states",
        "_chunk_scan_fwd(_bmm_chunk_fwd(c, b, dt.shape[3]), x, dt, decay, c, states)[0]",
        "_scanned(b, c, x, dt, decay, states)",
        f"{_CHUNKED}    states = torch.randn(batch, chunks, heads, dim, state)\n"
        "    return b, torch.randn_like(b), x, dt, decay, states",
        "from mamba_ssm.ops.triton.ssd_bmm import _bmm_chunk_fwd\n"
        "from mamba_ssm.ops.triton.ssd_chunk_scan import _chunk_scan_fwd",
    ),
    Operator(
        "state_update",
        "state, x, dt, a, b, c, d, z, bias",
        "selective_state_update(state.clone(), x, dt, a, b, c, d, z, bias, True)",
        "_updated(state, x, dt, a, b, c, d, z, bias)",
        "    batch, dim, inner = 3, 40, 16\n    state = torch.randn(batch, dim, inner)\n"
        "    x, dt, z = (torch.randn(batch, dim) for _ in range(3))\n"
        "    b, c = (torch.randn(batch, inner) for _ in range(2))\n"
        "    return state, x, dt, -torch.rand(dim, inner), b, c, torch.randn(dim), z, "
        "torch.randn(dim)",
        "from mamba_ssm.ops.triton.selective_state_update import selective_state_update",
    ),
    Operator(
        "rms_norm_gated",
        "x, weight, z, eps",
        "rmsnorm_fn(x, weight, None, z, eps, None, False)",
        "_gated(x, weight, z, eps)",
        f"{_NORM}    return x, weight, torch.randn(rows, hidden), 1e-5",
        "from mamba_ssm.ops.triton.layernorm_gated import rmsnorm_fn",
    ),
    Operator(
        "layer_norm_gated",
        "x, weight, bias, z, eps",
        "layernorm_fn(x, weight, bias, z, eps)",
        "F.layer_norm(x, (x.shape[-1],), weight, bias, eps) * F.silu(z)",
        f"{_NORM}    return x, weight, torch.randn(hidden), torch.randn(rows, hidden), 1e-5",
        "from mamba_ssm.ops.triton.layernorm_gated import layernorm_fn",
    ),
    Operator(
        "layer_norm",
        "x, weight, bias, eps",
        "layer_norm_fn(x, weight, bias, eps=eps)",
        "F.layer_norm(x, (x.shape[-1],), weight, bias, eps)",
        f"{_NORM}    return x, weight, torch.randn(hidden), 1e-5",
        "from mamba_ssm.ops.triton.layer_norm import layer_norm_fn",
    ),
    Operator(
        "swiglu",
        "x",
        "_swiglu_fwd(x)",
        "F.silu(x.chunk(2, -1)[0]) * x.chunk(2, -1)[1]",
        "    rows, half = 16, 100\n    return (torch.randn(rows, 2 * half),)",
        "from mamba_ssm.ops.triton.k_activations import _swiglu_fwd",
    ),
)
MAMBA = Collection(
    "mamba_ssm",
    "mamba_ssm",
    "mamba_ssm",
    OPERATORS,
    formulas=_FORMULAS,
    stubs={"einops.py": EINOPS},
    # The package's own imports what is compiled for a GPU.
    left_out=("__init__.py",),
)
