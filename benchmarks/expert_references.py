"""What the functions of `expert_kernels.py` must compute, and how each library is called."""

from __future__ import annotations

from typing import NamedTuple

HEAD = "import torch\nimport torch.nn.functional as F\n\n"

# Pointwise functions by PyTorch, under the names that attorch has for them.
ACTIVATIONS = {
    "sigmoid": "torch.sigmoid(x)",
    "logsigmoid": "F.logsigmoid(x)",
    "tanh": "torch.tanh(x)",
    "relu": "F.relu(x)",
    "gelu": "F.gelu(x)",
    "geluapprox": 'F.gelu(x, approximate="tanh")',
    "silu": "F.silu(x)",
    "relu6": "F.relu6(x)",
    "hardsigmoid": "F.hardsigmoid(x)",
    "hardtanh": "F.hardtanh(x)",
    "hardswish": "F.hardswish(x)",
    "selu": "F.selu(x)",
    "mish": "F.mish(x)",
    "softplus": "F.softplus(x)",
    "softsign": "F.softsign(x)",
    "tanhshrink": "F.tanhshrink(x)",
    "leaky_relu_0.01": "F.leaky_relu(x)",
    "elu_1.0": "F.elu(x)",
    "celu_2.0": "F.celu(x, 2.0)",
    "hardshrink_0.5": "F.hardshrink(x)",
}
REFERENCES = {
    "softmax": """
def softmax(x):
    return torch.softmax(x, -1)


def inputs():
    rows, hidden = 16, 200
    return (torch.randn(rows, hidden),)
""",
    "sparsemax": """
def sparsemax(x):
    ordered, _ = torch.sort(x, dim=-1, descending=True)
    total = ordered.cumsum(-1) - 1
    k = torch.arange(1, x.shape[-1] + 1, device=x.device, dtype=x.dtype)
    count = (ordered * k > total).sum(-1, keepdim=True)
    tau = total.gather(-1, count - 1) / count.to(x.dtype)
    return torch.clamp(x - tau, min=0)


def inputs():
    rows, hidden = 16, 200
    return (torch.randn(rows, hidden),)
""",
    "rms_norm": """
def rms_norm(x, weight, eps):
    wide = x.float()
    return weight * (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)).to(x.dtype)


def inputs():
    rows, hidden = 16, 256
    return torch.randn(rows, hidden), torch.randn(hidden), 1e-6
""",
    "layer_norm": """
def layer_norm(x, weight, bias, eps):
    return F.layer_norm(x, (x.shape[-1],), weight, bias, eps)


def inputs():
    rows, hidden = 16, 256
    return torch.randn(rows, hidden), torch.randn(hidden), torch.randn(hidden), 1e-5
""",
    "cross_entropy": """
def cross_entropy(x, target):
    return F.cross_entropy(x, target)


def inputs():
    rows, vocab = 16, 200
    return torch.randn(rows, vocab), torch.randint(0, vocab, (rows,))
""",
    "cross_entropy_smooth": """
def cross_entropy_smooth(x, target, smoothing):
    return F.cross_entropy(x, target, reduction="none", label_smoothing=smoothing)


def inputs():
    rows, vocab = 16, 200
    return torch.randn(rows, vocab), torch.randint(0, vocab, (rows,)), 0.1
""",
    "swiglu": """
def swiglu(a, b):
    return F.silu(a) * b


def inputs():
    rows, hidden = 16, 200
    return torch.randn(rows, hidden), torch.randn(rows, hidden)
""",
    "geglu": """
def geglu(a, b):
    return F.gelu(a, approximate="tanh") * b


def inputs():
    rows, hidden = 16, 200
    return torch.randn(rows, hidden), torch.randn(rows, hidden)
""",
    "rope": """
def rope(q, k, cos, sin):
    def turned(x):
        half = x.shape[-1] // 2
        return torch.cat((-x[..., half:], x[..., :half]), -1)
    c, s = cos.unsqueeze(1), sin.unsqueeze(1)
    return q * c + turned(q) * s, k * c + turned(k) * s


def inputs():
    batch, heads, kv, seq, dim = 2, 4, 2, 12, 32
    angles = torch.arange(seq)[:, None] * 10000.0 ** (-torch.arange(0, dim, 2) / dim)
    angles = torch.cat((angles, angles), -1)[None]
    q, k = torch.randn(batch, heads, seq, dim), torch.randn(batch, kv, seq, dim)
    return q, k, angles.cos(), angles.sin()
""",
    "kl_div": """
def kl_div(x, target):
    return F.kl_div(x, target, reduction="batchmean")


def inputs():
    rows, vocab = 16, 200
    return (
        torch.log_softmax(torch.randn(rows, vocab), -1),
        torch.softmax(torch.randn(rows, vocab), -1),
    )
""",
    "group_norm": """
def group_norm(x, weight, bias, groups, eps):
    return F.group_norm(x, groups, weight, bias, eps)


def inputs():
    batch, channels, width = 4, 12, 50
    return (
        torch.randn(batch, channels, width), torch.randn(channels), torch.randn(channels), 4,
        1e-5,
    )
""",
    "dyt": """
def dyt(x, alpha, gamma, beta):
    return gamma * torch.tanh(alpha * x) + beta


def inputs():
    rows, hidden = 16, 200
    return torch.randn(rows, hidden), torch.randn(1), torch.randn(hidden), torch.randn(hidden)
""",
    "tvd": """
def tvd(p, q):
    return 0.5 * (p - q).abs().sum(-1).mean()


def inputs():
    rows, vocab = 16, 200
    return (
        torch.softmax(torch.randn(rows, vocab), -1),
        torch.softmax(torch.randn(rows, vocab), -1),
    )
""",
    "relu_squared": """
def relu_squared(x):
    return F.relu(x).square()


def inputs():
    rows, hidden = 16, 200
    return (torch.randn(rows, hidden),)
""",
    "fused_add_rms_norm": """
def fused_add_rms_norm(x, residual, weight, eps):
    total = x + residual
    wide = total.float()
    return (
        weight * (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)).to(x.dtype),
        total,
    )


def inputs():
    rows, hidden = 16, 256
    return torch.randn(rows, hidden), torch.randn(rows, hidden), torch.randn(hidden), 1e-6
""",
    "jsd": """
def jsd(x, target):
    p, q = target.exp(), x.exp()
    m = 0.5 * (p + q)
    lm = m.log()
    return (0.5 * (p * (target - lm)).sum() + 0.5 * (q * (x - lm)).sum()) / x.shape[0]


def inputs():
    rows, vocab = 16, 200
    return (
        torch.log_softmax(torch.randn(rows, vocab), -1),
        torch.log_softmax(torch.randn(rows, vocab), -1),
    )
""",
    "poly_norm": """
def poly_norm(x, weight, bias, eps):
    def norm(y):
        return y * torch.rsqrt(y.square().mean(-1, keepdim=True) + eps)
    w = x.float()
    cubes, squares, plain = norm(w**3), norm(w**2), norm(w)
    made = weight[0] * cubes + weight[1] * squares + weight[2] * plain + bias
    return made.to(x.dtype)


def inputs():
    rows, hidden = 16, 200
    return torch.randn(rows, hidden), torch.randn(3), torch.randn(1), 1e-6
""",
    "log_softmax": """
def log_softmax(x):
    return torch.log_softmax(x, -1)


def inputs():
    rows, hidden = 16, 200
    return (torch.randn(rows, hidden),)
""",
    "softmin": """
def softmin(x):
    return F.softmin(x, -1)


def inputs():
    rows, hidden = 16, 200
    return (torch.randn(rows, hidden),)
""",
    "mse_loss": """
def mse_loss(x, y):
    return F.mse_loss(x, y)


def inputs():
    rows, hidden = 16, 200
    return torch.randn(rows, hidden), torch.randn(rows, hidden)
""",
    "l1_loss": """
def l1_loss(x, y):
    return F.l1_loss(x, y)


def inputs():
    rows, hidden = 16, 200
    return torch.randn(rows, hidden), torch.randn(rows, hidden)
""",
    "linear": """
def linear(x, weight, bias):
    return F.linear(x, weight, bias)


def inputs():
    rows, inner, outer = 16, 40, 24
    return torch.randn(rows, inner), torch.randn(outer, inner), torch.randn(outer)
""",
    "smooth_l1_loss": """
def smooth_l1_loss(x, y):
    return F.smooth_l1_loss(x, y)


def inputs():
    rows, hidden = 16, 200
    return torch.randn(rows, hidden), torch.randn(rows, hidden)
""",
    "huber_loss": """
def huber_loss(x, y):
    return F.huber_loss(x, y)


def inputs():
    rows, hidden = 16, 200
    return torch.randn(rows, hidden), torch.randn(rows, hidden)
""",
    "glu": """
def glu(x):
    return F.glu(x, -1)


def inputs():
    rows, half = 16, 100
    return (torch.randn(rows, 2 * half),)
""",
    "nll": """
def nll(x, target):
    return F.nll_loss(x, target)


def inputs():
    rows, classes = 16, 50
    return torch.log_softmax(torch.randn(rows, classes), -1), torch.randint(0, classes, (rows,))
""",
    "batch_norm": """
def batch_norm(x, weight, bias, mean, var, eps):
    return F.batch_norm(x, mean, var, weight, bias, False, 0.1, eps)


def inputs():
    batch, channels, width = 8, 12, 20
    return (
        torch.randn(batch, channels, width), torch.randn(channels), torch.randn(channels),
        torch.randn(channels), torch.rand(channels) + 0.1, 1e-5,
    )
""",
    "batch_norm_train": """
def batch_norm_train(x, weight, bias, eps):
    return F.batch_norm(x, None, None, weight, bias, True, 0.1, eps)


def inputs():
    batch, channels, width = 8, 12, 20
    return (
        torch.randn(batch, channels, width), torch.randn(channels), torch.randn(channels), 1e-5,
    )
""",
    "conv2d": """
def conv2d(x, weight, bias):
    return F.conv2d(x, weight, bias, padding=1)


def inputs():
    batch, channels, outer, height, width = 2, 6, 5, 12, 14
    return (
        torch.randn(batch, channels, height, width), torch.randn(outer, channels, 3, 3),
        torch.randn(outer),
    )
""",
}


class Call(NamedTuple):
    """A function of a library, and the reference that it is held to.

    Attributes:
        entry: module and class of the `torch.autograd.Function` that is applied.
        given: what it is applied to, by the names of the reference's parameters.
        of: what follows the call, such as an index.
    """

    library: str
    name: str
    entry: str
    given: str
    of: str = ""


CALLS = (
    Call("liger_kernel", "softmax", "ops.softmax:LigerSoftmaxFunction", "x"),
    Call("liger_kernel", "sparsemax", "ops.sparsemax:LigerSparsemaxFunction", "x, -1"),
    Call(
        "liger_kernel",
        "rms_norm",
        "ops.rms_norm:LigerRMSNormFunction",
        'x, weight, eps, 0.0, "llama", False',
    ),
    Call(
        "liger_kernel",
        "layer_norm",
        "ops.layer_norm:LigerLayerNormFunction",
        "x, weight, bias, eps",
    ),
    Call("attorch", "layer_norm", "layer_norm_layer:LayerNormAutoGrad", "x, weight, bias, eps"),
    Call(
        "liger_kernel",
        "cross_entropy",
        "ops.cross_entropy:LigerCrossEntropyFunction",
        "x, target, None",
        "[0]",
    ),
    Call(
        "liger_kernel",
        "cross_entropy_smooth",
        "ops.cross_entropy:LigerCrossEntropyFunction",
        'x, target, None, -100, 0.0, smoothing, "none"',
        "[0]",
    ),
    Call("liger_kernel", "swiglu", "ops.swiglu:LigerSiLUMulFunction", "a, b"),
    Call("liger_kernel", "geglu", "ops.geglu:LigerGELUMulFunction", "a, b"),
    Call("liger_kernel", "rope", "ops.rope:LigerRopeFunction", "q.clone(), k.clone(), cos, sin"),
    Call("liger_kernel", "kl_div", "ops.kl_div:LigerKLDivLossFunction", "x, target"),
    Call(
        "liger_kernel",
        "group_norm",
        "ops.group_norm:LigerGroupNormFunction",
        "x, weight, bias, x.shape[1], groups, eps",
    ),
    Call("liger_kernel", "dyt", "ops.dyt:LigerDyTFunction", "x, alpha, gamma, beta"),
    Call("liger_kernel", "tvd", "ops.tvd:LigerTVDLossFunction", "p, q"),
    Call("liger_kernel", "relu_squared", "ops.relu_squared:LigerReLUSquaredFunction", "x"),
    Call(
        "liger_kernel",
        "fused_add_rms_norm",
        "ops.fused_add_rms_norm:LigerFusedAddRMSNormFunction",
        'x, residual, weight, eps, 0.0, "llama", False',
    ),
    Call("liger_kernel", "jsd", "ops.jsd:LigerJSDFunction", "x, target"),
    Call(
        "liger_kernel",
        "poly_norm",
        "ops.poly_norm:LigerPolyNormFunction",
        "x, weight, bias, eps, False",
    ),
    Call("attorch", "softmax", "softmax_layers:SoftmaxAutoGrad", "x, False, False"),
    Call("attorch", "log_softmax", "softmax_layers:SoftmaxAutoGrad", "x, False, True"),
    Call("attorch", "softmin", "softmax_layers:SoftmaxAutoGrad", "x, True, False"),
    Call("attorch", "mse_loss", "p_loss_layers:PLossAutoGrad", 'x, y, 2, "mean"'),
    Call("attorch", "l1_loss", "p_loss_layers:PLossAutoGrad", 'x, y, 1, "mean"'),
    Call("attorch", "smooth_l1_loss", "p_loss_layers:PLossAutoGrad", 'x, y, 0, "mean", 1.0'),
    Call("attorch", "huber_loss", "p_loss_layers:PLossAutoGrad", 'x, y, 3, "mean", 1.0'),
    Call("attorch", "linear", "linear_layer:LinearAutoGrad", "x, weight.t(), bias"),
    Call("attorch", "rms_norm", "rms_norm_layer:RMSNormAutoGrad", "x, weight, eps"),
    Call("attorch", "glu", "glu_layer:GLUAutoGrad", 'x, -1, "sigmoid"'),
    Call("attorch", "nll", "nll_loss_layer:NLLLossAutoGrad", 'x, target, "mean"'),
    Call(
        "attorch", "cross_entropy", "cross_entropy_loss_layer:CrossEntropyLossAutoGrad", "x, target"
    ),
    Call(
        "attorch",
        "batch_norm",
        "batch_norm_layer:BatchNormAutoGrad",
        "x, False, weight, bias, mean, var, 0.1, eps, True",
    ),
    Call(
        "attorch",
        "batch_norm_train",
        "batch_norm_layer:BatchNormAutoGrad",
        "x, True, weight, bias, None, None, 0.1, eps, False",
    ),
    Call("attorch", "conv2d", "conv_layer:Conv2dAutoGrad", "x, weight, bias, 1, 1, 1, 1, 1"),
)
