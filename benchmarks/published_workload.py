"""The published workload: 26 kernels, 30 cases each, cases per second, cold and warm.

    python benchmarks/published_workload.py [--device auto] [--workers N]

The kernels are those of the published corpus by name and fault; the cases are the 30 that the
`default` strategy gives in float32 and float16, every one judged, no failure explained. The peer's
own harness took 308 s for its 780 cases (2.5 cases/s) on an H100 machine of 16 cores, measured
with torch 2.11 and Triton 3.6. Here a whole process is timed, from its start to its end: imports,
device contexts, compilation with an empty cache (cold) or with the one the cold run left (warm).
The last row leaves out the imports of the same warm run: it is what a further batch would take from
a judge that is up already.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

PEER_CASES_PER_S = 2.5
CASES = 30
AIMS = {"cold": 20, "warm": 75}


def workload(device: str, workers: int | None) -> dict[str, Any]:
    """Judge the 26 kernels in this process and its judges."""
    from kerneltruth.engine.devices import begin, new_runner

    began = time.monotonic()
    runner = new_runner(device, ())
    begin(runner)
    from evaluations import Evaluation, evaluate_all, job_of

    from kerneltruth.corpus.published import ENTRIES
    from kerneltruth.oracle.plan import Plan

    plan = Plan(
        strategies=("default",),
        dtypes=("float32", "float16"),
        cases=CASES,
        stop_at_first=False,
        compile=False,
    )
    jobs = [job_of(entry, plan) for entry in ENTRIES]
    runner.versions()
    start = time.monotonic()
    evaluation: dict[str, Evaluation] = {}
    for job, result in evaluate_all(jobs, device=device, workers=workers, runner=runner):
        evaluation[job.name] = result
    roles = {entry.name: entry.role for entry in ENTRIES}
    return {
        "start_up_s": start - began,
        "seconds": time.monotonic() - start,
        "kernels": {
            name: {
                "role": roles[name],
                "verdict": h.verdict,
                "cases": h.judged,
                "flagged": len(h.flagged),
                "not_judged": sum(n for k, n in h.kinds.items() if k.verdict == "declined")
                + sum(h.unrefereeable.values())
                + sum(h.skipped.values()),
                "seconds": h.seconds,
            }
            for name, h in sorted(evaluation.items())
        },
    }


def whole_process(options: argparse.Namespace, cache: Path) -> dict[str, Any]:
    """The workload as a process of its own, timed from outside."""
    command = [sys.executable, __file__, "--inner", "--device", options.device]
    command += ["--workers", str(options.workers)] if options.workers else []
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    start = time.monotonic()
    ran = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    whole = time.monotonic() - start
    found: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return {**found, "whole_s": whole, "cases": sum(k["cases"] for k in found["kernels"].values())}


def report(runs: dict[str, dict[str, Any]]) -> list[str]:
    import machine

    rows = []
    timed: list[tuple[str, dict[str, Any], float, Any]]
    timed = [(label, run, run["whole_s"], AIMS[label]) for label, run in runs.items()]
    timed.append(("warm, imports left out", runs["warm"], runs["warm"]["seconds"], ""))
    for label, run, seconds, aim in timed:
        rate = run["cases"] / seconds
        times = round(rate / PEER_CASES_PER_S, 1)
        rows.append((label, run["cases"], round(seconds, 2), round(rate, 1), times, aim))
    head = ("compile cache", "cases", "seconds", "cases/s", "times the peer's", "aim")
    kernels = runs["warm"]["kernels"].values()
    controls = [k for k in kernels if k["role"] == "control"]
    bugs = [k for k in kernels if k["role"] == "bug"]
    return [
        *machine.table(head, rows),
        "",
        f"The peer's harness: {PEER_CASES_PER_S} cases/s (780 cases in 308 s, H100, 16 cores).",
        "",
        f"- controls clean: {sum(k['verdict'] == 'pass' for k in controls)} of {len(controls)}",
        f"- bugs caught: {sum(k['flagged'] > 0 for k in bugs)} of {len(bugs)}",
        f"- cases flagged: {sum(k['flagged'] for k in controls)} of "
        f"{sum(k['cases'] for k in controls)} of controls, {sum(k['flagged'] for k in bugs)} of "
        f"{sum(k['cases'] for k in bugs)} of bugs",
        f"- cases declined, unrefereeable or not run: {sum(k['not_judged'] for k in kernels)}",
        "- slowest: "
        + ", ".join(
            f"{name} {k['seconds']:.1f} s"
            for name, k in sorted(
                runs["cold"]["kernels"].items(), key=lambda item: -item[1]["seconds"]
            )[:4]
        ),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda[:N]")
    parser.add_argument("--workers", type=int, help="judges; one per core if left out")
    parser.add_argument("--results", type=Path, help="folder for the report")
    parser.add_argument("--inner", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inner:
        # Imports belong to what is timed, so this process has made none before.
        from kerneltruth.engine.devices import choose_device

        print(json.dumps(workload(choose_device(options.device), options.workers)))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        runs = {label: whole_process(options, Path(folder)) for label in ("cold", "warm")}
    import machine

    about = machine.facts(machine.device_of(options))
    machine.publish(
        "published_workload",
        "The published workload: 26 kernels, 30 cases each",
        about,
        report(runs),
        folder=options.results or machine.RESULTS,
        data={"peer_cases_per_s": PEER_CASES_PER_S, "runs": runs},
    )
    kernels = runs["warm"]["kernels"].values()
    return int(any((k["verdict"] == "pass") != (k["role"] == "control") for k in kernels))


if __name__ == "__main__":
    sys.exit(main())
