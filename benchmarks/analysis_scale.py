"""Seconds and memory of `kerneltruth analyze` on many attempts.

    python benchmarks/analysis_scale.py [--attempts 100000]

Makes runs of synthetic attempts (five methods, one of them in rounds, on 176 tasks of 15
categories, with timings against three baselines, a peer's verdicts and a second device), whose
result lines are as long as real ones, and analyses them in a process of its own, with every table
and export.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import machine

METHODS = ("one_shot", "best_of_n", "evolve", "imported", "refine")
CATEGORIES, TASKS, ROUNDS = 15, 176, 4
LIMIT_S, LIMIT_BYTES = 20.0, 2**30
OUTCOMES = ("compile_error", "runtime_error", "crash", "timeout")


class Cost(NamedTuple):
    """What a process took."""

    seconds: float
    processor_s: float
    peak_bytes: int


def make_run(folder: Path, attempts: int, *, device: str, seed: int) -> None:
    """A run directory of synthetic attempts."""
    folder.mkdir(parents=True)
    manifest = {
        "arguments": ["run", "synthetic"],
        "seed": seed,
        "suite_hash": "0" * 64,
        "environment": {"device": "cuda:0", "device_name": device},
        "started": "2026-01-01T00:00:00+00:00",
        "ended": "2026-01-01T01:00:00+00:00",
        "version": "0.1.0",
        "schema": 1,
    }
    (folder / "run.json").write_text(json.dumps(manifest))
    tasks = {f"kernelbenchx/task{t}": _facts(t) for t in range(TASKS)}
    (folder / "tasks.json").write_text(json.dumps({"schema": 1, "tasks": tasks}))
    rng = random.Random(seed)
    hard = [rng.gauss(0, 1) for _ in range(TASKS)]
    clock = random.Random(f"{seed} {device}")
    with (folder / "results.jsonl").open("w") as file:
        for number in range(attempts):
            file.write(json.dumps(_line(rng, clock, number, hard), separators=(",", ":")) + "\n")


def _facts(task: int) -> dict[str, int]:
    return {
        "lines": 3 + task % 40,
        "operators": 2 + task % 17,
        "parameters": 1 + task % 6,
        "flops": 1000 * (1 + task),
    }


def _line(
    rng: random.Random, clock: random.Random, number: int, hard: list[float]
) -> dict[str, Any]:
    task = number % TASKS
    method = METHODS[number // TASKS % len(METHODS)]
    turn = number // (TASKS * len(METHODS))
    rounds = method == "refine"
    category = task % CATEGORIES
    ease = 0.6 * (category - 7) / 7 + 0.3 * METHODS.index(method) - 0.6 + hard[task]
    ease += 0.5 * (turn % ROUNDS) if rounds else 0.0
    right = rng.random() < 1 / (1 + 2.7**-ease)
    called = right or rng.random() < 0.6
    verdict = "pass" if right else "fail" if called else rng.choice(OUTCOMES)
    dtype = rng.choice(("float32", "float16", "bfloat16"))
    key = f"{method}/{turn}/task{task}.py@{number:012x}"
    case = {
        "task": f"kernelbenchx/task{task}",
        "dims": [["M", 1024], ["N", 4096]],
        "attributes": [],
        "dtype": dtype,
        "layout": "contiguous",
        "recipe": "uniform",
        "seed": number,
        "absent": [],
        "literals": [],
        "strategy": "default",
        "domain": "core",
    }
    detail = "565 of 771 elements are wrong; the worst error is 314 times the bound"
    kind = {"kind": "value", "detail": detail} if verdict == "fail" else {}
    said = {"verdict": verdict, **kind} if called else {"verdict": verdict, "detail": "no"}
    stages: dict[str, Any] = {"call": {"outcome": "pass" if called else verdict}}
    if called:
        stages["exe"] = {"outcome": verdict, "cases": 16, "failed": int(not right), **kind}
    stages["perf"] = _perf(clock, case) if right else {"outcome": "not_run", "detail": "exe: fail"}
    failure = (
        None
        if right
        else {
            "case": case,
            "verdict": said,
            "config": 0,
            "seconds": 0.05,
            "stats": {"count": 771, "num_exceeding": 565, "max_abs": 9.99},
        }
    )
    counts = {"cases": 6, "returned": 6, "failed": 0}
    dtypes = (
        {d: counts for d in ("float32", "float16", "bfloat16")}
        if right
        else ({dtype: {"cases": 1, "returned": int(called), "failed": 1}})
    )
    return {
        "key": key,
        "name": key,
        "attempt": {
            "task": case["task"],
            "candidate": {
                "sha256": f"{number:064x}",
                "path": f"task{task}.py",
                "language": "triton",
                "entry": f"task{task}",
            },
            "verdict": said,
            "cases": 16,
            "failed": int(not right),
            "declined": [],
            "unrefereeable": {},
            "skipped": {},
            "failure": failure,
            "minimal": failure and case,
            "explanation": "" if right else "Every element is off by the factor 2. " * 3,
            "binaries": [{"kernel": "k", "target": "sm_90", "ok": True, "registers": 20}] * 2,
            "worst_ratio": 0.3,
            "seconds": 0.8,
            "dtypes": dtypes,
        },
        "finding": None if right else f"kernelbenchx-task{task}-{number:012x}.json",
        "task": case["task"],
        "category": f"category {category:02}",
        "origin": key.partition("@")[0],
        "sha256": f"{number:064x}",
        "labels": {
            "method": method,
            "model": "synthetic",
            "sample": turn // ROUNDS if rounds else turn,
            "round": turn % ROUNDS if rounds else None,
        },
        "peer": {
            "check": "kernelbench",
            "compiled": called,
            "correct": right or (called and rng.random() < 0.3),
            "runtime_ms": None,
        },
        "stages": stages,
        "tags": [] if right else ["factor"],
    }


def _perf(rng: random.Random, case: dict[str, Any]) -> dict[str, Any]:
    shapes = []
    for rows in (256, 1024, 4096):
        baselines = {}
        for name in ("eager", "compile", "control"):
            ratio = 2 ** rng.gauss(0.2, 0.8)
            outcome = "faster" if ratio > 1.02 else "slower" if ratio < 0.98 else "tie"
            baselines[name] = {
                "us": 50 * ratio,
                "ratio": ratio,
                "low": ratio * 0.98,
                "high": ratio * 1.02,
                "outcome": outcome,
            }
        shapes.append(
            {
                "case": case,
                "summary": f"M={rows} N=4096 float32 uniform",
                "candidate_us": 50.0,
                "candidate_low": 49.5,
                "candidate_high": 50.5,
                "method": "graph",
                "regime": "cold",
                "blocks": 20,
                "baselines": baselines,
                "efficiency": rng.random(),
                "floor_us": 20.0,
                "bound_by": "memory",
                "flags": [],
            }
        )
    return {
        "outcome": "timed",
        "device": "synthetic",
        "shapes": shapes,
        "noise_floor": 0.01,
        "compile_s": 1.0,
        "launch_us": 4.0,
        "flags": [],
    }


def measure(folder: Path, runs: list[Path]) -> tuple[Cost, dict[str, Any]]:
    """What it costs, and the document of `analyze` with every table and export."""
    exports = ["--csv", str(folder / "all.csv"), "--parquet", str(folder / "all.parquet")]
    words = [sys.executable, "-m", "kerneltruth", "analyze", *map(str, runs), "--json", *exports]
    began = time.monotonic()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ran = subprocess.run(words, capture_output=True, check=True)
    seconds = time.monotonic() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if after.ru_maxrss == before.ru_maxrss:
        raise SystemExit("a process before this one was larger: its memory is unknown")
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(seconds, processor, after.ru_maxrss * 1024), json.loads(ran.stdout)


def main() -> int:
    options = _options()
    about = machine.facts("cpu")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        runs = [folder / "run", folder / "elsewhere"]
        elsewhere = options.attempts // 10
        make_run(runs[0], options.attempts - elsewhere, device="synthetic A", seed=0)
        make_run(runs[1], elsewhere, device="synthetic B", seed=0)
        size = sum((run / "results.jsonl").stat().st_size for run in runs)
        cost, document = measure(folder, runs)
    lines = [
        *machine.table(
            ["what", "measured", "allowed"],
            [
                ["seconds", cost.seconds, LIMIT_S],
                ["of a processor", cost.processor_s, None],
                ["peak memory, MiB", cost.peak_bytes // 2**20, LIMIT_BYTES // 2**20],
            ],
        ),
        "",
        f"{document['attempts']:,} attempts in 2 runs, {size / 2**20:.0f} MiB of result lines; "
        f"{document['deviance']['permutations']} permutations, "
        f"{document['deviance']['resamples']} resamples; CSV and Parquet written. The load of the "
        f"machine, other work's processes among them, was {machine.load()}.",
    ]
    machine.publish(
        "analysis_scale", "Analysis of many attempts", about, lines, folder=options.results
    )
    return int(cost.seconds > LIMIT_S or cost.peak_bytes > LIMIT_BYTES)


def _options() -> argparse.Namespace:
    parser = machine.parser("Seconds and memory of `analyze` on many attempts.")
    parser.add_argument("--attempts", type=int, default=100_000)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
