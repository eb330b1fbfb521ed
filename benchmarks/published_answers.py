"""Published answers of models judged, and a random sample of what fails laid out to be read.

    python benchmarks/published_answers.py judge ANSWERS --folder OUT [--suite kernelbenchx]
    python benchmarks/published_answers.py report --folder OUT --read READ.csv [--name NAME]

ANSWERS is a file or folder of published predictions, which stay outside of this repository. `judge`
runs the exe stage, draws findings at random (`--draw` of those that loaded and came to a judged
case, `--draw-unloaded` of those that did not), and writes two scripts for each that import nothing
of kerneltruth: one with the kernel, one with PyTorch's own function in its place. The verdict is
confirmed by them where the kernel is wrong and PyTorch right on the same inputs, expected values
and bounds. `OUT/sheet.csv` has a row for each to be read beside its source. A reader's verdicts
come back as `READ.csv` with the columns `id`, `reader` (right, too_strict, wrong, misnamed) and
`note`; `report` counts them.
"""

from __future__ import annotations

import csv
import inspect
import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import machine

from kerneltruth.corpus.eager import aids
from kerneltruth.engine.replay import cache_for, candidate_of, finding_at
from kerneltruth.explain.reproducer.script import script
from kerneltruth.oracle.verdict import Failed, word
from kerneltruth.suites.pytorch import eager_of
from kerneltruth.tasks.registry import find

COLUMNS = ("id", "origin", "task", "verdict", "kind", "kernel", "pytorch", "case", "explanation")
SCRIPT_S = 120
# How a reproducer ends.
ENDS = {0: "right", 1: "wrong", 2: "not judged"}


def judge(options: Any, device: str) -> dict[str, Any]:
    """One run as a user makes it, in a fresh folder."""
    command = [
        *(sys.executable, "-m", "kerneltruth", "run", "--suite", options.suite, "--json"),
        *("--candidates", str(options.answers), "--out", str(options.folder / "run")),
        *("--device", device, "--stage", "exe", "--seed", str(options.seed)),
        *(("--cases", str(options.cases)) if options.cases else ()),
        *(("--workers", str(options.workers)) if options.workers else ()),
    ]
    ran = subprocess.run(command, stdout=subprocess.PIPE, check=False, text=True)
    if not ran.stdout:
        raise SystemExit(f"run ended with exit code {ran.returncode}")
    document: dict[str, Any] = json.loads(ran.stdout)
    return document


def lines_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(x) for x in (folder / "run" / "results.jsonl").read_text().splitlines()]


def drawn(options: Any) -> list[dict[str, Any]]:
    """Distinct failing answers at random, those that were judged apart from those that were not."""
    failing = [x for x in lines_of(options.folder) if x.get("finding") and not x.get("same_as")]
    judged = [x for x in failing if x["stages"]["call"]["outcome"] == "pass"]
    others = [x for x in failing if x["stages"]["call"]["outcome"] != "pass"]
    rng = random.Random(options.seed)
    return [
        *rng.sample(judged, min(options.draw, len(judged))),
        *rng.sample(others, min(options.draw_unloaded, len(others))),
    ]


def standalone(source: str) -> str:
    """PyTorch's own function with the wrapper that some import from the corpus in its place."""
    taken = f"from {aids.__name__} import in_float32_on_a_cpu\n"
    return source.replace(taken, inspect.getsource(aids))


def write_scripts(options: Any, line: dict[str, Any]) -> tuple[Path, Path | None]:
    """The script with the kernel, and the one with PyTorch's own function in its place."""
    path = options.folder / "run" / "findings" / line["finding"]
    finding = finding_at(path)
    task = find(finding.task)
    cache = cache_for(finding)
    case = finding.minimal or finding.case
    expectation = cache.get(task, case)
    placed = cache.layouts.of(task, case, expectation.inputs).placed
    kernel, eager = candidate_of(path, finding), eager_of(task)
    folder = options.folder / "scripts"
    folder.mkdir(exist_ok=True)
    written = []
    for name, candidate, config in (("", kernel, finding.config), ("_pytorch", eager, 0)):
        if candidate is None:
            continue
        if name:
            candidate = replace(candidate, source=standalone(candidate.source))
        text = script(
            task=task,
            candidate=replace(candidate, language="torch") if name else candidate,
            expectation=expectation,
            placed=placed,
            verdict=finding.verdict,
            explanation=finding.explanation,
            config=config,
        )
        target = folder / f"{finding.id}{name}.py"
        target.write_text(text)
        written.append(target)
    return written[0], written[1] if len(written) > 1 else None


def end_of(path: Path | None) -> str:
    """How a script ends: right, wrong, not judged, or what became of it."""
    if path is None:
        return "none"
    try:
        ran = subprocess.run(
            [sys.executable, path.name],
            cwd=path.parent,
            capture_output=True,
            text=True,
            timeout=SCRIPT_S,
            check=False,
            env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"},
        )
    except subprocess.TimeoutExpired:
        return "wrong (no end)"
    path.with_suffix(".txt").write_text(ran.stdout[-4000:] + ran.stderr[-4000:])
    return ENDS.get(ran.returncode, f"exit code {ran.returncode}")


def sheet(options: Any) -> list[dict[str, Any]]:
    """The rows of the sheet, each with what both scripts say."""
    rows, scripts = [], []
    for line in drawn(options):
        finding = finding_at(options.folder / "run" / "findings" / line["finding"])
        verdict = finding.verdict
        rows.append(
            {
                "id": finding.id,
                "origin": line["origin"],
                "task": finding.task,
                "verdict": word(verdict),
                "kind": verdict.kind if isinstance(verdict, Failed) else "",
                "case": (finding.minimal or finding.case).summary(),
                "explanation": " ".join(finding.explanation.split())[:400],
            }
        )
        scripts.append(write_scripts(options, line))
    with ThreadPoolExecutor(max_workers=max(1, len(os.sched_getaffinity(0)))) as pool:
        kernels = pool.map(end_of, [kernel for kernel, _ in scripts])
        own = pool.map(end_of, [pytorch for _, pytorch in scripts])
        for row, kernel, pytorch in zip(rows, kernels, own, strict=True):
            row |= {"kernel": kernel, "pytorch": pytorch}
    with (options.folder / "sheet.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)
    return rows


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def outcomes(document: dict[str, Any], lines: list[dict[str, Any]]) -> list[str]:
    """What came of the answers, by stage, outcome and kind."""
    counts: Counter[tuple[str, str, str]] = Counter()
    for line in lines:
        stage = "exe" if line["stages"]["call"]["outcome"] == "pass" else "call"
        found = line["stages"][stage]
        counts[(stage, found["outcome"], found.get("kind") or "")] += 1
    rows = [(f"{s} {o} {k}".strip(), n) for (s, o, k), n in counts.most_common()]
    rate = document["attempts_per_hour"]
    return [
        f"{document['attempts']} answers, of which {document['repeated_sources']} repeat another, "
        f"in {document['seconds']:.0f} s: {rate:,.0f} an hour. Seed {document['seed']}.",
        "",
        *machine.table(("stage, outcome and kind", "answers"), rows),
    ]


def reading(rows: list[dict[str, str]], read: dict[str, dict[str, str]]) -> list[str]:
    """What scripts and reader say of the sample."""
    ends = Counter((row["kernel"], row["pytorch"]) for row in rows)
    verdicts = Counter(read[row["id"]]["reader"] for row in rows if row["id"] in read)
    missing = sum(row["id"] not in read for row in rows)
    table = [(f"kernel {k}, PyTorch {p}", n) for (k, p), n in ends.most_common()]
    said = [(f"reader: {v}", n) for v, n in verdicts.most_common()]
    others = [
        f"- `{row['id']}` ({row['origin']}): {read[row['id']]['reader']}: {read[row['id']]['note']}"
        for row in rows
        if row["id"] in read and read[row["id"]]["reader"] != "right"
    ]
    return [
        f"{len(rows)} failing verdicts drawn at random, each with two scripts that import nothing "
        "of kerneltruth, and read one by one: verdict, case, sentence and scripts, and the source "
        "where these left a doubt.",
        "",
        *machine.table(("scripts", "verdicts"), table),
        "",
        *machine.table(("reading", "verdicts"), [*said, ("not read", missing)]),
        *(["", *others] if others else []),
    ]


def main() -> int:
    parser = machine.parser(__doc__.splitlines()[0])
    parser.add_argument("step", choices=("judge", "report"))
    parser.add_argument("answers", type=Path, nargs="?")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--suite", default="kernelbenchx")
    parser.add_argument("--seed", type=int, default=20261122)
    parser.add_argument("--cases", type=int)
    parser.add_argument("--workers", type=int)
    parser.add_argument("--draw", type=int, default=100)
    parser.add_argument("--draw-unloaded", type=int, default=20)
    parser.add_argument("--read", type=Path, help="the reader's verdicts")
    parser.add_argument("--name", default="published_answers")
    options = parser.parse_args()
    if options.step == "judge":
        device = machine.device_of(options)
        options.folder.mkdir(parents=True, exist_ok=True)
        document = judge(options, device)
        about = machine.facts(device)
        start = time.monotonic()
        rows = sheet(options)
        (options.folder / "document.json").write_text(
            json.dumps({"machine": about, "document": document}, indent=1)
        )
        print("\n".join(outcomes(document, lines_of(options.folder))))
        print(f"{len(rows)} verdicts drawn and run as scripts, {time.monotonic() - start:.0f} s")
        return 0
    kept = json.loads((options.folder / "document.json").read_text())
    rows = rows_of(options.folder / "sheet.csv")
    read = {row["id"]: row for row in rows_of(options.read)} if options.read else {}
    lines = [*outcomes(kept["document"], lines_of(options.folder)), "", *reading(rows, read)]
    title = "Published answers of models, judged and read"
    machine.publish(options.name, title, kept["machine"], lines, folder=options.results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
