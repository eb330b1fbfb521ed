r"""How far a checkout of KernelBench is judged: a table of what its audits say.

    kerneltruth audit --suite kernelbench:CHECKOUT --json > audit.json
    python benchmarks/kernelbench_problems.py CHECKOUT audit.json ... \
        [--table docs/results/kernelbench.md]

Each device is a row for each level: documents of one device, such as of one level each, count as
one, in which a problem stands as the last of them has it. Problems are listed as the first device
has them. What is known of shapes comes from the schemas that the audit left in the cache. The exit
code is 1 if a problem's own model is flagged anywhere.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

from kerneltruth.suites.catalog import open_tasks, opened
from kerneltruth.suites.kernelbench.schema import Schema
from kerneltruth.suites.kernelbench.suite import KernelBench

ENOUGH_SHAPES = 3
COLUMNS = ("problems", "load", "shapes", "judged", "cases", "flagged", "not begun")
# What stands above this line of the table's file is kept.
MEASURED = "## Measured\n"


def schemas(checkout: Path) -> dict[str, tuple[str, Schema]]:
    """Title and schema of each problem of levels 1 to 3."""
    with opened(f"kernelbench:{checkout}"):
        known = open_tasks("kernelbench")
        assert known is not None
        problems = cast(KernelBench, known.suite)
        names = [n for n, p in problems.problems.items() if p.level <= 3]
        problems.prepare(names, 1)
        return {n: (problems.problems[n].title, problems.schema(n)) for n in names}


def counted(
    names: Iterable[str], known: dict[str, tuple[str, Schema]], proofs: dict[str, dict[str, Any]]
) -> Counter[str]:
    """How many problems of each kind."""
    counts: Counter[str] = Counter()
    for name in names:
        schema, proof = known[name][1], proofs.get(name)
        counts["problems"] += 1
        counts["load"] += bool(schema.choices)
        counts["shapes"] += schema.distinct >= ENOUGH_SHAPES
        counts["not begun"] += proof is None
        if proof is not None:
            cases = sum(proof["cases"].values())
            counts["judged"] += cases > 0
            counts["cases"] += cases
            counts["flagged"] += bool(proof["flagged"])
    return counts


def rows(document: dict[str, Any], known: dict[str, tuple[str, Schema]]) -> list[str]:
    """A document's row for each level, and for all."""
    proofs = proofs_of(document)
    levels = sorted({name.partition("/")[0] for name in known})
    groups = [(level, [n for n in known if n.startswith(f"{level}/")]) for level in levels]
    made = []
    for label, names in [*groups, ("all", list(known))]:
        counts = counted(names, known, proofs)
        cells = " | ".join(f"{counts[c]:,}" for c in COLUMNS)
        made.append(f"| {document['device']} | {label} | {cells} |")
    return made


def by_device(documents: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """One document for each device, with the seconds of all of its audits."""
    found: dict[str, dict[str, Any]] = {}
    for document in documents:
        one = found.setdefault(
            document["device"], {"device": document["device"], "seconds": 0.0, "tasks": []}
        )
        now = {task["task"] for task in document["tasks"]}
        kept = [task for task in one["tasks"] if task["task"] not in now]
        one["tasks"] = kept + document["tasks"]
        one["seconds"] += document["seconds"]
    return list(found.values())


def proofs_of(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """What a document says of each problem, by name."""
    return {task["task"].partition("/")[2]: task for task in document["tasks"]}


def table(documents: list[dict[str, Any]], known: dict[str, tuple[str, Schema]]) -> str:
    """The report: counts by level, then every problem that is not simply judged, then all."""
    titles = ("problems", "load", "3 or more shapes", "judged", "cases", "own model flagged")
    made = [f"| device | level | {' | '.join(titles)} | not begun |"]
    made.append("|---" * (len(titles) + 3) + "|")
    for document in documents:
        made += rows(document, known)
    took = (f"{d['seconds']:,.0f} s on {d['device']}" for d in documents)
    made += [
        "",
        f"Own models judged in float32, float16 and bfloat16, all strategies: {', '.join(took)}.",
    ]
    made += ["", "### Problems that are not judged", "", "| problem | why |", "|---|---|"]
    judged = proofs_of(documents[0])
    first = {name: judged[name] for name in known if name in judged}
    for name, proof in first.items():
        if proof["trouble"]:
            why = " ".join(proof["trouble"].split())
            made.append(f"| {name} {known[name][0]} | {why} |")
    few = [n for n, (_, s) in known.items() if s.choices and s.distinct < ENOUGH_SHAPES]
    if few:
        made += ["", "### Fewer than three shapes", ""]
        made += [f"- {n} {known[n][0]}: {known[n][1].distinct}" for n in few]
    made += ["", "### All problems", "", "| problem | shapes | cases | unrefereeable | seconds |"]
    made.append("|---|---|---|---|---|")
    for name, proof in first.items():
        if not proof["trouble"]:
            cells = (
                known[name][1].distinct,
                sum(proof["cases"].values()),
                sum(proof["unrefereeable"].values()),
                f"{proof['seconds']:.1f}",
            )
            made.append(f"| {name} {known[name][0]} | {' | '.join(map(str, cells))} |")
    return "\n".join(made) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkout", type=Path)
    parser.add_argument("audits", type=Path, nargs="+")
    parser.add_argument("--table", type=Path)
    options = parser.parse_args()
    documents = by_device(json.loads(path.read_text("utf-8")) for path in options.audits)
    text = table(documents, schemas(options.checkout))
    if options.table:
        head = options.table.read_text("utf-8").partition(MEASURED)[0]
        options.table.write_text(f"{head}{MEASURED}\n{text}", "utf-8")
    print(text.partition("### All problems")[0])
    return int(any(task["flagged"] for document in documents for task in document["tasks"]))


if __name__ == "__main__":
    sys.exit(main())
