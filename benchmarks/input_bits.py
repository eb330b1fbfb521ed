"""Print digests of a fixed list of draws, to compare machines, devices and torch versions.

Run it on two machines and compare the output, or pass the JSON of one to the other:

    python benchmarks/input_bits.py > here.json
    python benchmarks/input_bits.py --against here.json

The digests must be equal on every device, processor, Python, NumPy and torch version. The exit
code is 1 if two devices of this machine, or this machine and the file, differ in any of them.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
import sys
from pathlib import Path

import numpy
import torch

from kerneltruth.cases.layouts import LAYOUTS, place
from kerneltruth.cases.philox import stream
from kerneltruth.cases.recipes import RECIPES
from kerneltruth.cases.values import draw
from kerneltruth.tasks.spec import TensorSpec

DTYPES = (
    "float64",
    "float32",
    "float16",
    "bfloat16",
    "float8_e4m3fn",
    "float8_e5m2",
    "int64",
    "int32",
    "int8",
    "bool",
)
KINDS = ("positive", "probability", "unit", "index", "mask", "bool", "int8", "int32", "int64")
# Larger than a vector register's worth of every dtype, with a tail; several blocks of counters.
SHAPES = ((), (7,), (3, 257), (5, 9001))


def sha(tensor: torch.Tensor) -> str:
    flat = tensor.cpu().reshape(-1).clone(memory_format=torch.contiguous_format)
    return hashlib.sha256(flat.view(torch.uint8).numpy().tobytes()).hexdigest()


def draws(device: str) -> dict[str, str]:
    found = {
        f"words {n}": sha(stream(n, "words", device=device).words(n)) for n in (1, 4, 1001, 100_003)
    }
    found["normal"] = sha(stream(1, "normal", device=device).normal(50_001))
    for high in (10, 2**31, 2**32, 2**40, 2**63):
        found[f"integers {high}"] = sha(stream(high, device=device).integers(5003, -high, high))
    for recipe in RECIPES:
        for shape in SHAPES:
            for dtype in DTYPES:
                spec = TensorSpec(name="x", dims=())
                found[f"{recipe} {shape} {dtype}"] = one(spec, shape, dtype, recipe, device)
            for kind in KINDS:
                extent = "N" if kind == "index" else None
                spec = TensorSpec(name="x", dims=(), kind=kind, extent=extent)
                found[f"{recipe} {shape} {kind}"] = one(spec, shape, "bfloat16", recipe, device)
    return found


def one(spec: TensorSpec, shape: tuple[int, ...], dtype: str, recipe: str, device: str) -> str:
    rng = stream(2**64 - 1, "values", "x", device=device)
    return sha(draw(spec, shape, dtype=dtype, recipe=recipe, rng=rng, extent=1000))


def buffers() -> dict[str, str]:
    values = stream(1, "place").uniform(35).reshape(5, 7)
    return {
        f"{layout} {dtype}": hashlib.sha256(
            place(values.to(getattr(torch, dtype)), layout, seed=9).buffer
        ).hexdigest()
        for layout in LAYOUTS
        for dtype in ("float64", "float32", "float16", "bfloat16", "int64", "int8", "bool")
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--against", type=Path, help="output of another machine")
    options = parser.parse_args()
    devices = ["cpu", *(f"cuda:{i}" for i in range(min(torch.cuda.device_count(), 1)))]
    by_device = {device: draws(device) for device in devices}
    digests = {**by_device["cpu"], **buffers()}
    differing = {
        device: [name for name, digest in found.items() if digest != digests[name]]
        for device, found in by_device.items()
    }
    if options.against:
        theirs = json.loads(options.against.read_text())["digests"]
        names = {*theirs, *digests}
        differing["file"] = sorted(n for n in names if theirs.get(n) != digests.get(n))
    summary = {
        "machine": platform.machine(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": numpy.__version__,
        "devices": devices,
        "count": len(digests),
        "all": hashlib.sha256(json.dumps(digests, sort_keys=True).encode()).hexdigest(),
        "differing": differing,
        "digests": digests,
    }
    print(json.dumps(summary, indent=1))
    return int(any(differing.values()))


if __name__ == "__main__":
    sys.exit(main())
