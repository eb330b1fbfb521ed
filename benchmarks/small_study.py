"""The small study of `examples/study`, step by step: what each takes, and what comes out.

    python benchmarks/small_study.py [--device cuda] [--folder runs/study] [--part judge|tell]

Recorded replies of three methods are judged, and on a GPU timed; then analysed and put on a page.
The two parts can be done on two machines: `judge` leaves in the folder what `tell` needs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import machine

ROOT = Path(__file__).resolve().parents[1]
REPLIES = ROOT / "examples" / "study" / "replies"
SUITE = ("--suite", "kernelbenchx")
CASES = ("--cases", "32")
METHODS: dict[str, tuple[str, ...]] = {
    "one_shot": (),
    "best_of_n": ("--samples", "3"),
    "refine": ("--rounds", "3", *CASES),
}
SIDES = ("eager", "compile", "control")


def step(name: str, *words: str, took: dict[str, float]) -> str:
    """One command of ours; its seconds go to `took`."""
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "kerneltruth", *words], capture_output=True, text=True, cwd=ROOT
    )
    took[name] = time.monotonic() - began
    # 1: some candidates are wrong, as is meant here.
    if done.returncode not in (0, 1):
        raise SystemExit(f"{name}: exit code {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout


def judge(folder: Path, device: str) -> None:
    """Generate and run; leaves the seconds in the folder."""
    took: dict[str, float] = {}
    answers = folder / "answers"
    for method, more in METHODS.items():
        model = ("--model", f"replay:{REPLIES / method}.jsonl", "--out", str(answers / method))
        where = ("--device", device)
        step(f"generate {method}", "generate", *SUITE, "--method", method, *model, *where, *more,
             took=took)  # fmt: skip
    step("run", "run", *SUITE, "--candidates", str(answers), *CASES, "--baselines",
         "--device", device, "--out", str(folder / "run"), took=took)  # fmt: skip
    steps = {"machine": machine.facts(device), "seconds": took}
    (folder / "steps.json").write_text(json.dumps(steps, indent=1) + "\n")


def perf_rows(lines: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """By method: how many were timed, and what their shapes were called against each side."""
    rows = []
    for method in METHODS:
        perf = [
            line["stages"]["perf"]
            for line in lines
            if line.get("method") == method and "perf" in line["stages"]
        ]
        said: dict[str, Counter[str]] = {side: Counter() for side in SIDES}
        for shape in (s for p in perf for s in p.get("shapes", ())):
            for side, against in shape["baselines"].items():
                said[side][against["outcome"]] += 1
        outcomes = Counter(p["outcome"] for p in perf)
        rows.append(
            (
                method,
                sum(outcomes.values()),
                outcomes["timed"],
                *(f"{said[s]['faster']}/{said[s]['tie']}/{said[s]['slower']}" for s in SIDES),
                ", ".join(f"{n} {o}" for o, n in sorted(outcomes.items()) if o != "timed"),
            )
        )
    return rows


def tell(folder: Path, results: Path) -> None:
    """Analyse, make the page, and publish what came out."""
    steps = json.loads((folder / "steps.json").read_text())
    took: dict[str, float] = {}
    analysis = json.loads(step("analyze", "analyze", str(folder / "run"), "--json", took=took))
    page = folder / "report.html"
    step("report", "report", str(folder / "run"), "-o", str(page), took=took)
    lines = [json.loads(x) for x in (folder / "run" / "results.jsonl").read_text().splitlines()]
    judged, told = sum(steps["seconds"].values()), sum(took.values())
    report = [
        f"{len(lines)} attempts. Generated and judged in {judged / 60:.1f} minutes, analysed and "
        f"put on a page of {os.path.getsize(page) / 1e6:.1f} MB in {told:.0f} s"
        + (f" (on {os.cpu_count()} CPU cores)." if steps["machine"]["device"] != "cpu" else "."),
        "",
        *machine.table(("step", "seconds"), [(*s,) for s in (steps["seconds"] | took).items()]),
    ]
    rows = perf_rows(lines)
    if any(row[2] for row in rows):
        report += [
            "",
            "Shapes called faster / tie / slower:",
            "",
            *machine.table(
                ("method", "perf stages", "timed", *(f"against {s}" for s in SIDES), "others"),
                rows,
            ),
        ]
    text = step("analyze, as text", "analyze", str(folder / "run"), took=took)
    report += ["", "```", *text.rstrip().splitlines(), "```"]
    machine.publish(
        "small_study",
        "The small study",
        steps["machine"],
        report,
        folder=results,
        data={"steps": steps["seconds"] | took, "analysis": analysis},
    )


def main() -> int:
    parser = machine.parser(__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=ROOT / "runs" / "study")
    parser.add_argument("--part", choices=("judge", "tell", "all"), default="all")
    options = parser.parse_args()
    if options.part != "tell":
        options.folder.mkdir(parents=True, exist_ok=True)
        judge(options.folder.resolve(), machine.device_of(options))
    if options.part != "judge":
        tell(options.folder.resolve(), options.results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
