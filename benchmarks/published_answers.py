"""Published answers of models judged, and broken obligations laid out to be read.

    python benchmarks/published_answers.py judge ANSWERS --folder OUT [--suite kernelbenchx]
    python benchmarks/published_answers.py report --folder OUT --read READ.csv [--name NAME]

ANSWERS is a file or folder of published predictions, which stay outside of this repository. `judge`
runs the exe stage and draws `--draw` broken obligations at random from the profiles. For each it
writes two scripts that import nothing of kerneltruth, one with the kernel, one with PyTorch's own
function in its place, and a page with the prompt, the source and the case, but without where the
judge places it. A break is confirmed by the scripts where the kernel is wrong and PyTorch right on
the same inputs, expected values and bounds. `OUT/sheet.csv` has a row for each. A reader who has
only the pages writes READ.csv with the columns `id`, `obligation` (several if several are broken:
`memory|published`), `placed` (published, core or beyond) and `note`. Where the reader and the judge
differ, both are read again, and the column `right` says who is: judge, reader or neither. `report`
counts them.
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
from kerneltruth.suites.pytorch import eager_of
from kerneltruth.tasks.registry import find

COLUMNS = (
    *("id", "origin", "task", "obligation", "placed", "verdict", "kind", "kernel", "pytorch"),
    *("case", "explanation", "finding"),
)
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


def broken(lines: list[dict[str, Any]]) -> list[tuple[dict[str, Any], str]]:
    """Every broken obligation of every distinct answer, with the answer's line."""
    return [
        (line, key)
        for line in lines
        if not line.get("same_as")
        for key, entry in line["attempt"]["profile"].items()
        if entry["status"] == "broken"
    ]


def drawn(options: Any) -> list[tuple[dict[str, Any], str]]:
    """Broken obligations at random."""
    found = broken(lines_of(options.folder))
    return random.Random(options.seed).sample(found, min(options.draw, len(found)))


def placed(key: str, profile: dict[str, Any]) -> str:
    """Where a break lies: in what the benchmark publishes, in what the prompt promises, beyond."""
    if profile[key]["failure"] == (profile["published"]["failure"] or {}):
        return "published"
    return "core" if profile[key]["decisive"] else "beyond"


def standalone(source: str) -> str:
    """PyTorch's own function with the wrapper that some import from the corpus in its place."""
    taken = f"from {aids.__name__} import in_float32_on_a_cpu\n"
    return source.replace(taken, inspect.getsource(aids))


def write_scripts(options: Any, path: Path) -> tuple[Path, Path | None]:
    """The script with the kernel, and the one with PyTorch's own function in its place."""
    finding = finding_at(path)
    task = find(finding.task)
    cache = cache_for(finding)
    case = finding.minimal or finding.case
    expectation = cache.get(task, case)
    laid_out = cache.layouts.of(task, case, expectation.inputs).placed
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
            placed=laid_out,
            verdict=finding.verdict,
            explanation=finding.explanation,
            config=config,
        )
        target = folder / f"{finding.id}{name}.py"
        target.write_text(text)
        written.append(target)
    return written[0], written[1] if len(written) > 1 else None


def prompt_of(options: Any, origin: str) -> str:
    """The published prompt of an answer."""
    name, _, number = origin.rpartition(":")
    path = options.answers / name if options.answers.is_dir() else options.answers
    answer = json.loads(path.read_text().splitlines()[int(number) - 1])
    return str(answer.get("instruction") or "The file of answers brings no prompt.")


def write_page(options: Any, row: dict[str, Any], sha256: str) -> None:
    """What the reader has: prompt, case, what was seen, and the source."""
    folder = options.folder / "pages"
    folder.mkdir(exist_ok=True)
    source = (options.folder / "run" / "candidates" / f"{sha256}.py").read_text()
    shown = ("id", "task", "verdict", "kind", "case", "explanation", "kernel", "pytorch")
    facts = [f"{name}: {row[name]}" for name in shown]
    said = options.folder / "scripts" / f"{row['finding']}.txt"
    shows = said.read_text() if said.exists() else ""
    parts = ["\n".join(facts), shows, prompt_of(options, row["origin"]), source]
    (folder / f"{row['id']}.txt").write_text("\n\n----\n\n".join(parts))


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


def row_of(number: int, line: dict[str, Any], key: str) -> dict[str, Any]:
    """A row of the sheet, without what the scripts say; its id does not tell the obligation."""
    entry = line["attempt"]["profile"][key]
    verdict = (entry["failure"] or {}).get("verdict", {})
    return {
        "id": f"{number:03}-{line['sha256'][:12]}",
        "origin": line["origin"],
        "task": line["task"],
        "obligation": key,
        "placed": placed(key, line["attempt"]["profile"]),
        "verdict": verdict.get("verdict", ""),
        "kind": verdict.get("kind", ""),
        "finding": "",
        "case": "",
        "explanation": entry["reason"] or "",
        "kernel": "none",
        "pytorch": "none",
    }


def sheet(options: Any) -> list[dict[str, Any]]:
    """The rows of the sheet, each with what both scripts say."""
    found = [(row_of(n, *one), *one) for n, one in enumerate(drawn(options))]
    scripts = []
    for row, line, key in found:
        name = line["attempt"]["profile"][key]["finding"]
        if name is None:
            continue
        path = options.folder / "run" / "findings" / f"{name}.json"
        finding = finding_at(path)
        row["finding"] = finding.id
        row["case"] = (finding.minimal or finding.case).summary()
        row["explanation"] = " ".join(finding.explanation.split())[:400]
        scripts.append((row, *write_scripts(options, path)))
    with ThreadPoolExecutor(max_workers=max(1, len(os.sched_getaffinity(0)))) as pool:
        kernels = pool.map(end_of, [kernel for _, kernel, _ in scripts])
        own = pool.map(end_of, [pytorch for *_, pytorch in scripts])
        for (row, *_), kernel, pytorch in zip(scripts, kernels, own, strict=True):
            row |= {"kernel": kernel, "pytorch": pytorch}
    for row, line, _ in found:
        write_page(options, row, line["sha256"])
    rows = [row for row, *_ in found]
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


def agreement(row: dict[str, str], read: dict[str, str]) -> str:
    """Whether the reader names and places a broken obligation as the judge does."""
    named = row["obligation"].split(".")[0] in {
        name.split(".")[0] for name in read["obligation"].split("|")
    }
    if named and row["placed"] == read["placed"]:
        return "the same name and place"
    differs = "another place" if named else "another name"
    return f"{differs}; read again: {read['right'] or 'open'} right"


def reading(rows: list[dict[str, str]], read: dict[str, dict[str, str]]) -> list[str]:
    """What scripts and reader say of the sample."""
    ends = Counter((row["kernel"], row["pytorch"]) for row in rows)
    said = {row["id"]: agreement(row, read[row["id"]]) for row in rows if row["id"] in read}
    others = [
        f"- `{row['id']}` ({row['task']}): {row['obligation']}, {row['placed']}; "
        f"the reader: {read[row['id']]['obligation']}, {read[row['id']]['placed']}; "
        f"{said[row['id']]}. {read[row['id']]['note']}"
        for row in rows
        if said.get(row["id"], "the same").partition(" name and")[0] != "the same"
    ]
    places = Counter((row["placed"], row["obligation"]) for row in rows)
    return [
        f"{len(rows)} broken obligations drawn at random, each with two scripts that import "
        "nothing of kerneltruth, and read one by one by a reader who had the prompt, the source, "
        "the case and the scripts' results, but not the judge's name and place.",
        "",
        *machine.table(
            ("placed", "obligation", "breaks"), [(*k, n) for k, n in places.most_common()]
        ),
        "",
        *machine.table(
            ("scripts", "breaks"),
            [(f"kernel {k}, PyTorch {p}", n) for (k, p), n in ends.most_common()],
        ),
        "",
        *machine.table(
            ("reading", "breaks"),
            [*Counter(said.values()).most_common(), ("not read", len(rows) - len(said))],
        ),
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
        took = time.monotonic() - start
        print(f"{len(rows)} broken obligations drawn and run as scripts, {took:.0f} s")
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
