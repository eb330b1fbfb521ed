"""A small corpus in gpuemu's form: a NumPy control, a Triton control, and a bug of each."""

import json

REFKIT = """
import base64, json, sys
import numpy as np


def read_inputs():
    given = json.load(sys.stdin)
    return {n: decoded(t) for n, t in given["inputs"].items()}, given.get("kwargs", {})


def decoded(t):
    return np.frombuffer(base64.b64decode(t["data"]), t["dtype"]).reshape(t["shape"])


def emit(array):
    data = base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()
    made = {"shape": list(array.shape), "dtype": str(array.dtype), "data": data}
    sys.stdout.write(json.dumps(made))
"""
REFERENCE = '''"""Rows without their mean."""
import numpy as np
from _refkit import emit, read_inputs

if __name__ == "__main__":
    x = read_inputs()[0]["input"]
    wide = x.astype(np.float64)
    emit((wide - wide.mean(axis=-1, keepdims=True)).astype(x.dtype))
'''
NUMPY = """
import numpy as np


def run(inputs):
    x = inputs["input"]
    wide = x.astype(np.float32)
    return (wide - wide.mean(axis=-1, keepdims=True)).astype(x.dtype)
"""
TRITON = """
import numpy as np
import torch
import triton
import triton.language as tl

THERE = torch.cuda.is_available()

if THERE:

    @triton.jit
    def centered(out, x, n, BLOCK: tl.constexpr):
        at = tl.arange(0, BLOCK)
        here = at < n
        v = tl.load(x + tl.program_id(0) * n + at, mask=here, other=0.0).to(tl.float32)
        y = v - tl.sum(v, 0) / n
        tl.store(out + tl.program_id(0) * n + at, y.to(out.dtype.element_ty), mask=here)


def run(inputs):
    if not THERE:
        raise RuntimeError("needs a GPU")
    x = inputs["input"]
    given = torch.from_numpy(np.ascontiguousarray(x)).to(device="cuda")
    rows, n = x.reshape(-1, x.shape[-1]).shape
    made = torch.empty_like(given)
    centered[(rows,)](made, given, n, BLOCK=triton.next_power_of_2(n))
    return made.cpu().numpy()
"""
DTYPES = ["float32", "float16"]


def meta(name, reference, **changed):
    dims = [{"name": "B", "candidates": [1, 4]}, {"name": "H", "candidates": [1, 3, 64, 65]}]
    tensor = {"dims": ["B", "H"]}
    return {
        "name": name,
        "source": "human",
        "benchmark_verdict": "pass",
        "input_names": ["input"],
        "reference": f"{reference}/ref_fp64.py",
        "kernel": f"{name}/kernel.py",
        "dtypes": DTYPES,
        "tolerances": dict.fromkeys(DTYPES, 0.01),
        "op_schema": {
            "name": "reduce_last",
            "dims": dims,
            "inputs": [{"name": "input", **tensor}],
            "output": {"name": "out", **tensor},
        },
        **changed,
    }


def put_kernel(data, name, source, reference="center", **changed):
    folder = data / name
    folder.mkdir()
    (folder / "meta.json").write_text(json.dumps(meta(name, reference, **changed)))
    (folder / "kernel.py").write_text(source)
    return folder


def make_corpus(root):
    data = root / "gpuemu_corpus" / "data"
    data.mkdir(parents=True)
    (data / "_refkit.py").write_text(REFKIT)
    put_kernel(data, "center", NUMPY)
    (data / "center" / "ref_fp64.py").write_text(REFERENCE)
    put_kernel(data, "center_triton", TRITON)
    # The rest is right where the row's length is a power of two.
    put_kernel(data, "center_triton_buggy", TRITON.replace("/ n\n", "/ BLOCK\n"))
    put_kernel(data, "center_llm_buggy", NUMPY.replace("keepdims=True)", "keepdims=True) * 2"))
    return root
