"""The table of what `audit --suite` found on a machine, from its JSON documents.

kerneltruth audit --suite kernelbenchx --device cuda --json > kernelbenchx.json
python benchmarks/suite_table.py kernelbenchx.json ... --machine "H100, torch 2.11"

Each of several timed audits of one suite may have gone on where the one before ran out of time; the
last document with a shape counts.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import machine

HEAD = ("category", "tasks", "hold", "cases", "flagged", "declined", "unrefereeable")


def counted(proof: dict[str, Any]) -> Counter[str]:
    """One task's share of its category's row."""
    return Counter(
        tasks=1,
        hold=proof["holds"],
        cases=sum(proof["cases"].values()),
        flagged=len(proof["flagged"]),
        declined=sum(proof["declined"].values()),
        unrefereeable=sum(proof["unrefereeable"].values()),
    )


def section(document: dict[str, Any]) -> list[str]:
    """The paragraph and the table of one suite."""
    proofs, summary = document["tasks"], document["summary"]
    suite = proofs[0]["task"].rpartition("/")[0] or "core"
    rows: dict[str, Counter[str]] = {}
    for proof in proofs:
        rows.setdefault(proof["category"], Counter()).update(counted(proof))
    flagged = [
        f"- {proof['task']}: {flag['case']}: {flag['detail']}"
        for proof in proofs
        for flag in proof["flagged"]
    ]
    return [
        "",
        f"`kerneltruth audit --suite {suite}`: {summary['hold']} of {summary['tasks']} tasks hold, "
        f"{summary['cases']} cases judged in all declared dtypes, {summary['flagged']} flagged, "
        f"in {document['seconds']:.0f} s.",
        "",
        *machine.table(HEAD, [(name, *(row[k] for k in HEAD[1:])) for name, row in rows.items()]),
        *(["", *flagged] if flagged else []),
    ]


def timed_section(documents: Sequence[dict[str, Any]]) -> list[str]:
    """The paragraph and the list of what is no tie, of one suite's timed audits."""
    shapes: dict[tuple[str, str], dict[str, Any]] = {}
    others: dict[tuple[str, str], dict[str, Any]] = {}
    for document in documents:
        seen = {(s["task"], s["shape"]): s for s in document["shapes"]}
        others = {key: other for key, other in others.items() if key not in seen}
        others |= {(o["task"], o["shape"]): o for o in document["other"]}
        shapes |= seen
    tasks = {task for task, _ in shapes}
    left = {task for document in documents for task in document["not_timed"]} - tasks
    counts = Counter(s["outcome"] for s in shapes.values())
    outcomes = ", ".join(f"{k} {n}" for k, n in sorted(counts.items()))
    ratios = [s["ratio"] for s in shapes.values() if s["outcome"] == "host_bound"]
    hosts = (
        f" Calls that wait for their host: ratios of {min(ratios):.2f} to {max(ratios):.2f}."
        if ratios
        else ""
    )
    seconds = " + ".join(f"{document['seconds']:.0f}" for document in documents)
    lines = [f"- {o['task']} {o['shape']}: {o['outcome']}: {o['why']}" for o in others.values()]
    return [
        "",
        f"`kerneltruth audit --suite {documents[0]['suite']} --timed`: {len(shapes)} shapes of "
        f"{len(tasks)} tasks in {seconds} s: {outcomes}. {len(left)} tasks had no time.{hosts}",
        *(["", *lines] if lines else []),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("documents", type=Path, nargs="+")
    parser.add_argument("--machine", required=True, help="where they were made")
    options = parser.parse_args()
    print("## What `audit --suite` found: PyTorch as the candidate")
    print(f"\n{options.machine}")
    timed: dict[str, list[dict[str, Any]]] = {}
    for path in options.documents:
        document = json.loads(path.read_text("utf-8"))
        if "timed" in document:
            timed.setdefault(document["suite"], []).append(document)
        else:
            print("\n".join(section(document)))
    for documents in timed.values():
        print("\n".join(timed_section(documents)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
