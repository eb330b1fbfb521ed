"""Own and library kernels of published answers, by the tool and by their source.

    python benchmarks/kernel_share.py sheet RUN ... --folder OUT [--draw 100]
    python benchmarks/kernel_share.py shares --folder OUT --device cuda:0
    python benchmarks/kernel_share.py report RUN ... --folder OUT --read READ.csv [--name NAME]

RUN is a finished run of `kerneltruth run --stage exe`. `sheet` draws answers of which a call
returned, and writes `OUT/sheet.csv`: what was counted and probed, beside what the source shows
without running it: kernels defined, those that the entry reaches a launch of, and PyTorch's
functions that it reaches. `OUT/sources` has each source to be read. A reader's word comes back as
`READ.csv` with the columns `id`, `reader` and `note`; `report` counts where both agree, and what
the tool says of all answers of its runs, which may be more than were drawn from. On a GPU `shares`
adds `OUT/shares.csv`: the share of the device's time that each answer's own kernels take.

The reader, like the tool, says `own` (all launches are of its own kernels), `mixed` (PyTorch
computes or copies on the device, too), `unneeded` (its kernels run, and the result does not need
them) or `none`, of the first call on the published inputs.
"""

from __future__ import annotations

import ast
import csv
import json
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import machine

from kerneltruth.clock.schedule.timed_cases import timed_cases
from kerneltruth.documents.lines import read_line
from kerneltruth.documents.records import KernelFact
from kerneltruth.engine.benchmark.profiling import device_share
from kerneltruth.report.kernel_words import shares as share_line
from kerneltruth.report.kernel_words import whose_work
from kerneltruth.runner.candidate import read_candidate
from kerneltruth.runner.host import Runner
from kerneltruth.tasks.registry import find

COLUMNS = (
    *("id", "origin", "task", "verdict", "tool", "line", "case", "stored", "jit", "launched"),
    *("torch", "entry"),
)
# A share of the device's time that leaves room for copies of a few elements alone.
WHOLE = 0.995
# Launching, or asking for shapes and memory, is no work of PyTorch's.
NO_WORK = {"empty", "empty_like", "zeros", "zeros_like", "full", "ones", "device", "is_tensor"}


@dataclass(slots=True)
class Source:
    """What a source shows.

    Attributes:
        jit: kernels that it defines.
        launched: those that the entry, or what it calls, launches.
        torch: functions of PyTorch that it reaches, by their last names.
    """

    jit: set[str] = field(default_factory=set)
    launched: set[str] = field(default_factory=set)
    torch: set[str] = field(default_factory=set)


def read_source(text: str, entry: str) -> Source:
    """Read a source from its entry on, through the functions and classes that it names."""
    tree = ast.parse(text)
    known = {
        node.name: node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
    }
    found = Source(jit={name for name, node in known.items() if is_kernel(node)})
    waiting, seen = [entry], set[str]()
    while waiting:
        name = waiting.pop()
        if name in seen or name not in known:
            continue
        seen.add(name)
        if name in found.jit:
            continue
        for inner in ast.walk(known[name]):
            if isinstance(inner, ast.Name):
                waiting.append(inner.id)
            if isinstance(inner, ast.Subscript) and isinstance(inner.value, ast.Name):
                found.launched |= {inner.value.id} & found.jit
            if isinstance(inner, ast.Call):
                found.torch |= set(torch_name(inner.func))
    return found


def is_kernel(node: ast.FunctionDef | ast.ClassDef) -> bool:
    return any("jit" in ast.unparse(d) for d in node.decorator_list)


def torch_name(function: ast.expr) -> Iterator[str]:
    text = ast.unparse(function)
    if text.startswith(("torch.", "F.", "nn.")) and text.rpartition(".")[2] not in NO_WORK:
        yield text.rpartition(".")[2]


def tools_word(fact: KernelFact) -> str:
    """`own`, `mixed`, `unneeded` or `none`."""
    if not fact.own_launches:
        return "none"
    if fact.probe == "not_needed":
        return "unneeded"
    return "own" if fact.own_launches == fact.launches else "mixed"


def answers(run: Path) -> Iterator[dict[str, Any]]:
    """The rows of a run's answers of which a call returned."""
    for text in (run / "results.jsonl").read_text(encoding="utf-8").splitlines():
        line = read_line(json.loads(text))
        if not line.attempt or line.attempt.kernel is None:
            continue
        fact, candidate = line.attempt.kernel, line.attempt.candidate
        source = (run / "candidates" / f"{candidate.sha256}.py").read_text(encoding="utf-8")
        shown = read_source(source, candidate.entry)
        yield {
            "id": candidate.sha256[:12],
            "origin": line.origin,
            "task": line.attempt.task.partition("/")[2],
            "verdict": line.attempt.verdict.word,
            "tool": tools_word(fact),
            "line": whose_work(fact),
            "case": fact.case,
            "stored": f"{fact.stored}/{fact.elements}",
            "jit": len(shown.jit),
            "launched": " ".join(sorted(shown.launched)),
            "torch": " ".join(sorted(shown.torch)),
            "entry": candidate.entry,
            "source": source,
        }


def sheet(options: Any) -> None:
    """Draw answers, and lay them out to be read."""
    found = {row["id"]: row for run in options.runs for row in answers(run)}
    rng = random.Random(options.seed)
    rows = rng.sample(sorted(found.values(), key=lambda r: r["id"]), min(options.draw, len(found)))
    sources = options.folder / "sources"
    sources.mkdir(parents=True, exist_ok=True)
    for row in rows:
        (sources / f"{row['id']}.py").write_text(row.pop("source"), encoding="utf-8")
    with (options.folder / "sheet.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)
    counts = Counter(row["tool"] for row in rows)
    print(f"{len(rows)} of {len(found)} answers: {dict(counts)}; read {options.folder}/sheet.csv")


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def report(options: Any) -> None:
    """What tool and reader say of the sample."""
    rows = rows_of(options.folder / "sheet.csv")
    read = {row["id"]: row for row in rows_of(options.read)}
    device = machine.device_of(options)
    about = machine.facts(device)
    timed = options.folder / "shares.csv"
    own = {row["id"]: row["own"] for row in rows_of(timed)} if timed.exists() else {}
    lines = [*of_all(options.runs), *summary(rows, read), "", *by_device(rows, own)]
    lines += each(rows, read, own)
    document = {"rows": rows, "read": list(read.values()), "device": own}
    title = "Own and library kernels of published answers, by the tool and by a reader"
    machine.publish(options.name, title, about, lines, folder=options.results, data=document)


def shares(options: Any) -> None:
    """Measure device time of own and library kernels in each drawn answer.

    Each is called at its largest timed shape. Several share the device:
    their kernels take turns, so shares stay what they are alone.
    """
    device = machine.device_of(options)
    if device == "cpu":
        raise SystemExit("shares of a device's time need a GPU")
    rows = rows_of(options.folder / "sheet.csv")
    with (
        (options.folder / "shares.csv").open("w", newline="", encoding="utf-8") as file,
        Runner(device=device) as runner,
        ThreadPoolExecutor(options.workers) as pool,
    ):
        writer = csv.DictWriter(file, ("id", "own", "line"))
        writer.writeheader()
        for row, found in zip(
            rows, pool.map(lambda row: share(options, runner, row), rows), strict=True
        ):
            writer.writerow(found)
            file.flush()
            print(row["origin"], row["tool"], found["line"], flush=True)


def share(options: Any, runner: Runner, row: dict[str, str]) -> dict[str, str]:
    """A row of the shares."""
    task = find(f"{options.suite}/{row['task']}")
    source = (options.folder / "sources" / f"{row['id']}.py").read_text(encoding="utf-8")
    entry = row["entry"]
    candidate = read_candidate(source, f"{entry}.py", task_names=(entry,), task=entry)
    found = device_share(runner, candidate, task, timed_cases(task)[-1])
    own = "" if found.own is None else f"{found.own:.4f}"
    return {"id": row["id"], "own": own, "line": share_line(found)}


def devices_word(own: str) -> str:
    """What a share of the device's time says, in the tool's words."""
    if not own:
        return "not known"
    share = float(own)
    return "none" if share == 0 else "own" if share > WHOLE else "mixed"


def summary(rows: Sequence[dict[str, str]], read: dict[str, dict[str, str]]) -> list[str]:
    """How often both agree, by what the tool says."""
    pairs = Counter((row["tool"], read[row["id"]]["reader"]) for row in rows if row["id"] in read)
    agreed = sum(n for (tool, reader), n in pairs.items() if tool == reader)
    none = [row for row in rows if read.get(row["id"], {}).get("reader") == "none"]
    unmarked = sum(row["tool"] != "none" for row in none)
    table = [(f"{tool}, reader: {reader}", n) for (tool, reader), n in sorted(pairs.items())]
    confirmed = sum(row["line"].endswith("wrong without them") for row in rows)
    launching = sum(row["tool"] != "none" for row in rows)
    shown = sum((row["tool"] == "none") != bool(row["launched"]) for row in rows)
    return [
        f"{pairs.total()} of {len(rows)} drawn answers were read; tool and reader agree on "
        f"{agreed}. {unmarked} of {len(none)} without a kernel of their own are not marked. The "
        "reader had the tool's line beside the source.",
        "",
        f"By the source alone, which shows whether the entry reaches a launch, {shown} of "
        f"{len(rows)} are placed with or without a kernel as by the tool. The probe confirms "
        f"{confirmed} of {launching} that launch a kernel; no case of the others that launches one "
        "is right.",
        "",
        *machine.table(("tool", "answers"), table),
    ]


def of_all(runs: Sequence[Path]) -> list[str]:
    """What the tool says of every answer of which a call returned, and of those that pass."""
    found = {row["id"]: row for run in runs for row in answers(run)}.values()
    if not found:
        return []
    every = Counter(row["tool"] for row in found)
    passing = Counter(row["tool"] for row in found if row["verdict"] == "pass")
    table = [(word, every[word], passing[word]) for word in ("own", "mixed", "unneeded", "none")]
    head = (
        f"{every.total()} answers of which a call returned, {passing.total()} of them right in the "
    )
    head += "cases of their run:"
    return [head, "", *machine.table(("whose work", "answers", "right"), table), ""]


def by_device(rows: Sequence[dict[str, str]], own: dict[str, str]) -> list[str]:
    """How often the device's time says what the counts say."""
    if not own:
        return []
    pairs = Counter((row["tool"], devices_word(own[row["id"]])) for row in rows if row["id"] in own)
    table = [(f"{tool}, by device time: {word}", n) for (tool, word), n in sorted(pairs.items())]
    return [*machine.table(("counts when judged", "answers"), table), ""]


def each(
    rows: Sequence[dict[str, str]], read: dict[str, dict[str, str]], own: dict[str, str]
) -> list[str]:
    """Facts of each answer, none of its code."""
    head = ("answer", "task", "verdict", "tool", "reader", "stored", "device time", "note")
    table = [
        (
            row["origin"],
            row["task"],
            row["verdict"],
            row["tool"],
            read.get(row["id"], {}).get("reader", ""),
            row["stored"],
            own.get(row["id"], ""),
            read.get(row["id"], {}).get("note", ""),
        )
        for row in rows
    ]
    return machine.table(head, table)


def main() -> None:
    parser = machine.parser(__doc__.splitlines()[0])
    parser.add_argument("command", choices=("sheet", "shares", "report"))
    parser.add_argument("runs", nargs="*", type=Path)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--draw", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--read", type=Path)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--suite", default="kernelbenchx")
    parser.add_argument("--name", default="kernel_share")
    options = parser.parse_args()
    {"sheet": sheet, "shares": shares, "report": report}[options.command](options)


if __name__ == "__main__":
    main()
