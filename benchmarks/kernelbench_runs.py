"""Published runs of KernelBench, with KernelBench's own verdicts, judged again.

    python benchmarks/kernelbench_runs.py prepare RUNS --folder OUT
    python benchmarks/kernelbench_runs.py judge --suite kernelbench:PROBLEMS --folder OUT
    python benchmarks/kernelbench_runs.py report --folder OUT [--name NAME]

RUNS is the folder `runs` of a checkout of KernelBench in which somebody kept them (those of
technoabsurdist/KernelBench stand in the results here), PROBLEMS the folder of its problems.
`prepare` gives each answer the name that KernelBench gives it, in a folder for each level and set
of runs, with the verdict that was published. `judge` runs all stages; a run that is ended goes on
when it is called again. `report` writes the tables: the two verdicts side by side, by model and
level; where certified answers are wrong; how fast right ones are.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import machine

from kerneltruth.analysis.illusions import place_of
from kerneltruth.analysis.reading import Study, read_study
from kerneltruth.analysis.results import Result
from kerneltruth.analysis.speeds import speedups
from kerneltruth.documents.estimates import RateRecord

_LEVEL = re.compile(r"_level(\d)_")
_PROBLEM = re.compile(r"(?:level_\d_)?problem_(\d+)_(?:sample_0_)?kernel\.py$")
_MODEL = re.compile(r"^model_name: *(\S+)$", re.MULTILINE)

# What the two verdicts on an answer are called; `not judged` is a run of KernelBench's that ended.
SAID = ("correct", "wrong", "not compiled", "not judged")


def prepare(runs: Path, out: Path) -> None:
    """Copy the answers of all runs, named as KernelBench names them, with the verdicts on them."""
    models: dict[str, str] = {}
    for run in sorted(path for path in runs.iterdir() if path.is_dir()):
        files = {m[1]: p for p in run.iterdir() if (m := _PROBLEM.match(p.name))}
        level = _LEVEL.search(run.name)
        if not files or level is None:
            continue
        name = run.name[: level.start()]
        models[name], verdicts = about(run)
        target = out / "answers" / f"level{level[1]}" / name
        target.mkdir(parents=True)
        for problem, path in files.items():
            shutil.copy(path, target / f"level_{level[1]}_problem_{problem}_sample_0_kernel.py")
        (target / "eval_results.json").write_text(json.dumps(verdicts))
    (out / "models.json").write_text(json.dumps(models))


def about(run: Path) -> tuple[str, dict[str, Any]]:
    """The model of a run, and KernelBench's verdict by problem."""
    config = run / "generation_config.yaml"
    if config.is_file():
        named = _MODEL.search(config.read_text())
        verdicts: dict[str, Any] = json.loads((run / "eval_results.json").read_text())
        return (named[1].rpartition("/")[2] if named else run.name), verdicts
    kept = json.loads((run / "detailed_results.json").read_text())
    found = {str(r["problem_id"]): e for r in kept["results"] if (e := r.get("eval_result"))}
    return kept["config"]["model_name"], {n: [{"sample_id": 0, **r}] for n, r in found.items()}


def judge(options: argparse.Namespace) -> None:
    device, folder = machine.device_of(options), options.folder
    command = [sys.executable, "-m", "kerneltruth", "run", "--suite", options.suite]
    command += [
        "--candidates",
        str(options.folder / "answers"),
        "--out",
        str(options.folder / "run"),
    ]
    command += ["--peer-checks", "--no-explain", "--against", "eager", "--seed", "1", "--json"]
    command += ["--device", options.all_devices or device]
    command += ["--workers", str(options.workers)] if options.workers else []
    (folder / "machine.json").write_text(json.dumps(machine.facts(device)))
    ran = subprocess.run(command, stdout=subprocess.PIPE, check=False, text=True)
    (folder / "document.json").write_text(ran.stdout or f"{ran.returncode}")


def said(line: dict[str, Any]) -> str:
    """KernelBench's published word on an answer."""
    peer = line.get("peer")
    if not peer or peer["compiled"] is None:
        return "not judged"
    return "correct" if peer["correct"] else "wrong" if peer["compiled"] else "not compiled"


def here(r: Result) -> str:
    """The judge's word on an answer, by what is broken first."""
    if r.correct:
        return "pass" if place_of(r) is None else "pass, hazards"
    if not r.called:
        return r.verdict
    published = r.profile.get("published")
    if published is not None and published.status in ("broken", "refused"):
        return f"{published.status} as published"
    return r.verdict if r.verdict != "fail" else "fail beyond published"


def crossed(pairs: Sequence[tuple[str, Result]]) -> list[str]:
    """Both verdicts of all answers, as a table."""
    counts = Counter((there, here(r)) for there, r in pairs)
    words = sorted({word for _, word in counts}, key=lambda w: -sum(counts[s, w] for s in SAID))
    rows = [(w, *(counts[s, w] for s in SAID)) for w in words]
    return machine.table(("here", *(f"published: {s}" for s in SAID)), rows)


def share(count: int, of: int) -> str:
    return f"{count} ({count / of:.0%})" if of else "none"


def held_published(r: Result) -> bool:
    end = r.profile.get("published")
    return end is not None and end.status == "held"


def by_model(pairs: Sequence[tuple[str, Result]], of: Callable[[Result], str]) -> list[str]:
    """Rates by a label: what KernelBench said, and what holds here."""
    rows = []
    for name in sorted({of(r) for _, r in pairs}):
        some = [(there, r) for there, r in pairs if of(r) == name]
        judged = [there for there, _ in some if there != "not judged"]
        results = [r for _, r in some]
        rows.append(
            (
                name,
                len(some),
                len(judged),
                share(judged.count("correct"), len(judged)),
                share(sum(r.verdict != "compile_error" for r in results), len(some)),
                share(sum(map(held_published, results)), len(some)),
                share(sum(r.correct for r in results), len(some)),
                share(sum(r.correct and place_of(r) is None for r in results), len(some)),
            )
        )
    head = ("answers", "judged there", "correct there", "compile here", "hold as published")
    return machine.table(("", *head, "pass core", "nothing broken"), rows)


def certified_wrong(pairs: Sequence[tuple[str, Result]]) -> list[str]:
    """Each answer that KernelBench certified and the judge does not pass, and why."""
    rows = [
        (r.task.partition("/")[2], r.model, here(r), (r.kind or r.verdict), r.detail or "")
        for there, r in sorted(pairs, key=lambda pair: (pair[1].task, pair[1].model or ""))
        if there == "correct" and not r.correct
    ]
    return machine.table(("problem", "model", "here", "kind", "what"), rows)


def speeds(results: Sequence[Result]) -> list[str]:
    rows = []
    for row in speedups(results, "eager", ("model",)):
        if row.timed:
            mean = row.mean
            known = mean.low is not None and mean.high is not None
            within = f" ({mean.low:.2f} to {mean.high:.2f})" if known else ""
            slower = f"{row.slower.numerator} ({rate(row.slower)})"
            counts = (slower, row.surely_slower, row.ties, row.surely_faster)
            rows.append((row.model, row.timed, f"{mean.value:.2f}{within}", *counts))
    head = (
        "model",
        "timed",
        "mean ratio to eager",
        "slower",
        "surely slower",
        "tie",
        "surely faster",
    )
    return machine.table(head, rows)


def rate(found: RateRecord) -> str:
    return "" if found.rate is None else f"{found.rate:.0%}"


def report(study: Study, lines: Sequence[dict[str, Any]]) -> list[str]:
    published = {line["key"]: said(line) for line in lines}
    answers = [r for r in study.answers if r.key in published]
    pairs = [(published[r.key], r) for r in answers]
    text = [
        f"{len(answers)} distinct answers; a copy counts with its first.",
        "",
        *by_model(pairs, lambda r: r.model or "?"),
        "",
        *by_model(pairs, lambda r: f"{r.model}, {r.task.partition('/')[2].partition('/')[0]}"),
        "",
        "Both verdicts:",
        "",
        *crossed(pairs),
        "",
        "Right answers, timed against eager PyTorch:",
        "",
        *speeds(answers),
        "",
        "Certified there, and not passed here:",
        "",
        *certified_wrong(pairs),
    ]
    return text


def main() -> int:
    parser = machine.parser(__doc__.splitlines()[0])
    parser.add_argument("step", choices=("prepare", "judge", "report"))
    parser.add_argument("runs", type=Path, nargs="?")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--suite", help="kernelbench:PROBLEMS")
    parser.add_argument("--workers", type=int)
    parser.add_argument("--all-devices", help="cuda:all, to use every GPU of the machine")
    parser.add_argument("--name", default="kernelbench_runs")
    options = parser.parse_args()
    if options.step == "prepare":
        prepare(options.runs, options.folder)
    elif options.step == "judge":
        judge(options)
    else:
        kept = (options.folder / "run" / "results.jsonl").read_text().splitlines()
        machine.publish(
            options.name,
            "Published runs of KernelBench, judged again",
            json.loads((options.folder / "machine.json").read_text()),
            report(read_study([options.folder / "run"]), [json.loads(line) for line in kept]),
            folder=options.results,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
