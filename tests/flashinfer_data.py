"""A small FlashInfer-Bench data set of our own writing."""

import json

RMS = """
import torch

@torch.no_grad()
def run(x, scale):
    assert x.shape[1] == 96
    wide = x.to(torch.float32)
    power = wide.square().mean(-1, keepdim=True)
    return (wide / torch.sqrt(power + 1e-5) * scale.to(torch.float32)).to(x.dtype)
"""
SUMS = """
import torch

def run(x, starts, factor):
    parts = [x[int(a):int(b)].sum(0) for a, b in zip(starts[:-1], starts[1:])]
    return {"sums": torch.stack(parts) * factor}
"""
TRITON_WRITES = """
import triton
import triton.language as tl

@triton.jit
def rms_kernel(x, scale, y, width, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    here = at < width
    v = tl.load(x + row * width + at, mask=here, other=0.0).to(tl.float32)
    s = tl.load(scale + at, mask=here, other=0.0).to(tl.float32)
    out = v / tl.sqrt(tl.sum(v * v, 0) / width + 1e-5) * s
    tl.store(y + row * width + at, out.to(y.dtype.element_ty), mask=here)


def run(x, scale, y):
    rms_kernel[(x.shape[0],)](x, scale, y, x.shape[1], BLOCK=128)
"""


def var():
    return {"type": "var"}


def const(value):
    return {"type": "const", "value": value}


def tensor(*shape, dtype="float32"):
    return {"shape": list(shape), "dtype": dtype}


def number(dtype="float32"):
    return {"shape": None, "dtype": dtype}


def rms(**changes):
    half = {"dtype": "bfloat16"}
    return {
        "name": "rms_w96",
        "op_type": "rmsnorm",
        "axes": {"rows": var(), "width": const(96)},
        "inputs": {"x": tensor("rows", "width", **half), "scale": tensor("width", **half)},
        "outputs": {"y": tensor("rows", "width", **half)},
        "reference": RMS,
    } | changes


def gemm(**changes):
    half = {"dtype": "float16"}
    return {
        "name": "gemm_n48_k80",
        "op_type": "gemm",
        "axes": {"M": var(), "N": const(48), "K": const(80)},
        "inputs": {"a": tensor("M", "K", **half), "b": tensor("N", "K", **half)},
        "outputs": {"c": tensor("M", "N", **half)},
        "reference": "def run(a, b):\n    return a @ b.T\n",
    } | changes


def sums(**changes):
    return {
        "name": "sums_d16",
        "op_type": "ragged",
        "axes": {"parts": var(), "ends": var(), "total": var(), "D": const(16)},
        "constraints": ["ends == parts + 1", "total == starts[-1].item()"],
        "inputs": {
            "x": tensor("total", "D"),
            "starts": tensor("ends", dtype="int32"),
            "factor": number(),
        },
        "outputs": {"sums": tensor("parts", "D")},
        "reference": SUMS,
    } | changes


def workload(starts, path="blob/0.safetensors"):
    return {
        "uuid": "u",
        "axes": {"parts": len(starts) - 1, "ends": len(starts), "total": starts[-1]},
        "inputs": {
            "x": {"type": "random"},
            "starts": {"type": "safetensors", "path": path, "tensor_key": "starts"},
            "factor": {"type": "scalar", "value": 0.5},
        },
    }


def solution(name, definition, *, writes=False, author="ann", entry="main.py::run", **more):
    sources = more.pop("sources", {"main.py": "def run(*args): pass\n"})
    return {
        "name": name,
        "definition": definition,
        "author": author,
        "spec": {
            "language": "python",
            "entry_point": entry,
            "target_hardware": ["any"],
            "destination_passing_style": writes,
            **more,
        },
        "sources": [{"path": p, "content": c} for p, c in sources.items()],
    }


def trace(definition, solution_name, status, latency=None):
    timed = {"latency_ms": latency, "reference_latency_ms": 2.0, "speedup_factor": 2.0}
    return {
        "definition": definition,
        "solution": solution_name,
        "workload": {"uuid": "u", "axes": {}, "inputs": {}},
        "evaluation": {"status": status, "performance": timed if latency else None},
    }


def put(root, place, *objects):
    """Write objects to a file: one as JSON, several, or those of a .jsonl, as lines."""
    path = root / place
    path.parent.mkdir(parents=True, exist_ok=True)
    texts = [o if isinstance(o, str) else json.dumps(o) for o in objects]
    path.write_text("\n".join(texts))


def store_starts(root, starts, path="blob/0.safetensors"):
    import torch
    from safetensors.torch import save_file

    (root / path).parent.mkdir(parents=True, exist_ok=True)
    save_file({"starts": torch.tensor(starts, dtype=torch.int32)}, root / path)
