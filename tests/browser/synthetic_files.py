"""What lies beside the results of a made-up run: findings and sources."""

from __future__ import annotations

import hashlib
import json
import random
from pathlib import Path
from typing import Any

import kerneltruth

CORPUS = Path(kerneltruth.__file__).parent / "corpus" / "controls"
WORST = "At [1, 250] (input=9.905) expected 0.0828, got 0.0827."
EXPLANATIONS = (
    ("value", ("last_tile",), "Only in the last partial tile of size 64, columns 192 to 256."),
    ("value", ("gain",), "Each wrong row is off by its own factor, 0.9989 to 0.9992."),
    ("nan", ("input_inf",), "NaN where a finite value is expected, only where x is infinite."),
    ("uninitialized", ("uninitialized",), "It leaves part of its output unwritten."),
    ("out_of_bounds", ("reads_out_of_bounds",), "It reads beyond the elements of an input."),
    ("dtype", ("dtype",), "The output is float32; expected bfloat16."),
)


def draw(*parts: object) -> float:
    """A number in [0, 1) that belongs to a name."""
    text = "/".join(map(str, parts)).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.sha256(text).digest()[:6], "big") / 2**48


def write_finding(
    folder: Path,
    rng: random.Random,
    line: dict[str, Any],
    failure: dict[str, Any],
    nasty: str,
    number: int,
) -> str:
    case = failure["case"]
    name = f"{line['task'].replace('/', '-')}-{line['key'][-12:]}"
    kind = failure["verdict"].get("kind")
    explained = next((t for t in EXPLANATIONS if t[0] == kind), EXPLANATIONS[0])
    minimal = {**case, "dims": [["B", 1], ["N", 3]], "layout": "contiguous", "recipe": "zeros"}
    if rng.random() < 0.3:
        minimal["literals"] = [["input", [1.5, "NaN", -0.0]]]
    wrong = failure["verdict"]["verdict"] == "fail"
    document = {
        "id": name,
        "task": line["task"],
        "candidate": line["attempt"]["candidate"],
        "case": case,
        "verdict": failure["verdict"],
        "stats": {
            "count": 771,
            "num_exceeding": 303,
            "max_abs": 8.7e-05,
            "mean_abs": 3.7e-06,
            "p50_abs": 4.6e-09,
            "p90_abs": 1.1e-05,
            "p99_abs": 5.6e-05,
            "max_rel": 0.00105,
            "mean_rel": 0.00095,
            "max_ulp": 17648.0,
            "mean_ulp": 11585.9,
            "worst_index": [1, 250],
            "max_bound_ratio": 534.88,
        }
        if wrong
        else None,
        "digests": {"inputs": {"input": "a" * 64}, "reference": "b" * 64, "output": None},
        "minimal": minimal,
        "explanation": f"{explained[2] if wrong else 'Ends early.'} {WORST}{nasty}",
        "environment": {"device": "cuda:0", "device_name": "NVIDIA H100", "torch": "2.13.0"},
        "config": 0,
        "poison_seed": 0,
        "bounds": "spread",
        "tf32": True,
        "error_map": _map(rng) if wrong and rng.random() < 0.8 else None,
        "schema": 1,
    }
    (folder / "findings" / f"{name}.json").write_text(json.dumps(document, indent=2))
    if number % 5 == 0:
        script = folder / "findings" / f"{name}.py"
        script.write_text(f'"""Shows {name}."""\n')
    return f"{name}.json"


def _map(rng: random.Random) -> dict[str, Any]:
    form = rng.randrange(3)
    if form == 0:
        lines = ["." * 48 + "#" * 16] * 3
    elif form == 1:
        lines = ["".join(rng.choice("....1248#") for _ in range(64)) for _ in range(16)]
    else:
        lines = [("#" if i % 8 == 7 else ".") * 64 for i in range(32)]
    return {"output": "out", "shape": [3 if form == 0 else 96, 257], "lines": lines}


_CONTROLS = sorted(CORPUS.glob("*.py"))


def source_of(task: str, model: str, sample: int, round_: int | None, nasty: str) -> str:
    """A real kernel's text, renamed and turned a little from sample to sample, round to round."""
    pick = int(draw("source", task, model, sample % 3) * len(_CONTROLS))
    lines = _CONTROLS[pick].read_text().splitlines()
    own = random.Random(f"{task}/{model}/{sample}")
    for turn in range((round_ or 0) + 3):
        at = own.randrange(len(lines) + 1)
        block = own.choice((32, 64, 128, 256, 512))
        lines.insert(
            at, f"# try {turn}: block {block}, warps {own.randint(1, 8)} {own.random():.6f}"
        )
        if turn > 2 and len(lines) > 20:
            del lines[own.randrange(5, len(lines))]
    if nasty:
        lines.insert(1, f"# {nasty}")
        lines.append(f"NOTE = {nasty!r}")
    head = f'"""{task.partition("/")[2]} by {model}, sample {sample}."""'
    return "\n".join([head, *lines]) + "\n"
