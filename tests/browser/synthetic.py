"""Runs that look as `run` writes them, made up from a seed, for the page's tests and benchmark.

Task skill, method skill and speed are drawn once, so that the tables show something; nothing here
is a measurement of anything.
"""

from __future__ import annotations

import hashlib
import json
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from synthetic_files import EXPLANATIONS, draw, source_of, write_finding

import kerneltruth

SUITE = {
    "Activation": ("relu", "leaky_relu", "selu", "sigmoid", "tanh", "gelu", "gelu_bf16", "elu"),
    "Convolution": ("conv2d", "conv_transpose2d"),
    "Fusion": tuple(
        f"fused_{a}_{b}"
        for a in ("bmm", "conv2d", "linear", "embedding", "gather", "dropout")
        for b in ("gelu", "relu", "rms_norm", "tanh", "sub", "elu", "masked_fill", "sigmoid")
    ),
    "Index": ("index_select", "masked_select", "permute_copy", "scatter", "expand_where"),
    "LinearAlgebra": ("det", "cholesky", "lu", "qr", "solve", "eig", "ldl_factor", "svd"),
    "Loss": ("binary_cross_entropy", "cross_entropy", "kl_div", "mse_loss", "nll_loss"),
    "Math": ("add", "sub", "mul", "div", "pow", "zeta", "abs", "asin", "cos", "erf", "exp_sqrt"),
    "MatrixMultiply": ("addmm", "matmul", "matmul_bf16", "matmul_fp16", "matrix_vector_dot"),
    "Normalization": ("batch_norm", "layer_norm", "rms_norm", "spectral_norm_eig"),
    "Optimizer": ("Adam", "AdamW", "Lion", "RMSProp", "SGD"),
    "Pooling": ("avg_pool1d", "adaptive_avg_pool2d"),
    "Quantization": ("bmm_w8a8", "linear_w4a16", "matmul_w8a8", "layernorm_w8a8"),
    "Random": ("logspace", "rand"),
    "Reduce": ("sum", "mean", "std", "argmax", "min"),
    "SpatialOps": ("grid_sample", "interpolate"),
}
DTYPES = ("float32", "float16", "bfloat16")
CHECKS = ("kernelbench", "kernelbenchx", "tritonbench", "one-shape")
# What candidates may be called and contain, to be shown as what it is: text.
HOSTILE = (
    "<script>window.pwned = 1</script>",
    "</script><script>window.pwned = 2</script>",
    '<img src=x onerror="window.pwned = 3">',
    "<!--<script>window.pwned = 4",
    "]]>{{ 7*7 }}{% raw %}${7*7}",
    "javascript:window.pwned=5",
    "\u2028\u2029line\u2028separators",
    "\u202egnp.exe\u202c\u200b\U000e0041\x00\x1b[31mred\x07",
    '" onmouseover=window.pwned=6 x="',
    "</textarea></style></title><svg onload=window.pwned=7>",
    "\ud800lone surrogate",
    "'; rm -rf ~; echo '$(id)`id`",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Maker:
    """A way in which candidates were made."""

    method: str
    model: str
    rounds: int = 1
    skill: float = 0.0
    speed: float = 0.0


MAKERS = (
    Maker(method="one_shot", model="small-7b", skill=-1.0, speed=-0.2),
    Maker(method="one_shot", model="large-70b", skill=0.3),
    Maker(method="best_of_n", model="small-7b", skill=-0.9, speed=-0.1),
    Maker(method="best_of_n", model="large-70b", skill=0.4, speed=0.05),
    Maker(method="refine", model="small-7b", rounds=4, skill=-0.6),
    Maker(method="refine", model="large-70b", rounds=4, skill=0.6, speed=0.15),
)


def tasks() -> list[tuple[str, str]]:
    """Pairs of task and category."""
    return [(f"kernelbenchx/{name}", c) for c, names in SUITE.items() for name in names]


def write_run(
    folder: Path,
    *,
    attempts: int,
    seed: int = 0,
    device: str = "cuda:0 (NVIDIA H100)",
    hostile: bool = False,
    makers: Sequence[Maker] = MAKERS,
    timed: bool = True,
) -> Path:
    """Write a run of about this many attempts, repeating the makers' samples."""
    rng = random.Random(f"{seed}/{device}")
    for name in ("findings", "candidates", "inputs"):
        (folder / name).mkdir(parents=True)
    manifest = {
        "arguments": ["run", "0" * 64, "run", "--suite", "kernelbenchx"],
        "seed": seed,
        "suite_hash": "f" * 64,
        "environment": {
            "python": "3.11.7",
            "torch": "2.13.0",
            "triton": "3.7.1",
            "device": "cuda:0",
            "device_name": device,
            "driver": "580.65",
            "cuda": "13.0",
            "machine": "Linux x86_64",
            "isolation": "process",
        },
        "started": "2026-11-21T02:27:20+00:00",
        "ended": "2026-11-21T05:32:04+00:00",
        "version": kerneltruth.__version__,
        "schema": 1,
    }
    (folder / "run.json").write_text(json.dumps(manifest, indent=2))
    with open(folder / "results.jsonl", "w", encoding="ascii") as log:
        for number, about in enumerate(_plan(attempts, makers)):
            line = _line(folder, rng, about, number, hostile=hostile, timed=timed)
            log.write(json.dumps(line) + "\n")
    return folder


def _plan(attempts: int, makers: Sequence[Maker]) -> Iterator[dict[str, Any]]:
    """Labels of attempts, cycle after cycle of samples; rounds of an answer stay together."""
    made = cycle = 0
    while True:
        for task, category in tasks():
            for maker in makers:
                for round_ in range(maker.rounds):
                    if made >= attempts:
                        return
                    made += 1
                    yield {
                        "task": task,
                        "category": category,
                        "maker": maker,
                        "sample": cycle,
                        "round": round_ if maker.rounds > 1 else None,
                    }
        cycle += 1


def _line(
    folder: Path,
    rng: random.Random,
    about: dict[str, Any],
    number: int,
    *,
    hostile: bool,
    timed: bool,
) -> dict[str, Any]:
    maker: Maker = about["maker"]
    task, category, round_ = about["task"], about["category"], about["round"]
    ease = 3.0 * draw("ease", task) - 1.2 + 1.2 * draw("ease", category) - 0.6
    ease += maker.skill + 0.35 * (round_ or 0)
    chance = 1 / (1 + math.exp(-1.6 * ease))
    nasty = HOSTILE[number % len(HOSTILE)] if hostile else ""
    origin = f"{maker.method}/{maker.model}/{task.partition('/')[2]}-{about['sample']}"
    origin += f"-r{round_}.py" if round_ is not None else ".py"
    origin += nasty
    source = source_of(task, f"{maker.model} {maker.method}", about["sample"], round_, nasty)
    sha = hashlib.sha256(source.encode("utf-8", "surrogatepass")).hexdigest()
    kept = source.encode("utf-8", "replace")
    (folder / "candidates" / f"{sha}.py").write_bytes(kept)
    verdict, stages = _outcome(rng, chance, nasty)
    passed = verdict["verdict"] == "pass"
    cases = 16 if passed else rng.randint(1, 16)
    case = _case(task, rng)
    failure = None
    if verdict["verdict"] in ("fail", "runtime_error", "crash", "timeout"):
        failure = {"case": case, "verdict": verdict, "stats": None}
    stages["perf"] = (
        _perf(task, maker, round_ or 0, rng, nasty)
        if passed and timed
        else {"outcome": "not_run", "detail": f"exe: {verdict['verdict']}"}
    )
    line: dict[str, Any] = {
        "key": f"{origin}@{sha[:12]}",
        "name": origin,
        "task": task,
        "category": category,
        "origin": origin,
        "sha256": sha,
        "labels": {
            "method": maker.method + (nasty if number % 50 == 7 else ""),
            "model": maker.model,
            "sample": about["sample"],
            "round": round_,
        },
        "attempt": {
            "task": task,
            "candidate": {
                "sha256": sha,
                "path": f"{task.partition('/')[2]}.py",
                "language": "triton",
                "entry": task.partition("/")[2],
            },
            "verdict": verdict,
            "cases": cases,
            "failed": 0 if passed else 1,
            "dtypes": _dtypes(rng, cases, passed),
            "failure": failure,
            "explanation": "",
            "contract": "core",
            "profile": _profile(passed, number),
            "torch_only": number % 13 == 5,
        },
        "finding": None,
        "tags": [],
        "stages": stages,
    }
    if failure is not None:
        line["finding"] = write_finding(folder, rng, line, failure, nasty, number)
        line["tags"] = [t for k, tags, _ in EXPLANATIONS if k == verdict.get("kind") for t in tags]
    if draw("check", origin) < 0.6 and verdict["verdict"] in ("pass", "fail"):
        line["peer_checks"] = {
            check: {"verdict": "pass" if passed or rng.random() < 0.45 else "fail"}
            for check in CHECKS
        }
    return line


def _profile(passed: bool, number: int) -> dict[str, Any]:
    ends = {"published": "held", "shapes": "held" if passed else "broken"}
    ends["layouts"] = ("held", "broken", "refused", "not_tried")[number % 4]
    promised = {"promised": True, "decisive": True}
    return {
        name: {"status": status, "cases": 3} | (promised if name != "layouts" else {})
        for name, status in ends.items()
    }


def _outcome(
    rng: random.Random, chance: float, nasty: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    said = rng.random()
    passed = {"call": {"outcome": "pass"}}
    if said < chance:
        return {"verdict": "pass"}, {**passed, "exe": {"outcome": "pass", "cases": 16, "failed": 0}}
    kind = rng.random()
    if kind < 0.55:
        what = EXPLANATIONS[rng.randrange(len(EXPLANATIONS))][0]
        detail = f"303 of 771 elements are wrong; the worst error is 535 times the bound {nasty}"
        verdict = {"verdict": "fail", "kind": what, "detail": detail, "output": "out"}
        exe = {"outcome": "fail", "cases": 3, "failed": 1, "kind": what, "detail": detail}
        return verdict, {**passed, "exe": exe}
    words = (
        {"verdict": "compile_error", "detail": f"SyntaxError: invalid syntax {nasty}"},
        {"verdict": "compile_error", "detail": "CompilationError: at 12:8: name 'tl' is odd"},
        {
            "verdict": "runtime_error",
            "error": "TypeError",
            "detail": f"missing an argument {nasty}",
        },
        {"verdict": "crash", "signal": 11, "detail": "Segmentation fault"},
        {"verdict": "timeout", "seconds": 20.0},
        {"verdict": "unsupported_here", "reason": "needs 2 GPUs"},
    )
    verdict = words[min(int(rng.random() * 7), 5)]
    call = {"outcome": verdict["verdict"], "detail": verdict.get("detail", "")}
    skipped = {"outcome": "not_run", "detail": f"call: {verdict['verdict']}"}
    return verdict, {"call": call, "exe": skipped}


def _case(task: str, rng: random.Random) -> dict[str, Any]:
    return {
        "task": task,
        "dims": [["B", 3], ["N", 257]],
        "attributes": [["dim", -1]],
        "dtype": rng.choice(DTYPES),
        "layout": rng.choice(["contiguous", "contiguous", "transposed"]),
        "recipe": rng.choice(["uniform", "ties", "specials"]),
        "seed": rng.randrange(2**63),
        "absent": [],
        "literals": [],
        "strategy": "default",
        "domain": "core",
    }


def _dtypes(rng: random.Random, cases: int, passed: bool) -> dict[str, dict[str, int]]:
    seen = DTYPES if passed else DTYPES[: rng.randint(1, 3)]
    return {
        d: {
            "cases": max(1, cases // len(seen)),
            "returned": max(1, cases // len(seen)),
            "failed": int(not passed and d == seen[-1]),
        }
        for d in seen
    }


def _perf(task: str, maker: Maker, round_: int, rng: random.Random, nasty: str) -> dict[str, Any]:
    centre = 1.1 * draw("fast", task) - 0.45 + maker.speed - 0.03 * round_
    shapes = []
    for size in (1024, 4096, 16384):
        eager = 4.0 + size / 300
        ratio = math.exp(centre + rng.gauss(0, 0.25))
        width = 0.01 + 0.03 * rng.random()
        compiled = ratio * 0.8
        shapes.append(
            {
                "case": {"dtype": rng.choice(DTYPES), "dims": [["B", 64], ["N", size]]},
                "summary": f"B=64 N={size} float32 {nasty}".strip(),
                "candidate_us": eager / ratio,
                "candidate_low": eager / ratio * (1 - width),
                "candidate_high": eager / ratio * (1 + width),
                "method": "graph",
                "regime": "cold",
                "blocks": 12,
                "baselines": {
                    "eager": _ratio(eager, ratio, width),
                    "compile": _ratio(eager * 0.8, compiled, width),
                },
                "efficiency": min(0.97, 0.2 + 0.5 * rng.random()),
                "floor_us": eager / ratio * 0.4,
                "bound_by": rng.choice(["memory", "memory", "compute", "launch"]),
                "flags": [],
            }
        )
    return {"outcome": "timed", "device": "H100", "shapes": shapes, "noise_floor": 0.02}


def _ratio(us: float, ratio: float, width: float) -> dict[str, Any]:
    low, high = ratio * (1 - width), ratio * (1 + width)
    outcome = "faster" if low > 1.02 else "slower" if high < 1 / 1.02 else "tie"
    return {"us": us, "ratio": ratio, "low": low, "high": high, "outcome": outcome}
