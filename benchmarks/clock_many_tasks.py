"""How many right answers an hour `run` takes to as many tasks: each needs baselines of its own.

    python benchmarks/clock_many_tasks.py [--answers PATH] [--attempts 150] [--device cuda]
        [--against eager compile] [--deadline 420] [--cold]

Without `--answers`, a file or folder as `run --candidates` takes it, PyTorch's own functions are
the answers: one for each task of kernelbenchx, until there are enough. `--cold` begins with empty
caches of compiled code, as on a machine that has never seen these tasks.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import machine
from clock_cost import STOPPED, figures, stopped_after, why_not

from kerneltruth.corpus.eager import eager_source
from kerneltruth.tasks.registry import eager_modules, find

SUITE = "kernelbenchx"
MINUTE = 60.0
SLOWEST = 20


def write_answers(path: Path, attempts: int) -> None:
    """PyTorch's own function for each of the suite's first tasks."""
    with path.open("w") as file:
        modules = eager_modules(SUITE)
        judged = [key for key in modules if find(key).unrefereeable is None]
        for key in judged[:attempts]:
            name = find(key).name
            text = f"{eager_source(modules[key])}\n# {name}\n"
            file.write(json.dumps({"file": f"{name}.py", "predict": text}) + "\n")


def by_minute(seen: list[tuple[float, int]]) -> list[int]:
    """How many results came in each minute."""
    counts = [0] * (int(seen[-1][0] // MINUTE) + 1)
    before = 0
    for at, count in seen:
        counts[int(at // MINUTE)] += count - before
        before = count
    return counts


def from_second_minute(seen: list[tuple[float, int]]) -> float | None:
    """Results an hour after the first minute, until the last one."""
    before = max((count for at, count in seen if at <= MINUTE), default=0)
    ended, last = seen[-1]
    return 3600 * (last - before) / (ended - MINUTE) if ended > MINUTE else None


def spent_on(perf: list[dict[str, Any]]) -> list[str]:
    """Where the seconds of the benchmarker went."""
    spent, ready = Counter[str](), Counter[str]()
    for one in perf:
        spent.update(one.get("spent", {}))
        ready.update(one.get("ready", {}))
    waited = sum(one.get("ready_s", 0.0) for one in perf)
    timed = sum(one.get("seconds", 0.0) for one in perf)
    return [
        f"Baselines were waited for for {waited:.1f} s; candidates were timed for {timed:.1f} s.",
        "",
        "Getting ready, seconds of all tasks, side by side: "
        + ", ".join(f"{k} {v:.1f}" for k, v in ready.items())
        + ". Timing: "
        + ", ".join(f"{k} {v:.1f}" for k, v in spent.items())
        + ".",
    ]


def report_on(lines: list[dict[str, Any]], seen: list[tuple[float, int]], said: str) -> list[str]:
    """The report's lines."""
    perf = [line["stages"]["perf"] for line in lines if "perf" in line["stages"]]
    timed = [p for p in perf if p["outcome"] == "timed"]
    rate = from_second_minute(seen)
    report = [
        said,
        "",
        f"By minute: {', '.join(map(str, by_minute(seen)))}. From the second minute on: "
        + (f"{rate:,.0f} an hour." if rate else "nothing was left."),
        "",
        f"Stages: {json.dumps(stages(lines))}.",
        "",
        *spent_on(perf),
    ]
    if timed:
        report += ["", *shapes_against(timed), ""]
        report += machine.table(
            ("seconds of one candidate", "median", "mean", "most"),
            [(key, *figures(timed, key)) for key in ("seconds", "device_s")],
        )
    slow = sorted(
        ((p.get("seconds", 0.0), line["task"], p) for line in lines if (p := perf_of(line))),
        key=lambda item: item[0],
        reverse=True,
    )
    report += ["", "Slowest, with what most went into:", ""]
    report += [f"- {task}: {s:.1f} s ({most_of(p)})" for s, task, p in slow[:SLOWEST]]
    other = [line for line in lines if perf_of(line).get("outcome") not in ("timed", None)]
    report += ["", *(f"{why_not(perf_of(line))} ({line['task']})" for line in other)]
    lost = [
        f"- {line['task']} {s['summary']}: {name}: {why}"
        for line in lines
        for s in perf_of(line).get("shapes", ())
        for name, why in s["baselines_failed"].items()
    ]
    return [*report, "", f"Baselines without a time: {len(lost)}.", "", *lost[:40]]


def shapes_against(timed: list[dict[str, Any]]) -> list[str]:
    """A line for each baseline: how shapes stand against it."""
    outcomes: dict[str, Counter[str]] = {}
    for name, b in (x for p in timed for s in p["shapes"] for x in s["baselines"].items()):
        outcomes.setdefault(name, Counter())[b["outcome"]] += 1
    return [f"Shapes against {name}: {json.dumps(count)}." for name, count in outcomes.items()]


def most_of(perf: dict[str, Any]) -> str:
    """The longest parts of a candidate's seconds; some lie within others."""
    parts = sorted(perf.get("spent", {}).items(), key=lambda part: -part[1])
    return ", ".join(f"{name} {seconds:.1f}" for name, seconds in parts[:6])


def perf_of(line: dict[str, Any]) -> dict[str, Any]:
    """The perf stage of a result."""
    found: dict[str, Any] = line["stages"].get("perf", {})
    return found


def stages(lines: list[dict[str, Any]]) -> dict[str, dict[str, int]]:
    """How often each outcome of each stage occurs."""
    return {
        stage: dict(Counter(x["stages"][stage]["outcome"] for x in lines if stage in x["stages"]))
        for stage in ("call", "exe", "perf")
    }


def main() -> int:
    parser = machine.parser(__doc__.splitlines()[0])
    parser.add_argument("--answers", type=Path, help="right answers; else PyTorch's own functions")
    parser.add_argument("--attempts", type=int, default=150)
    parser.add_argument("--workers", type=int)
    parser.add_argument("--deadline", type=float, default=420.0, help="seconds, then it is stopped")
    parser.add_argument("--against", nargs="*", default=["eager", "compile"])
    parser.add_argument("--cold", action="store_true", help="begin with empty caches")
    parser.add_argument("--keep", type=Path, help="where the run's results are copied")
    parser.add_argument("--name", default="clock_many_tasks", help="of the report")
    options = parser.parse_args()
    device = machine.device_of(options)
    with tempfile.TemporaryDirectory() as folder:
        answers, run = options.answers or Path(folder) / "answers.jsonl", Path(folder) / "run"
        if options.answers is None:
            write_answers(answers, options.attempts)
        if options.cold:
            os.environ["XDG_CACHE_HOME"] = str(Path(folder) / "cache")
        command = [sys.executable, "-m", "kerneltruth", "run", "--suite", SUITE, "--json"]
        command += ["--candidates", str(answers), "--device", device, "--out", str(run)]
        command += ["--workers", str(options.workers)] if options.workers else []
        command += [word for name in options.against for word in ("--against", name)]
        began = time.monotonic()
        results = run / "results.jsonl"
        code, said, seen = stopped_after(command, options.deadline, results)
        seconds = time.monotonic() - began
        if code not in (0, 3, STOPPED):
            print(said[-3000:], file=sys.stderr)
            return 1
        lines = [json.loads(line) for line in results.read_text().splitlines()]
        if options.keep is not None:
            options.keep.write_bytes(results.read_bytes())
    tasks = len({line["task"] for line in lines})
    ended = "stopped after" if code == STOPPED else "in"
    report = report_on(
        lines,
        seen,
        f"{len(lines)} answers to {tasks} tasks {ended} {seconds:.0f} s, timed against "
        f"{' and '.join(options.against)}{', with empty caches' if options.cold else ''}.",
    )
    machine.publish(
        options.name,
        "Right answers an hour, timed, to many tasks",
        machine.facts(device),
        report,
        folder=options.results,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
