"""How far a checkout of KernelBench is judged: schemas, and each problem's own model on trial.

    python benchmarks/kernelbench_problems.py CHECKOUT [--levels 1 2 3] [--only level1/12 ...]
        [--cases 16] [--workers 2] [--deadline 600] [--device cpu] [--table docs/kernelbench.md]

Each problem is judged in a process of its own, which is ended at the deadline. Outcomes are kept
one by one below `--out`, so that a run goes on where it was stopped; the table is made of all of
them. The exit code is 1 if a problem's own model is flagged anywhere.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from kerneltruth.codec import dumps
from kerneltruth.commands.court import Court, Job
from kerneltruth.commands.suites import opened
from kerneltruth.importers.kernelbench.problem import read_problems
from kerneltruth.importers.kernelbench.suite import Problems
from kerneltruth.oracle.attempt import Attempt
from kerneltruth.oracle.bounds import Policy
from kerneltruth.oracle.course import Plan
from kerneltruth.oracle.verdict import word
from kerneltruth.runner.host import Runner
from kerneltruth.tasks.registry import tasks_of

ENOUGH_SHAPES = 3
# What stands above this line of the table's file is kept.
MEASURED = "## Measured\n"


def judge(checkout: Path, name: str, device: str, cases: int) -> Iterator[dict[str, Any]]:
    """What is known of one problem by its schema, and then by its own model as a candidate."""
    with Runner(device=device) as runner, opened(f"kernelbench:{checkout}", runner):
        problems = tasks_of("kernelbench")
        assert isinstance(problems, Problems)
        runner.versions()
        start = time.monotonic()
        schema = problems.schema(name)
        found: dict[str, Any] = {
            "name": name,
            "title": problems.problems[name].title,
            "sets": len(schema.choices),
            "distinct": schema.distinct,
            "trouble": schema.trouble,
            "schema_s": time.monotonic() - start,
        }
        yield found
        if schema.trouble is not None:
            return
        plan = Plan(cases=cases, stop_at_first=False, compile=False, deadline_s=60.0)
        job = Job(
            name=name, task=f"kernelbench/{name}", candidate=problems.own_model(name), plan=plan
        )
        attempt = Court(policy=Policy(), runner=runner).hear(job).attempt
        yield found | judged(attempt)


def judged(attempt: Attempt) -> dict[str, Any]:
    """What is kept of an attempt."""
    flagged = None
    if attempt.failure is not None:
        why = attempt.failure.verdict
        flagged = f"{attempt.failure.case.summary()}: {getattr(why, 'detail', word(why))}"
    return {
        "verdict": word(attempt.verdict),
        "said": getattr(attempt.verdict, "reason", None) or getattr(attempt.verdict, "detail", ""),
        "cases": attempt.cases,
        "failed": attempt.failed,
        "flagged": flagged,
        "declined": len(attempt.declined),
        "unrefereeable": dict(attempt.unrefereeable),
        "skipped": dict(attempt.skipped),
        "worst": attempt.worst_ratio,
        "seconds": attempt.seconds,
    }


def in_a_process(options: argparse.Namespace, name: str) -> dict[str, Any]:
    """The outcome of one problem, whatever becomes of its process."""
    command = [sys.executable, __file__, str(options.checkout), "--one", name]
    command += ["--device", options.device, "--cases", str(options.cases)]
    try:
        done = subprocess.run(command, capture_output=True, timeout=options.deadline)
        said = done.stderr.decode(errors="replace").strip().splitlines() or ["died"]
        error = said[-1] if done.returncode else None
        printed = done.stdout
    except subprocess.TimeoutExpired as late:
        error, printed = f"not judged within {options.deadline:g} s", late.stdout or b""
    # The last whole line says most; a process that is ended early leaves the first.
    lines = [line for line in printed.splitlines(keepends=True) if line.endswith(b"\n")]
    outcome: dict[str, Any] = json.loads(lines[-1]) if lines else {"name": name}
    return outcome if error is None else outcome | {"error": error}


def outcomes(options: argparse.Namespace, names: list[str]) -> list[dict[str, Any]]:
    """All outcomes in order; those that are stored are not made again."""
    options.out.mkdir(parents=True, exist_ok=True)

    def one(name: str) -> dict[str, Any]:
        path = options.out / f"{name.replace('/', '_')}.json"
        if path.exists():
            kept: dict[str, Any] = json.loads(path.read_text("utf-8"))
            return kept
        outcome = in_a_process(options, name)
        path.write_text(dumps(outcome, indent=1) + "\n", "utf-8")
        print(line(outcome), flush=True)
        return outcome

    with ThreadPoolExecutor(options.workers) as pool:
        return list(pool.map(one, names))


def line(o: dict[str, Any]) -> str:
    """One outcome for people who wait."""
    if o.get("error") or o.get("trouble"):
        return f"{o['name']:12} {o.get('error') or o['trouble']}"
    words = [f"{o['name']:12} {o['distinct']:2} shapes  {o['verdict']} {o['cases']} cases"]
    words += [f"{o['failed']} FLAGGED: {o['flagged']}"] if o["failed"] else []
    words += [f"{sum(o['unrefereeable'].values())} unrefereeable"] if o["unrefereeable"] else []
    words += [f"{o['declined']} declined"] if o["declined"] else []
    words += [f"skipped {sum(o['skipped'].values())}"] if o["skipped"] else []
    return ", ".join([*words, f"{o['schema_s']:.1f}+{o['seconds']:.1f} s"])


def table(found: list[dict[str, Any]], cases: int, device: str) -> str:
    """The report: counts by level, then every problem that is not simply judged."""
    rows = ["| level | problems | load | 3 or more shapes | judged | own model flagged |"]
    rows.append("|---|---|---|---|---|---|")
    totals: Counter[str] = Counter()
    for level in sorted({o["name"].partition("/")[0] for o in found}):
        mine = [o for o in found if o["name"].startswith(f"{level}/")]
        counts = counted(mine)
        totals += counts
        rows.append(row(level, counts))
    rows.append(row("all", totals))
    rows += ["", f"Own models: {cases} cases each on {device}, all strategies, float32 as the main"]
    rows += ["dtype, float16 and bfloat16 beside it.", "", "### Problems that are not judged", ""]
    rows += ["| problem | why |", "|---|---|"]
    for o in found:
        why = o.get("error") or o.get("trouble") or (o["said"] if o["verdict"] != "pass" else "")
        if why:
            rows.append(f"| {o['name']} {o.get('title', '')} | {' '.join(str(why).split())} |")
    few = [o for o in found if o.get("sets") and o["distinct"] < ENOUGH_SHAPES]
    if few:
        rows += ["", "### Fewer than three shapes", ""]
        rows += [f"- {o['name']} {o['title']}: {o['distinct']}" for o in few]
    rows += ["", "### All problems", ""]
    rows += ["| problem | sets | shapes | cases | unrefereeable | worst error / bound | seconds |"]
    rows += ["|---|---|---|---|---|---|---|"]
    for o in found:
        if "verdict" not in o:
            continue
        worst = "" if o["worst"] is None else f"{float(o['worst']):.2f}"
        rows.append(
            f"| {o['name']} {o['title']} | {o['sets']} | {o['distinct']} | {o['cases']} "
            f"| {sum(o['unrefereeable'].values())} | {worst} "
            f"| {o['schema_s'] + o['seconds']:.1f} |"
        )
    return "\n".join(rows) + "\n"


def counted(found: list[dict[str, Any]]) -> Counter[str]:
    """How many problems of each kind."""
    counts: Counter[str] = Counter(problems=len(found))
    for o in found:
        counts["load"] += bool(o.get("sets"))
        counts["shapes"] += o.get("distinct", 0) >= ENOUGH_SHAPES
        counts["judged"] += o.get("verdict") == "pass" or bool(o.get("failed"))
        counts["flagged"] += bool(o.get("failed"))
    return counts


def row(level: str, counts: Counter[str]) -> str:
    cells = (counts[k] for k in ("problems", "load", "shapes", "judged", "flagged"))
    return f"| {level} | " + " | ".join(map(str, cells)) + " |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--levels", type=int, nargs="*", default=[1, 2, 3])
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--cases", type=int, default=16)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--deadline", type=float, default=900.0)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, default=Path("runs/kernelbench-problems"))
    parser.add_argument("--table", type=Path)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        for known in judge(options.checkout, options.one, options.device, options.cases):
            print(dumps(known), flush=True)
        return 0
    problems = read_problems(options.checkout)
    names = [n for n, p in problems.items() if p.level in options.levels]
    names = [n for n in names if not options.only or n in options.only]
    found = outcomes(options, names)
    text = table(found, options.cases, options.device)
    if options.table:
        kept = options.table.read_text("utf-8") if options.table.exists() else MEASURED
        head = kept.partition(MEASURED)[0]
        options.table.write_text(f"{head}{MEASURED}\n{text}", "utf-8")
    print(text.partition("### All problems")[0])
    return int(any(o.get("failed") for o in found))


if __name__ == "__main__":
    sys.exit(main())
