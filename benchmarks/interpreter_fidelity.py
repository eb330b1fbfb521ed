"""Compares every operation of the interpreter with the GPU, bit by bit, on random operands.

    python benchmarks/interpreter_fidelity.py [--out docs/results/interpreter.md] [--shards 8]

The same kernels run twice, in processes of their own because Triton decides once per process
whether to interpret: interpreted on the CPU, and compiled on the GPU where there is one. The
results are exchanged as .npz files. An operation that fails is a row of the table, not the end.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from interpreter_operations import OPERATIONS, Operation, source  # noqa: E402

N = 256
SETS = ("ordinary", "special")
FLOATS = {"fp16": 10, "bf16": 7, "fp32": 23, "fp64": 52}
TORCH = {
    "fp16": "float16",
    "bf16": "bfloat16",
    "fp32": "float32",
    "fp64": "float64",
    "fp8e4nv": "float8_e4m3fn",
    "fp8e5": "float8_e5m2",
    "int1": "bool",
}
BITS = {"fp16": 16, "bf16": 16, "fp32": 32, "fp64": 64, "fp8e4nv": 8, "fp8e5": 8, "int1": 8}


def bits_of(dtype: str) -> int:
    return BITS.get(dtype) or int(dtype.lstrip("uint"))


def operand(dtype: str, kind: str, index: int) -> np.ndarray[Any, Any]:
    """Raw bits of one operand; the same on every machine."""
    rng = np.random.Generator(np.random.PCG64([index, len(kind), *dtype.encode()]))
    width = bits_of(dtype)
    if dtype == "int1":
        return rng.integers(0, 2, N, dtype=np.uint8)
    if dtype.startswith("fp8"):
        bits = rng.integers(0, 256, N, dtype=np.uint8)
        return bits if kind == "special" else np.where((bits & 0x7F) >= 0x78, bits & 0x87, bits)
    if dtype not in FLOATS:
        low, high = (-100, 100) if dtype.startswith("int") else (0, 100)
        if kind == "ordinary":
            whole = rng.integers(low, high, N)
            if index == 1:
                whole = np.where(whole == 0, 7, whole)
            return whole.astype(f"int{width}").view(f"uint{width}")
        return rng.integers(0, 2**width - 1, N, dtype=f"uint{width}", endpoint=True)
    numbers = rng.standard_normal(N) * np.exp2(rng.integers(-3, 4, N))
    if kind == "special":
        numbers *= np.exp2(rng.integers(-40, 40, N).astype(np.float64))
        odd = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, 65504.0, 1e-40, 3e38])
        spots = rng.permutation(N)[: 4 * len(odd)]
        numbers[spots] = np.tile(odd, 4)
    with np.errstate(all="ignore"):
        if dtype == "bf16":
            single = numbers.astype(np.float32).view(np.uint32)
            return (single >> 16).astype(np.uint16)
        return numbers.astype(f"float{width}").view(f"uint{width}")


def tensor(bits: np.ndarray[Any, Any], dtype: str, device: str) -> Any:
    import torch

    raw = torch.from_numpy(bits.view(np.int8 if bits.itemsize == 1 else f"int{bits.itemsize * 8}"))
    return raw.clone().view(getattr(torch, TORCH.get(dtype, dtype))).to(device)


def load_kernels(operations: list[Operation], folder: Path) -> Any:
    path = folder / "kernels.py"
    path.write_text(source(operations))
    spec = importlib.util.spec_from_file_location("interpreter_fidelity_kernels", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run_one(op: Operation, kernel: Any, kind: str, device: str) -> np.ndarray[Any, Any]:
    import torch

    operands = [tensor(operand(op.dtype, kind, i), op.dtype, device) for i in range(3)]
    count = max(op.count, 1)
    start = np.zeros(count, dtype=f"uint{bits_of(op.out)}")
    if op.in_place:
        start = operand(op.out, kind, 3)[:count].copy()
    out = tensor(start, op.out, device)
    kernel[(1,)](*operands, out, N=N, M=op.count)
    if device == "cuda":
        torch.cuda.synchronize()
    raw = out.cpu().view(getattr(torch, f"int{bits_of(op.out)}")).numpy()
    return raw.view(f"uint{bits_of(op.out)}")


def child(mode: str, shard: int, shards: int, out: Path) -> None:
    """One half, or a part of it: results and errors by operation and set."""
    if mode == "interpreter":
        os.environ["TRITON_INTERPRET"] = "1"
        sys.path.insert(0, str(HERE.parent / "src"))
        from kerneltruth.runner.interpreter import install, set_dot_precision

        install()
        set_dot_precision("tf32")
    device = "cpu" if mode == "interpreter" else "cuda"
    operations = [op for i, op in enumerate(OPERATIONS) if i % shards == shard]
    results: dict[str, Any] = {}
    errors: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        kernels = load_kernels(operations, Path(folder))
        for op in operations:
            try:
                for kind in SETS:
                    results[f"{op.key}|{kind}"] = run_one(
                        op, getattr(kernels, op.key), kind, device
                    )
            except BaseException as error:
                if isinstance(error, KeyboardInterrupt):
                    raise
                errors[op.key] = _first_cause(error)
    np.savez(out, **results)
    out.with_suffix(".json").write_text(json.dumps(errors))


def _first_cause(error: BaseException) -> str:
    while error.__cause__ is not None:
        error = error.__cause__
    lines = [line for line in str(error).splitlines() if line.strip()]
    last = lines[-1].strip() if lines else ""
    if os.environ.get("FIDELITY_TRACEBACK"):
        traceback.print_exception(error)
    return f"{type(error).__name__}: {last}"[:140].replace("|", "/")


@dataclass
class Half:
    """What one side computed: bits by operation and set, and errors by operation."""

    results: dict[str, Any]
    errors: dict[str, str]


def start(mode: str, shards: int, folder: Path) -> list[tuple[subprocess.Popen[bytes], Path]]:
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONWARNINGS": "ignore",
    }
    environment.pop("TRITON_INTERPRET", None)
    paths = [folder / f"{mode}-{i}.npz" for i in range(shards)]
    command = [sys.executable, str(Path(__file__).resolve()), "--child", mode]
    ends = [
        ["--shard", str(i), "--shards", str(shards), "--out", str(paths[i])] for i in range(shards)
    ]
    return [
        (subprocess.Popen([*command, *end], env=environment), path)
        for end, path in zip(ends, paths, strict=True)
    ]


def collect(mode: str, started: list[tuple[subprocess.Popen[bytes], Path]]) -> Half:
    half = Half({}, {})
    for process, path in started:
        code = process.wait()
        if code or not path.exists():
            print(f"{mode}: a process ended with {code}; its rows are missing", file=sys.stderr)
            continue
        with np.load(path) as stored:
            half.results.update({k: stored[k] for k in stored.files})
        half.errors.update(json.loads(path.with_suffix(".json").read_text()))
    return half


def numbers(bits: np.ndarray[Any, Any], dtype: str) -> np.ndarray[Any, Any]:
    if dtype == "bf16":
        return (bits.astype(np.uint32) << 16).view(np.float32)
    return bits.view(f"float{bits.itemsize * 8}") if dtype in FLOATS else bits


def distance(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any], dtype: str) -> tuple[int, int]:
    """Elements that differ, and the most units in the last place (-1: not comparable)."""
    differ = a != b
    if dtype in FLOATS:
        with np.errstate(all="ignore"):
            x, y = numbers(a, dtype), numbers(b, dtype)
            differ &= ~(np.isnan(x) & np.isnan(y)) & ~((x == 0) & (y == 0))
            if not differ.any():
                return 0, 0
            if (~np.isfinite(x[differ]) | ~np.isfinite(y[differ])).any():
                return int(differ.sum()), -1
        sign = 1 << (a.itemsize * 8 - 1)
        ints = [
            [-(int(v) & (sign - 1)) if int(v) & sign else int(v) for v in bits[differ]]
            for bits in (a, b)
        ]
        return int(differ.sum()), max(abs(p - q) for p, q in zip(*ints, strict=True))
    return int(differ.sum()), -1 if differ.any() else 0


def verdict(op: Operation, kind: str, ours: Half, theirs: Half) -> str:
    key = f"{op.key}|{kind}"
    differing, ulp = distance(ours.results[key], theirs.results[key], op.out)
    total = ours.results[key].size
    if not differing:
        return "bit for bit"
    if ulp < 0:
        return f"{differing} of {total} differ"
    return f"{ulp} ulp ({differing} of {total})"


def rows(ours: Half, theirs: Half | None) -> list[tuple[str, str, str, str]]:
    table = []
    for op in OPERATIONS:
        if op.key in ours.errors:
            gpu = f"; GPU: {theirs.errors[op.key]}" if theirs and op.key in theirs.errors else ""
            note = f"not interpreted: {ours.errors[op.key]}{gpu}"
            table.append((op.name, op.dtype, note, ""))
        elif f"{op.key}|ordinary" not in ours.results:
            table.append((op.name, op.dtype, "no result", ""))
        elif theirs is None:
            table.append((op.name, op.dtype, "runs", "runs"))
        elif op.key in theirs.errors:
            table.append((op.name, op.dtype, f"not on this GPU: {theirs.errors[op.key]}", ""))
        elif f"{op.key}|ordinary" not in theirs.results:
            table.append((op.name, op.dtype, "no GPU result", ""))
        else:
            ordinary, special = (verdict(op, kind, ours, theirs) for kind in SETS)
            table.append((op.name, op.dtype, ordinary, special))
    return table


def summary(table: list[tuple[str, str, str, str]]) -> str:
    counts: dict[str, int] = {}
    for _, _, ordinary, _ in table:
        kind = "ulp" if " ulp " in ordinary else ordinary.split(":")[0]
        kind = "differ" if kind.endswith("differ") else kind
        counts[kind] = counts.get(kind, 0) + 1
    return ", ".join(f"{n} {kind}" for kind, n in sorted(counts.items(), key=lambda c: -c[1]))


def document(table: list[tuple[str, str, str, str]], machine: str) -> str:
    lines = [
        "# The interpreter against the GPU, operation by operation",
        "",
        f"Machine: {machine}. Written by `benchmarks/interpreter_fidelity.py`.",
        "",
        f"Rows by their ordinary operands: {summary(table)}.",
        "",
        "`ordinary` operands are normal numbers of moderate size (integers from -100 to 100);",
        "`special` ones cover the whole range and hold NaN, infinities, zeros and subnormals.",
        "NaN equals NaN and -0 equals 0. Where elements differ in being finite, or are integers,",
        "only their number is given.",
        "",
        "| operation | dtype | ordinary | special |",
        "|---|---|---|---|",
        *(f"| `{name}` | {dtype} | {a} | {b} |" for name, dtype, a, b in table),
    ]
    return "\n".join(lines) + "\n"


def machine_name(gpu: bool) -> str:
    from importlib.metadata import version

    parts = [f"Triton {version('triton')}", f"torch {version('torch')}"]
    parts += [f"Python {platform.python_version()}"]
    if gpu:
        import torch

        parts.insert(0, torch.cuda.get_device_name(0))
    return ", ".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--child", choices=("interpreter", "compiled"))
    parser.add_argument("--shard", type=int, default=0)
    parser.add_argument("--shards", type=int, default=min(12, os.cpu_count() or 1))
    parser.add_argument("--out", type=Path, default=HERE / "results" / "interpreter_fidelity.md")
    options = parser.parse_args()
    if options.child:
        child(options.child, options.shard, options.shards, options.out)
        return
    import torch

    began = time.perf_counter()
    gpu = torch.cuda.is_available()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        compiled = start("compiled", options.shards, folder) if gpu else []
        interpreted = start("interpreter", max(2, options.shards // 3), folder)
        ours = collect("interpreter", interpreted)
        theirs = collect("compiled", compiled) if gpu else None
    table = rows(ours, theirs)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(document(table, machine_name(gpu)))
    print(summary(table))
    print(f"{len(table)} rows in {options.out}, {time.perf_counter() - began:.1f} s")


if __name__ == "__main__":
    main()
