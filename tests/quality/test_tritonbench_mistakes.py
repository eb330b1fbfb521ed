"""Mistakes planted in PyTorch's own operators are found, in each of TritonBench-T's own tasks."""

import pytest

from kerneltruth.oracle.plan import Plan
from kerneltruth.runner.candidate import read_candidate
from kerneltruth.suites.pytorch import eager_of
from kerneltruth.tasks.registry import find, tasks_of

HEAD = "import torch\nimport torch.nn.functional as F\n\n"
CASES = 40

# For each task: what is wrong, and the function.
MISTAKES = {
    "broadcast_tensors": {
        "only the second is broadcast": """
def broadcast_tensors(x, y):
    return x, torch.broadcast_tensors(x, y)[1]""",
        "the outer product of two vectors transposed": """
def broadcast_tensors(x, y):
    a, b = torch.broadcast_tensors(x, y)
    return (a, b) if x.shape[-1:] != (1,) else (b, a)""",
        "one result": """
def broadcast_tensors(x, y):
    return torch.broadcast_tensors(x, y)[0]""",
    },
    "exp": {
        "a constant of four digits": """
def exp(input, *, out=None):
    return torch.exp2(input * 1.442)""",
        "the range is saturated": """
def exp(input, *, out=None):
    return torch.exp(input).clamp_max(torch.finfo(input.dtype).max)""",
    },
    "least_squares_qr": {
        "the first rows alone": """
def least_squares_qr(A, b, *, mode="reduced", out=None):
    n = A.shape[-1]
    b = b if b.ndim == A.ndim else b.unsqueeze(-1)
    x = torch.linalg.solve(A[..., :n, :], b[..., :n, :])
    return x if b.ndim == A.ndim else x.squeeze(-1)""",
        "normal equations": """
def least_squares_qr(A, b, *, mode="reduced", out=None):
    return torch.linalg.solve(A.mT @ A, A.mT @ b)""",
        "the last rows of a complete decomposition": """
def least_squares_qr(A, b, *, mode="reduced", out=None):
    n = A.shape[-1]
    Q, R = torch.linalg.qr(A, mode=mode)
    return torch.linalg.solve(R[..., :n, :], Q[..., -n:].mT @ b)""",
        "results of another kind for a vector": """
def least_squares_qr(A, b, *, mode="reduced", out=None):
    vector = b.ndim == A.ndim - 1
    return torch.linalg.lstsq(A, b.unsqueeze(-1) if vector else b).solution""",
    },
    "logsumexp": {
        "the largest is not subtracted": """
def logsumexp(input, dim, keepdim=False, *, out=None):
    return torch.exp(input).sum(dim, keepdim).log()""",
        "keepdim is forgotten": """
def logsumexp(input, dim, keepdim=False, *, out=None):
    return torch.logsumexp(input, dim)""",
        "always along the last dim": """
def logsumexp(input, dim, keepdim=False, *, out=None):
    return torch.logsumexp(input, -1, keepdim)""",
    },
    "max": {
        "indices into the whole input": """
def max(input, dim, keepdim=False, *, out=None):
    values, indices = torch.max(input, dim, keepdim)
    first = torch.arange(indices.numel()).reshape(indices.shape) * input.shape[dim]
    return values, indices + first""",
        "narrow indices": """
def max(input, dim, keepdim=False, *, out=None):
    values, indices = torch.max(input, dim, keepdim)
    return values, indices.to(torch.int32)""",
        "padded with 0": """
def max(input, dim, keepdim=False, *, out=None):
    values, indices = torch.max(input, dim, keepdim)
    return values.clamp_min(0), indices""",
        "NaN passed over": """
def max(input, dim, keepdim=False, *, out=None):
    least = float("-inf") if input.is_floating_point() else 0
    return torch.max(torch.where(input == input, input, least), dim, keepdim)""",
    },
    "mul_relu": {
        "relu comes first": """
def mul_relu(input, other, inplace=False, out=None):
    return torch.relu(input) * other""",
        "NaN becomes 0": """
def mul_relu(input, other, inplace=False, out=None):
    product = input * other
    return torch.where(product > 0, product, 0)""",
        "always in place": """
def mul_relu(input, other, inplace=False, out=None):
    return input.mul_(other).relu_()""",
    },
    "ones_like": {
        "always float32": """
def ones_like(input, *, dtype=None, layout=None, device=None, requires_grad=False):
    return torch.ones(input.shape)""",
        "a quotient": """
def ones_like(input, *, dtype=None, layout=None, device=None, requires_grad=False):
    return input / input""",
    },
    "scaled_add_dot": {
        "y is not updated": """
def scaled_add_dot(y, x, alpha):
    total = y + alpha * x
    return torch.dot(total, total)""",
        "with the old y": """
def scaled_add_dot(y, x, alpha):
    old = y.clone()
    y += alpha * x
    return torch.dot(y, old)""",
        "without alpha": """
def scaled_add_dot(y, x, alpha):
    y += x
    return torch.dot(y, y)""",
    },
    "scaled_add_norm": {
        "y is not updated": """
def scaled_add_norm(y, x, alpha):
    return torch.linalg.vector_norm(y + alpha * x)""",
        "the square of it": """
def scaled_add_norm(y, x, alpha):
    y += alpha * x
    return torch.dot(y, y)""",
        "x is scaled for good": """
def scaled_add_norm(y, x, alpha):
    y += x.mul_(alpha)
    return torch.linalg.vector_norm(y)""",
    },
    "SGD": {
        "dampened from the first step on": """
class SGD(torch.optim.SGD):
    def __init__(self, params, lr=1e-3, momentum=0, weight_decay=0, dampening=0, nesterov=False,
                 maximize=False):
        super().__init__(params, lr, momentum, dampening, weight_decay, nesterov, maximize=maximize)
        for p in self.param_groups[0]["params"]:
            if momentum:
                self.state[p]["momentum_buffer"] = torch.zeros_like(p)""",
        "decay apart from the gradient": """
class SGD(torch.optim.SGD):
    def __init__(self, params, lr=1e-3, momentum=0, weight_decay=0, dampening=0, nesterov=False,
                 maximize=False):
        super().__init__(params, lr, momentum, dampening, 0, nesterov, maximize=maximize)
        self.kept = 1 - lr * weight_decay

    def step(self):
        with torch.no_grad():
            for p in self.param_groups[0]["params"]:
                if p.grad is not None:
                    p.mul_(self.kept)
        super().step()""",
        "nesterov is forgotten": """
def SGD(params, lr=1e-3, momentum=0, weight_decay=0, dampening=0, nesterov=False, maximize=False):
    return torch.optim.SGD(params, lr, momentum, dampening, weight_decay, maximize=maximize)""",
        "maximize turns the decay too": """
def SGD(params, lr=1e-3, momentum=0, weight_decay=0, dampening=0, nesterov=False, maximize=False):
    weight_decay = -weight_decay if maximize else weight_decay
    made = torch.optim.SGD(params, lr, momentum, dampening, 0, nesterov, maximize=maximize)
    made.param_groups[0]["weight_decay"] = weight_decay
    return made""",
        "the first parameter alone": """
def SGD(params, lr=1e-3, momentum=0, weight_decay=0, dampening=0, nesterov=False, maximize=False):
    return torch.optim.SGD(
        params[:1], lr, momentum, dampening, weight_decay, nesterov, maximize=maximize
    )""",
    },
    "sigmoid_argmax": {
        "None taken for the last dim": """
def sigmoid_argmax(input, dim=None, keepdim=False):
    return torch.argmax(torch.sigmoid(input), -1 if dim is None else dim, keepdim)""",
        "keepdim is forgotten": """
def sigmoid_argmax(input, dim=None, keepdim=False):
    return torch.argmax(torch.sigmoid(input), dim)""",
        "of the size": """
def sigmoid_argmax(input, dim=None, keepdim=False):
    return torch.argmax(input.abs(), dim, keepdim)""",
        "NaN passed over": """
def sigmoid_argmax(input, dim=None, keepdim=False):
    return torch.argmax(torch.sigmoid(input).nan_to_num(-1.0), dim, keepdim)""",
    },
    "sigmoid_conv2d": {
        "the kernel is turned": """
def sigmoid_conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, out=None):
    weight = weight.flip(-1, -2)
    return torch.sigmoid(F.conv2d(input, weight, bias, stride, padding, dilation, groups))""",
        "the bias comes after the sigmoid": """
def sigmoid_conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, out=None):
    result = torch.sigmoid(F.conv2d(input, weight, None, stride, padding, dilation, groups))
    return result if bias is None else result + bias[:, None, None]""",
        "groups are interleaved": """
def sigmoid_conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, out=None):
    n, c, *size = input.shape
    input = input.reshape(n, c // groups, groups, *size).transpose(1, 2).reshape(input.shape)
    return torch.sigmoid(F.conv2d(input, weight, bias, stride, padding, dilation, groups))""",
        "padded with the edge": """
def sigmoid_conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, out=None):
    input = F.pad(input, (padding,) * 4, "replicate")
    return torch.sigmoid(F.conv2d(input, weight, bias, stride, 0, dilation, groups))""",
    },
    "silu_batch_norm": {
        "the running variance gets the biased one": """
def silu_batch_norm(input, running_mean, running_var, weight=None, bias=None, training=False,
                    momentum=0.1, eps=1e-5):
    old = running_var.clone()
    out = F.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)
    if training:
        dims = [d for d in range(input.ndim) if d != 1]
        running_var.copy_((1 - momentum) * old + momentum * input.var(dims, correction=0))
    return F.silu(out)""",
        "running statistics stay": """
def silu_batch_norm(input, running_mean, running_var, weight=None, bias=None, training=False,
                    momentum=0.1, eps=1e-5):
    mean, var = running_mean.clone(), running_var.clone()
    return F.silu(F.batch_norm(input, mean, var, weight, bias, training, momentum, eps))""",
        "momentum is the old one's weight": """
def silu_batch_norm(input, running_mean, running_var, weight=None, bias=None, training=False,
                    momentum=0.1, eps=1e-5):
    return F.silu(
        F.batch_norm(input, running_mean, running_var, weight, bias, training, 1 - momentum, eps)
    )""",
        "eps outside of the root": """
def silu_batch_norm(input, running_mean, running_var, weight=None, bias=None, training=False,
                    momentum=0.1, eps=1e-5):
    if training:
        return F.silu(
            F.batch_norm(input, running_mean, running_var, weight, bias, True, momentum, eps)
        )
    deviation = running_var.sqrt() + eps
    return F.silu(
        F.batch_norm(input, running_mean, deviation.square(), weight, bias, False, momentum, 0.0)
    )""",
        "silu comes first": """
def silu_batch_norm(input, running_mean, running_var, weight=None, bias=None, training=False,
                    momentum=0.1, eps=1e-5):
    input = F.silu(input)
    return F.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)""",
    },
    "softmax_mul": {
        "the largest is not subtracted": """
def softmax_mul(input, other, dim, dtype=None, out=None):
    grown = torch.exp(input)
    return grown / grown.sum(dim, keepdim=True) * other""",
        "always along the last dim": """
def softmax_mul(input, other, dim, dtype=None, out=None):
    return torch.softmax(input, -1) * other""",
        "multiplied first": """
def softmax_mul(input, other, dim, dtype=None, out=None):
    return torch.softmax(input * other, dim)""",
    },
    "solve_multiple_lu": {
        "the permutation forgotten": """
def solve_multiple_lu(A, Bs, *, pivot=True, out=None):
    P, L, U = torch.linalg.lu(A)
    return torch.linalg.solve(L @ U, Bs)""",
        "permuted the other way": """
def solve_multiple_lu(A, Bs, *, pivot=True, out=None):
    P, L, U = torch.linalg.lu(A)
    return torch.linalg.solve(L @ U, P @ Bs)""",
        "the first column for all": """
def solve_multiple_lu(A, Bs, *, pivot=True, out=None):
    return torch.linalg.solve(A, Bs[..., :1].expand_as(Bs))""",
    },
    "sqrt": {
        "of the size": """
def sqrt(input, *, out=None):
    return torch.sqrt(input.abs())""",
        "0 for what is below 0": """
def sqrt(input, *, out=None):
    return torch.sqrt(input.clamp_min(0))""",
        "a reciprocal root": """
def sqrt(input, *, out=None):
    return input * torch.rsqrt(input)""",
    },
    "tensordot": {
        "pairs in the other order": """
def tensordot(a, b, dims):
    if dims == 2:
        dims = ([-2, -1], [1, 0])
        b = b.reshape(b.shape[1], b.shape[0], *b.shape[2:])
    return torch.tensordot(a, b, dims)""",
        "one pair of a list": """
def tensordot(a, b, dims):
    if isinstance(dims, int):
        return torch.tensordot(a, b, dims)
    return torch.tensordot(a, b, (dims[0][:1], dims[1][:1]))""",
        "b's dims first": """
def tensordot(a, b, dims):
    product = torch.tensordot(a, b, dims)
    return product.mT.reshape(product.shape) if product.ndim == 2 else product""",
    },
}
PLANTED = [(name, what) for name, mistakes in MISTAKES.items() for what in mistakes]


@pytest.fixture(scope="module")
def verdict(verdict_on):
    """What is said of a candidate for a task."""

    def judge(name, candidate):
        plan = Plan(seed=0, cases=CASES, whole=True, compile=False)
        return verdict_on(f"tritonbench/{name}", candidate, plan).word

    return judge


def test_every_task_has_mistakes():
    assert {f"tritonbench/{name}" for name in MISTAKES} == set(tasks_of("tritonbench"))


@pytest.mark.slow
@pytest.mark.sampled(by=lambda name, what: [name])
@pytest.mark.parametrize(("name", "what"), PLANTED)
def test_a_planted_mistake_is_found(verdict, name, what):
    source = HEAD + MISTAKES[name][what].lstrip()
    assert verdict(name, read_candidate(source, f"{name}.py", task_names=(name,), task=name)) in (
        "fail",
        "runtime_error",
    )


@pytest.mark.slow
@pytest.mark.sampled(by=lambda name: [find(f"tritonbench/{name}").category])
@pytest.mark.parametrize("name", MISTAKES)
def test_what_they_are_planted_in_is_right(verdict, name):
    assert verdict(name, eager_of(find(f"tritonbench/{name}"))) == "pass"
