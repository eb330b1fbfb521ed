"""The table of what `audit --suite` found on a machine, from its JSON documents.

kerneltruth audit --suite kernelbenchx --device cuda --json > kernelbenchx.json
python benchmarks/suite_table.py kernelbenchx.json ... --machine "H100, torch 2.11"
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
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


def timed_section(document: dict[str, Any]) -> list[str]:
    """The paragraph and the list of what is no tie, of one suite's timed audit."""
    outcomes = ", ".join(f"{k} {n}" for k, n in sorted(document["summary"]["outcomes"].items()))
    ratios = [s["ratio"] for s in document["shapes"] if s["outcome"] == "host_bound"]
    hosts = (
        f" Calls that wait for their host: ratios of {min(ratios):.2f} to {max(ratios):.2f}."
        if ratios
        else ""
    )
    others = [f"- {o['task']} {o['shape']}: {o['outcome']}: {o['why']}" for o in document["other"]]
    return [
        "",
        f"`kerneltruth audit --suite {document['suite']} --timed`: {document['timed']} shapes of "
        f"{document['summary']['tasks']} tasks in {document['seconds']:.0f} s: {outcomes}. "
        f"{len(document['not_timed'])} tasks had no time.{hosts}",
        *(["", *others] if others else []),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("documents", type=Path, nargs="+")
    parser.add_argument("--machine", required=True, help="where they were made")
    options = parser.parse_args()
    print("## What `audit --suite` found: PyTorch as the candidate")
    print(f"\n{options.machine}")
    for path in options.documents:
        document = json.loads(path.read_text("utf-8"))
        print("\n".join((timed_section if "timed" in document else section)(document)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
