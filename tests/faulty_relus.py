"""Kernels for one task, each wrong for one reason: what the verdict must say of it anywhere."""

_RELU = """
import time, torch, triton
import triton.language as tl

@triton.jit
def k(x, y, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + {read}, mask=i < n)
    tl.store(y + i, {value}, mask={mask})

def relu(x):
    {prepare}
    y = {allocate}
    if x.numel():
        k[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), B=64)
    {after}
    return y
"""
_RIGHT = "tl.where(v != v, v, tl.maximum(v, 0.0))"
_BEYOND = "tl.load(x + n + i, mask=i < n).to(tl.float32)"
# The first element changes from call to call.
_RESTLESS = "y.view(-1)[:1] = time.perf_counter() % 1 * 100 + 10"
_OF_ITS_OWN = "torch.empty(x.shape, dtype=x.dtype, device=x.device)"


def relu(**parts):
    usual = {
        "read": "i",
        "value": _RIGHT,
        "mask": "i < n",
        "prepare": "x = x.contiguous()",
        "allocate": "torch.empty_like(x)",
        "after": "pass",
    }
    return _RELU.format(**{**usual, **parts})


FAULTY = {
    "writes beyond zeros": (
        relu(mask="i < n + 3", allocate="torch.zeros_like(x)"),
        "out_of_bounds",
    ),
    "writes beyond a clone": (relu(mask="i < n + 3", allocate="x.clone()"), "out_of_bounds"),
    "writes beyond a filled one": (
        relu(mask="i < n + 3", allocate="torch.full_like(x, 1)"),
        "out_of_bounds",
    ),
    # NaN and huge numbers beyond the input both give NaN.
    "reads beyond an input, NaN either way": (
        relu(value=f"tl.where(tl.abs({_BEYOND}) < 4, {_RIGHT} + {_BEYOND}, float('nan'))"),
        "out_of_bounds",
    ),
    "reads beyond what it allocated, NaN either way": (
        relu(
            prepare="x = x.contiguous() + 0",
            value=f"tl.where(tl.abs({_BEYOND}) < 4, {_RIGHT} + {_BEYOND}, float('nan'))",
            allocate="torch.zeros_like(x); x = x.clone()",
        ),
        "out_of_bounds",
    ),
    "few restless elements, many unwritten": (
        relu(mask="(i < n) & (i % 8 == 0)", after=_RESTLESS),
        "uninitialized",
    ),
    "wrong, and one restless element": (relu(value="v * 3 + 1", after=_RESTLESS), "value"),
    "ignores strides": (relu(prepare="pass", allocate=_OF_ITS_OWN), "assumes_contiguous"),
    "a tuple that computes late": (
        "import torch\n"
        "class Late(tuple):\n"
        "    def __iter__(self):\n"
        "        return iter((torch.relu(self[0]),))\n"
        "def relu(x):\n"
        "    return Late((x,))\n",
        "type",
    ),
}

RIGHT = {
    "zeros": relu(allocate="torch.zeros_like(x)"),
    "a clone": relu(allocate="x.clone()"),
    "full": relu(allocate="torch.full(x.shape, 3.0, dtype=x.dtype, device=x.device)"),
    "a copy to a dtype": relu(allocate="x.to(torch.float64, copy=True).to(x.dtype)"),
    "a named tuple": relu().replace("return y", "return Result(y)")
    + "\nimport typing\nclass Result(typing.NamedTuple):\n    y: torch.Tensor\n",
}
