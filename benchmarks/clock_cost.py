"""How many candidates an hour `run` takes through call, exe and perf, each in fresh processes.

    python benchmarks/clock_cost.py [--attempts 64] [--against eager compile] [--device cuda]

The candidates are correct Triton kernels of single operators, made sources of their own, so that
each compiles from cold. Without `--against` they are timed against eager and compiled PyTorch and,
since these tasks have one, a control.
"""

from __future__ import annotations

import json
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import machine

from kerneltruth.corpus import ENTRIES, source

# Exit code of a run that was stopped.
STOPPED = 130
# How often results are counted.
LOOK_S = 0.2
FIGURES = ("median", "mean", "most")
# The part of these seconds with the device alone, baselines ready.
ALONE = tuple(f"alone: {figure}" for figure in FIGURES)
TASKS = ("softmax", "gelu", "matmul", "sum")


def write_submissions(path: Path, attempts: int) -> None:
    mine = [e for e in ENTRIES if e.role == "control" and "triton" in source(e)]
    controls = {e.task: e for e in reversed(mine)}
    with path.open("w") as file:
        for number in range(attempts):
            entry = controls[TASKS[number % len(TASKS)]]
            text = f"{source(entry)}\n# {number}\n"
            file.write(json.dumps({"file": f"{entry.task}.py", "predict": text}) + "\n")


def stopped_after(
    command: list[str], seconds: float, results: Path
) -> tuple[int, str, list[tuple[float, int]]]:
    """Run a command, and stop it as by Ctrl-C after this many seconds.

    Gives its exit code, what it said, and when it had how many results.
    """
    # Whoever ends this script ends the run too: it would keep the device from others.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    began, seen = time.monotonic(), [(0.0, 0)]
    with (
        tempfile.TemporaryFile() as said,
        subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=said) as running,
    ):
        try:
            while running.poll() is None and time.monotonic() - began < seconds:
                time.sleep(LOOK_S)
                count = results.read_bytes().count(b"\n") if results.exists() else 0
                if count > seen[-1][1]:
                    seen.append((time.monotonic() - began, count))
        finally:
            if running.poll() is None:
                running.send_signal(signal.SIGINT)
            running.wait()
        said.seek(0)
        return running.returncode, said.read().decode(), seen


def steady(seen: list[tuple[float, int]]) -> float:
    """Candidates an hour from the first result on."""
    (began, first), (ended, last) = seen[1], seen[-1]
    return 3600 * (last - first) / (ended - began)


def why_not(perf: dict[str, Any]) -> str:
    """A line on a candidate that was not simply timed."""
    said = [perf.get("detail", "")]
    said += [
        f"{s['summary']}: {', '.join(s['flags'])}" for s in perf.get("shapes", ()) if s["flags"]
    ]
    return f"- {perf['outcome']}: " + "; ".join(s for s in said if s)


def tasks_of(lines: list[dict[str, Any]]) -> list[str]:
    """Tasks of which candidates were timed."""
    found = (x["task"] for x in lines if x["stages"].get("perf", {}).get("outcome") == "timed")
    return sorted(set(found))


def figures(timed: list[dict[str, Any]], key: str) -> tuple[float, float, float]:
    """Median, mean and most of what is kept under a key."""
    seconds = [p[key] for p in timed if p["outcome"] == "timed"]
    return statistics.median(seconds), statistics.mean(seconds), max(seconds)


def main() -> int:
    parser = machine.parser(__doc__.splitlines()[0])
    parser.add_argument("--attempts", type=int, default=64)
    parser.add_argument("--workers", type=int)
    parser.add_argument(
        "--deadline", type=float, default=600.0, help="seconds after which the run is stopped"
    )
    parser.add_argument("--against", nargs="*", default=[], help="as `run` has it, for each name")
    options = parser.parse_args()
    device = machine.device_of(options)
    with tempfile.TemporaryDirectory() as folder:
        submissions, run = Path(folder) / "submissions.jsonl", Path(folder) / "run"
        write_submissions(submissions, options.attempts)
        command = [sys.executable, "-m", "kerneltruth", "run", "--suite", "core", "--json"]
        command += ["--seed", "0"]
        command += ["--candidates", str(submissions), "--device", device, "--out", str(run)]
        command += ["--workers", str(options.workers)] if options.workers else []
        command += [word for name in options.against for word in ("--against", name)]
        began = time.monotonic()
        results = run / "results.jsonl"
        code, said, seen = stopped_after(command, options.deadline, results)
        seconds = time.monotonic() - began
        if code not in (0, STOPPED):
            print(said[-2000:], file=sys.stderr)
            return 1
        text = results.read_text() if results.exists() else ""
        lines = [json.loads(line) for line in text.splitlines()]
    perf = [line["stages"]["perf"] for line in lines if "perf" in line["stages"]]
    timed = [p for p in perf if p["outcome"] == "timed"]
    facts = machine.facts(device)
    stages = {
        stage: dict(Counter(x["stages"][stage]["outcome"] for x in lines if stage in x["stages"]))
        for stage in ("call", "exe", "perf")
    }
    report = [
        f"{len(lines)} of {options.attempts} candidates of {len(TASKS)} tasks in {seconds:.0f} s"
        + (", when the run was stopped: " if code == STOPPED else ": ")
        + f"{3600 * len(lines) / seconds:,.0f} an hour. {len(timed)} of them timed, "
        f"on {sum(len(p['shapes']) for p in timed)} shapes in all; "
        f"stages: {json.dumps(stages)}.",
    ]
    beside = dict.fromkeys(name for p in timed for s in p["shapes"] for name in s["baselines"])
    if beside:
        report += ["", f"Timed against {', '.join(beside)}."]
    if len(seen) > 2:
        report += [
            "",
            f"The first result was there after {seen[1][0]:.0f} s: processes start, the device's "
            "limits and noise are measured, once per device, and baselines compile from cold. From "
            f"then on {steady(seen):,.0f} an hour.",
        ]
    if timed:
        of_task = {
            task: [
                x["stages"]["perf"] for x in lines if x["task"] == task and "perf" in x["stages"]
            ]
            for task in tasks_of(lines)
        }
        report += [
            "",
            *machine.table(
                ("seconds of the timekeeper for one candidate", "candidates", *FIGURES, *ALONE),
                [
                    (of, len(some), *figures(some, "seconds"), *figures(some, "device_s"))
                    for of, some in [("all", timed), *of_task.items()]
                ],
            ),
        ]
    if timed:
        spent = Counter[str]()
        for one in timed:
            spent.update(one["spent"])
        steps = ("compiling", "gauging", "capturing", "settling", "waiting")
        within = (*steps, "contents", "calls", "device", "ahead", "looking")
        said, parts = (
            ", ".join(f"{k} {v:.1f}" for k, v in spent.items() if (k in within) is inner)
            for inner in (False, True)
        )
        shapes = [s for p in timed for s in p["shapes"]]
        report += [
            "",
            f"{sum(s['blocks'] for s in shapes)} blocks, "
            f"{sum(len(s['repeated']) for s in shapes)} more that were disturbed and repeated.",
            "",
            f"Seconds in all: {said}; within these {parts}.",
        ]
    other = [p for p in perf if p["outcome"] != "timed"]
    report += ["", *map(why_not, other[:10])]
    machine.publish(
        "clock_cost_against" if options.against else "clock_cost",
        "Candidates an hour, timed",
        facts,
        report,
        folder=options.results,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
