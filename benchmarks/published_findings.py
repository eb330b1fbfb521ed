"""Published answers that benchmarks certify and that are wrong, each with its smallest case.

    python benchmarks/published_findings.py --folder OUT [--count 20] [--name NAME]

OUT is what `published_survival.py judge` left, with every peer's check. An answer is listed if it
fails under the contract core although some check certifies it; those that the most checks certify
come first, one for each task. A reader gets the script of a row, which needs torch and Triton
alone, by `kerneltruth minimize FINDING --script`: the row names the finding.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import machine

from kerneltruth.documents.case import Case
from kerneltruth.documents.model import parse

COUNT = 20


def certifying(line: dict[str, Any]) -> list[str]:
    """The checks of benchmarks that certify an answer; TritonBench's asks only that it runs."""
    checks = line.get("peer_checks") or {}
    return [n for n, c in checks.items() if c["verdict"] == "pass" and n != "tritonbench"]


def candidates(folder: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    for text in (folder / "run" / "results.jsonl").read_text().splitlines():
        line = json.loads(text)
        wrong = line["verdict"] == "fail" and line["attempt"]["minimal"] and line["finding"]
        if wrong and line["attempt"]["explanation"] and (count := len(certifying(line))):
            yield count, line


def first_broken(line: dict[str, Any]) -> str:
    profile = line["profile"].items()
    return next((k for k, e in profile if e["status"] == "broken" and e["decisive"]), "")


def row(count: int, line: dict[str, Any]) -> tuple[str, ...]:
    attempt = line["attempt"]
    smallest = parse(Case, attempt["minimal"])
    said = re.split(r"(?<=[.])\s", attempt["explanation"])[0]
    return (
        line["origin"].removeprefix("output_"),
        line["task"].partition("/")[2],
        f"{count} of 9",
        first_broken(line),
        smallest.summary(),
        said,
        line["finding"].removesuffix(".json"),
    )


def main() -> int:
    parser = machine.parser(__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--name", default="published_findings")
    options = parser.parse_args()
    about = json.loads((options.folder / "document.json").read_text())["machine"]
    found = sorted(candidates(options.folder), key=lambda pair: (-pair[0], pair[1]["origin"]))
    by_task: dict[str, tuple[int, dict[str, Any]]] = {}
    for count, line in found:
        by_task.setdefault(line["task"], (count, line))
    shown = list(by_task.values())[: options.count]
    lines = [
        f"{len(found)} answers of {len(by_task)} tasks fail under the contract core although at "
        "least one of nine checks certifies them (TritonBench's, which certifies what runs, is "
        f"left out). {len(shown)} of them, one for each task:",
        "",
        *machine.table(
            (
                *("answer", "task", "certified by", "breaks"),
                *("smallest case", "what is wrong", "finding"),
            ),
            (row(*pair) for pair in shown),
        ),
    ]
    title = "Published answers that checks certify, and that are wrong"
    machine.publish(options.name, title, about, lines, folder=options.results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
