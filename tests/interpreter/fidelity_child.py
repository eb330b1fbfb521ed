"""Runs the kernels of fidelity_cases.py in the interpreter: `fidelity_child.py OUT.json`."""

import importlib.util
import json
import os
import sys
import tempfile
import textwrap
import warnings
from pathlib import Path

os.environ["TRITON_INTERPRET"] = "1"

import torch
from fidelity_cases import KERNELS

from kerneltruth.runner.interpreter import install, set_dot_precision

install()
install()

HEADER = """
import triton
import triton.language as tl
from triton.language.extra import libdevice
from triton.language.extra.libdevice import tanh as imported_tanh

COUNT = tl.constexpr(3)

@triton.jit
def affine(s, t, u, v):
    return s * u, t * u + v

@triton.jit
def larger(p, q):
    if p > q:
        return p
    return q

@triton.jit
def later(p, q):
    return q

@triton.jit
def earlier(p, q):
    return p

def make():
    CAPTURED = tl.constexpr(3.0)

    @triton.jit
    def closure(x, y, o, n, s, M: tl.constexpr):
        i = tl.arange(0, 8)
        tl.store(o + i, tl.load(x + i) * CAPTURED)

    return closure
"""


def text(index, kernel):
    lines = ["", "@triton.jit", f"def k{index}(x, y, o, n, s, M: tl.constexpr):"]
    body = ["i = tl.arange(0, 8)", "a = tl.load(x + i)", "b = tl.load(y + i)", kernel.body]
    if "r =" in kernel.body:
        body.append("tl.store(o + tl.arange(0, M), tl.reshape(r, (M,)))")
    return "\n".join([*lines, textwrap.indent("\n".join(body), "    ")])


def load(folder):
    path = Path(folder) / "fidelity_kernels.py"
    parts = [text(i, kernel) for i, kernel in enumerate(KERNELS.values())]
    path.write_text(HEADER + "\n".join(parts) + "\n")
    spec = importlib.util.spec_from_file_location("fidelity_kernels", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(module, index, name, kernel):
    dtype = getattr(torch, kernel.dtype)
    x, y = torch.tensor(kernel.a, dtype=dtype), torch.tensor(kernel.b, dtype=dtype)
    out = torch.zeros(kernel.count, dtype=getattr(torch, kernel.out or kernel.dtype))
    function = module.make() if name == "closure" else getattr(module, f"k{index}")
    set_dot_precision("tf32" if name == "dot tf32" else "ieee")
    function[lambda meta: (meta["M"] // meta["M"],)](x, y, out, kernel.n, kernel.s, M=kernel.count)
    return out


def main(path):
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        module = load(folder)
        names = set(vars(module))
        for index, (name, kernel) in enumerate(KERNELS.items()):
            try:
                out = run(module, index, name, kernel)
            except Exception as error:
                found[name] = {"error": type(error).__name__, "message": str(error)}
                continue
            values = out.double() if out.is_floating_point() else out.to(torch.int64)
            found[name] = {"values": values.tolist()}
        found["new globals"] = {"values": sorted(set(vars(module)) - names)}
    path.write_text(json.dumps(found))


if __name__ == "__main__":
    warnings.simplefilter("error")
    warnings.filterwarnings("ignore", "tl.make_block_ptr is deprecated")
    main(Path(sys.argv[1]))
