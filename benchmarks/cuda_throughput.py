"""How many CUDA C++ candidates an hour `run` judges, and what few of PyTorch's headers change.

    python benchmarks/cuda_throughput.py --suite kernelbench:PROBLEMS --candidates FOLDER
        [--device auto] [--limit N] [--cases 16] [--workers N] [--only lean|full]
        [--deadline SECONDS]

FOLDER holds files in the form of a KernelBench run (`level_1_problem_2_sample_0_kernel.py`), each
of which calls `load_inline`; PROBLEMS is the data set with their problems. Sources are distinct:
what stands twice is left out. They are judged twice, with an empty cache each time: with few of
PyTorch's headers first, and with all of them alone, as its users build. CPU seconds are those of
the whole command, with all that it starts; a run that is stopped at its deadline counts what has
ended.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import resource
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import machine
from clock_cost import STOPPED, steady, stopped_after

TITLES = {"lean": "few headers first", "full": "all headers alone"}


def chosen(folder: Path, limit: int | None) -> list[Path]:
    """Distinct sources that call `load_inline`, in an order that a seed fixes."""
    by_content: dict[str, Path] = {}
    for path in sorted(folder.rglob("*_kernel.py")):
        data = path.read_bytes()
        if b"load_inline" in data:
            by_content.setdefault(hashlib.sha256(data).hexdigest(), path)
    found = list(by_content.values())
    random.Random(0).shuffle(found)
    return found[:limit]


def run(options: argparse.Namespace, mode: str, device: str, sources: Path) -> dict[str, Any]:
    """One run of the command, from its start to its end."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        command = [sys.executable, __file__, "--inner", mode, "run", "--suite", options.suite]
        command += ["--candidates", str(sources), "--out", str(out), "--device", device]
        command += ["--stage", "exe", "--seed", "0", "--no-explain", "--json"]
        command += ["--cases", str(options.cases)] if options.cases else []
        command += ["--workers", str(options.workers)] if options.workers else []
        os.environ["XDG_CACHE_HOME"] = str(Path(folder) / "cache")
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        start = time.monotonic()
        results = out / "results.jsonl"
        code, said, seen = stopped_after(command, options.deadline, results)
        seconds = time.monotonic() - start
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if code not in (0, 1, STOPPED):
            raise SystemExit(f"run ended with exit code {code}: {said[-2000:]}")
        lines = [json.loads(line) for line in results.read_text().splitlines()]
    return {
        "seconds": seconds,
        "stopped": code == STOPPED,
        "first_s": seen[min(1, len(seen) - 1)][0],
        "steady": round(steady(seen)) if len(seen) > 2 else None,
        "cpu_s": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        "verdicts": {Path(line["origin"]).name: _verdict(line) for line in lines},
        "headers": Counter(line.get("headers", "none") for line in lines),
    }


def _verdict(line: dict[str, Any]) -> dict[str, Any]:
    exe = line["stages"]["exe"]
    shown = exe if exe["outcome"] != "not_run" else line["stages"]["call"]
    return {"task": line["task"], "headers": line.get("headers"), **shown}


def outcome(verdict: dict[str, Any]) -> str:
    return " ".join(str(verdict[k]) for k in ("outcome", "kind") if verdict.get(k))


def report(runs: dict[str, dict[str, Any]]) -> list[str]:
    rows = []
    for mode, found in runs.items():
        count = len(found["verdicts"])
        rows.append(
            (
                TITLES[mode],
                count,
                round(found["seconds"], 1),
                "yes" if found["stopped"] else "no",
                round(3600 * count / found["seconds"]),
                round(found["first_s"], 1),
                found["steady"] or "-",
                round(found["cpu_s"] / count, 1),
                found["headers"]["full"],
            )
        )
    head = (
        *("build", "candidates", "seconds", "stopped", "an hour", "first after", "an hour from it"),
        *("CPU seconds each", "built with all"),
    )
    lines = [*machine.table(head, rows), ""]
    for mode, found in runs.items():
        counts = Counter(outcome(v) for v in found["verdicts"].values())
        words = ", ".join(f"{k} {n}" for k, n in counts.most_common())
        lines.append(f"- {TITLES[mode]}: {words}")
    differing = differences(runs)
    lines += ["", f"Verdicts that differ between the two: {len(differing)}."]
    if differing:
        lines += ["", *machine.table(("candidate", *(TITLES[m] for m in runs)), differing)]
    return lines


def differences(runs: dict[str, dict[str, Any]]) -> list[tuple[str, ...]]:
    """Candidates that the runs judge differently, with what each says."""
    first, *_ = runs.values()
    rows = []
    for name in first["verdicts"]:
        words = tuple(outcome(r["verdicts"].get(name, {"outcome": "?"})) for r in runs.values())
        if len(set(words)) > 1:
            rows.append((name, *words))
    return rows


def inner(mode: str, arguments: list[str]) -> int:
    """The command itself; with all headers, it has no kit to build with."""
    from kerneltruth.cli import main as command
    from kerneltruth.runner import host

    if mode == "full":
        setattr(host.Runner, "kit", lambda runner, candidate: None)  # noqa: B010
    sys.argv = ["kerneltruth", *arguments]
    command()
    return 0


def main() -> int:
    if sys.argv[1:2] == ["--inner"]:
        return inner(sys.argv[2], sys.argv[3:])
    parser = machine.parser(__doc__.splitlines()[0])
    parser.add_argument("--suite", required=True, help="kernelbench:PROBLEMS")
    parser.add_argument("--candidates", type=Path, required=True)
    parser.add_argument("--limit", type=int, help="judge this many of them")
    parser.add_argument("--cases", type=int, help="cases of each; the usual number if left out")
    parser.add_argument("--workers", type=int, help="judges; one per core if left out")
    parser.add_argument("--deadline", type=float, default=3600.0, help="seconds, then stopped")
    parser.add_argument("--only", choices=tuple(TITLES), help="one of the two builds")
    options = parser.parse_args()
    device = machine.device_of(options)
    with tempfile.TemporaryDirectory() as folder:
        sources = Path(folder)
        for path in chosen(options.candidates, options.limit):
            shutil.copy(path, sources / path.name)
        modes = [options.only] if options.only else list(TITLES)
        runs = {mode: run(options, mode, device, sources) for mode in modes}
    machine.publish(
        "cuda_throughput" + (f"_{options.only}" if options.only else ""),
        "CUDA C++ candidates an hour",
        machine.facts(device),
        report(runs),
        folder=options.results,
        data={"runs": runs},
    )
    return int(bool(differences(runs)))


if __name__ == "__main__":
    sys.exit(main())
