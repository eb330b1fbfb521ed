"""How `expert_kernels.py` calls the operators of FlagGems, and what each must compute."""

from __future__ import annotations

from expert_operator import Collection, Operator

# The library asks which vendor's device there is by commands, and keeps what it generates in the
# user's home.
HEAD = """
import os
import tempfile

os.environ["GEMS_VENDOR"] = "nvidia"
os.environ["FLAGGEMS_ENABLE_DISK_CACHE"] = "0"
os.environ["FLAGGEMS_CACHE_DIR"] = tempfile.mkdtemp()

from flag_gems import fused, ops
"""
# Its own launcher keeps compiled kernels, in a way that fits Triton up to 3.5.
LAUNCHER = """

def libentry():
    return lambda kernel: kernel


def libtuner(configs, key, strategy=None, policy=None, **options):
    return triton.autotune(configs, key, **options)
"""

_SIZES = "    rows, hidden = 16, 200\n"
_X = f"{_SIZES}    return (torch.randn(rows, hidden),)"
_XY = f"{_SIZES}    return torch.randn(rows, hidden), torch.randn(rows, hidden)"
_XYZ = f"{_SIZES}    return tuple(torch.randn(rows, hidden) for _ in range(3))"
_POSITIVE = f"{_SIZES}    return (torch.rand(rows, hidden) + 0.1,)"
_IMAGE = (
    "    batch, channels, height, width = 2, 6, 12, 14\n"
    "    return (torch.randn(batch, channels, height, width),)"
)

# Where KernelBenchX has a task as well, this is the core's.
TASKS = (
    Operator("relu", "input", "ops.relu(input)"),
    Operator("sigmoid", "input", "ops.sigmoid(input)"),
    Operator("tanh", "input_tensor", "ops.tanh(input_tensor)"),
    Operator("silu", "input", "ops.silu(input)"),
    Operator("gelu", 'input, approximate="none"', "ops.gelu(input, approximate=approximate)"),
    Operator("elu", "input, alpha=1.0", "ops.elu(input, alpha)"),
    Operator(
        "softplus",
        "input, beta=1.0, threshold=20.0",
        "ops.softplus(input, beta, threshold)",
    ),
    Operator("softmax", "input, dim=-1", "ops.softmax(input, dim)"),
    Operator("log_softmax", "input, dim=-1", "ops.log_softmax(input, dim)"),
    Operator("embedding", "input, weight", "ops.embedding(weight, input)"),
    Operator("index_select", "input, index", "ops.index_select(input, 0, index)"),
    Operator("gather", "input, index", "ops.gather(input, 1, index)"),
    Operator("masked_fill", "input, mask, value=0.0", "ops.masked_fill(input, mask, value)"),
    Operator("where", "condition, input, other", "ops.where_self(condition, input, other)"),
    Operator("topk", "input, k=3", "ops.topk(input, k)"),
    Operator(
        "mse_loss",
        'input, target, reduction="mean"',
        'ops.mse_loss(input, target, ("none", "mean", "sum").index(reduction))',
    ),
    Operator("pow", "input, exponent=2.0", "ops.pow_tensor_scalar(input, exponent)"),
    Operator("clamp", "input, min=-1.0, max=1.0", "ops.clamp(input, min, max)"),
    Operator("lerp", "input, end, weight=0.5", "ops.lerp_scalar(input, end, weight)"),
    Operator(
        "addcmul",
        "input, tensor1, tensor2, value=1.0",
        "ops.addcmul(input, tensor1, tensor2, value=value)",
    ),
    Operator("cumsum", "input", "ops.cumsum(input, 1)"),
    Operator("count_nonzero", "input", "ops.count_nonzero(input, 1)"),
    Operator("amax", "input", "ops.amax(input)"),
    Operator("matmul", "tensor1, tensor2", "ops.mm(tensor1, tensor2)"),
    Operator(
        "addmm",
        "input, mat1, mat2, beta=1.0, alpha=1.0",
        "ops.addmm(input, mat1, mat2, beta=beta, alpha=alpha)",
    ),
    Operator(
        "layer_norm",
        "x, weight=None, bias=None, eps=1e-5",
        "ops.layer_norm(x, (x.shape[-1],), weight, bias, eps)[0]",
    ),
    Operator("rms_norm", "x, weight, eps=1e-6", "ops.rms_norm(x, (x.shape[-1],), weight, eps)"),
    Operator("sum", "input, dim=-1, keepdim=False", "ops.sum_dim(input, [dim], keepdim)"),
    Operator("mean", "input, dim=-1, keepdim=False", "ops.mean_dim(input, [dim], keepdim)"),
    Operator(
        "std",
        "input, dim=-1, correction=1, keepdim=False",
        "ops.std(input, dim, correction=correction, keepdim=keepdim)",
    ),
    Operator(
        "argmax", "input_tensor, dim=-1, keepdim=False", "ops.argmax(input_tensor, dim, keepdim)"
    ),
)
REFERENCES = (
    Operator("absolute", "x", "ops.abs(x)", "torch.abs(x)", _X),
    Operator("exponential", "x", "ops.exp(x)", "torch.exp(x)", _X),
    Operator("cosine", "x", "ops.cos(x)", "torch.cos(x)", _X),
    Operator("error_function", "x", "ops.erf(x)", "torch.erf(x)", _X),
    Operator("inverse_root", "x", "ops.rsqrt(x)", "torch.rsqrt(x)", _POSITIVE),
    Operator("natural_log", "x", "ops.log(x)", "torch.log(x)", _POSITIVE),
    Operator("log_sigmoid", "x", "ops.log_sigmoid(x)", "F.logsigmoid(x)", _X),
    Operator("celu", "x", "ops.celu(x, 2.0)", "F.celu(x, 2.0)", _X),
    Operator("threshold", "x", "ops.threshold(x, 0.5, 3.0)", "F.threshold(x, 0.5, 3.0)", _X),
    Operator("glu", "x", "ops.glu(x)", "F.glu(x)", _X),
    Operator("divide", "x, y", "ops.true_divide(x, y)", "x / y", _XY),
    Operator("maximum", "x, y", "ops.maximum(x, y)", "torch.maximum(x, y)", _XY),
    Operator("addcdiv", "x, y, z", "ops.addcdiv(x, y, z)", "torch.addcdiv(x, y, z)", _XYZ),
    Operator("is_close", "x, y", "ops.isclose(x, y)", "torch.isclose(x, y)", _XY),
    Operator("var_mean", "x", "ops.var_mean(x, [-1])", "torch.var_mean(x, -1)", _X),
    Operator(
        "vector_norm",
        "x",
        "ops.vector_norm(x, 2, [-1])",
        "torch.linalg.vector_norm(x, 2, -1)",
        _X,
    ),
    Operator("product", "x", "ops.prod_dim(x, -1)", "torch.prod(x, -1)", _X),
    Operator("row_min", "x", "tuple(ops.min_dim(x, -1))", "tuple(torch.min(x, -1))", _X),
    Operator("sort", "x", "tuple(ops.sort(x, -1))", "tuple(torch.sort(x, -1))", _X),
    Operator("cummax", "x", "tuple(ops.cummax(x, -1))", "tuple(torch.cummax(x, -1))", _X),
    Operator("upper", "x", "ops.triu(x)", "torch.triu(x)", _X),
    Operator("flip", "x", "ops.flip(x, [0, 1])", "torch.flip(x, (0, 1))", _X),
    Operator("padded", "x", 'ops.pad(x, (2, 3), "reflect")', 'F.pad(x, (2, 3), "reflect")', _X),
    Operator("tiled", "x", "ops.tile(x, (2, 3))", "torch.tile(x, (2, 3))", _X),
    Operator("diag_embed", "x", "ops.diag_embed(x)", "torch.diag_embed(x)", _X),
    Operator(
        "group_norm",
        "x, weight, bias, groups, eps",
        "ops.group_norm(x, weight, bias, x.shape[0], x.shape[1], x.shape[2], groups, eps)[0]",
        "F.group_norm(x, groups, weight, bias, eps)",
        "    batch, channels, width = 4, 12, 50\n"
        "    x = torch.randn(batch, channels, width)\n"
        "    return x, torch.randn(channels), torch.randn(channels), 4, 1e-5",
    ),
    Operator(
        "batch_norm",
        "x, weight, bias, mean, var, eps",
        "ops.batch_norm(x, weight, bias, mean, var, False, 0.1, eps)[0]",
        "F.batch_norm(x, mean, var, weight, bias, False, 0.1, eps)",
        "    batch, channels, width = 8, 12, 20\n"
        "    given = tuple(torch.randn(channels) for _ in range(3))\n"
        "    return torch.randn(batch, channels, width), *given, torch.rand(channels) + 0.1, 1e-5",
    ),
    Operator(
        "nll_loss",
        "x, target",
        "ops.nll_loss_forward(x, target)[0]",
        "F.nll_loss(x, target)",
        "    rows, classes = 16, 50\n"
        "    x = torch.log_softmax(torch.randn(rows, classes), -1)\n"
        "    return x, torch.randint(0, classes, (rows,))",
    ),
    Operator(
        "batched_product",
        "x, y",
        "ops.bmm(x, y)",
        "torch.bmm(x, y)",
        "    batch, rows, inner, columns = 3, 16, 40, 24\n"
        "    return torch.randn(batch, rows, inner), torch.randn(batch, inner, columns)",
    ),
    Operator(
        "matrix_vector",
        "x, y",
        "ops.mv(x, y)",
        "torch.mv(x, y)",
        "    rows, inner = 24, 40\n    return torch.randn(rows, inner), torch.randn(inner)",
    ),
    Operator(
        "outer_sum",
        "x, y, z",
        "ops.addr(x, y, z)",
        "torch.addr(x, y, z)",
        "    rows, columns = 24, 40\n"
        "    return torch.randn(rows, columns), torch.randn(rows), torch.randn(columns)",
    ),
    Operator(
        "dot",
        "x, y",
        "ops.dot(x, y)",
        "torch.dot(x, y)",
        "    size = 300\n    return torch.randn(size), torch.randn(size)",
    ),
    Operator("average_pool", "x", "ops.avg_pool2d(x, 3, 2, 1)", "F.avg_pool2d(x, 3, 2, 1)", _IMAGE),
    Operator(
        "max_pool",
        "x",
        "ops.max_pool2d_with_indices(x, 3, 2, 1)[0]",
        "F.max_pool2d(x, 3, 2, 1)",
        _IMAGE,
    ),
    Operator(
        "upsampled",
        "x",
        "ops.upsample_nearest2d(x, (2 * x.shape[2], 2 * x.shape[3]))",
        "F.interpolate(x, scale_factor=2)",
        _IMAGE,
    ),
    Operator(
        "convolution",
        "x, weight, bias",
        "ops.conv2d(x, weight, bias, padding=1)",
        "F.conv2d(x, weight, bias, padding=1)",
        "    batch, channels, outer, height, width = 1, 4, 5, 8, 9\n"
        "    x, weight = torch.randn(batch, channels, height, width), "
        "torch.randn(outer, channels, 3, 3)\n"
        "    return x, weight, torch.randn(outer)",
    ),
    Operator("silu_and_mul", "x, y", "fused.silu_and_mul(x, y)", "F.silu(x) * y", _XY),
    Operator(
        "skip_layer_norm",
        "x, residual, weight, bias, eps",
        "fused.skip_layer_norm(x, residual, (x.shape[-1],), weight, bias, eps)",
        "F.layer_norm(x + residual, (x.shape[-1],), weight, bias, eps)",
        "    rows, hidden = 16, 200\n"
        "    x, y = torch.randn(rows, hidden), torch.randn(rows, hidden)\n"
        "    return x, y, torch.randn(hidden), torch.randn(hidden), 1e-5",
    ),
)
FLAG_GEMS = Collection(
    "flag_gems",
    "src/flag_gems",
    "flag_gems",
    (*TASKS, *REFERENCES),
    HEAD,
    appended={"utils/libentry.py": LAUNCHER},
    # It has kernels for other devices.
    left_out=("_[!n_]*", "csrc"),
)
