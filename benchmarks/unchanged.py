"""Two states of the code side by side: the same verdicts, findings and tables?

    python benchmarks/unchanged.py CHECKOUT [--part NAME ...] [--folder FOLDER]

CHECKOUT is a clone or a worktree at the earlier commit. Each part runs in both states, on the CPU
and from the same seed, and the documents are compared value by value, but for times and paths.
Sentences, which are reworded, and with them the places that a stray read names, are counted apart.

- `corpus`: `audit` of the whole corpus, with the peers' checks;
- `findings`: the findings that the earlier state stores in that audit are replayed by this one;
- `suites`: `audit --suite` of the built-in suites;
- `study`: the small study of `examples/study`, judged by both, and the earlier state's run analysed
  by both; numbers count as equal within a relative 1e-9.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import machine

ROOT = machine.HERE.parent
SUITES = ("core", "kernelbenchx", "tritonbench", "earlier")
# Keys of a document that differ between two runs of the same code.
TIMES_AND_PATHS = frozenset(
    {"seconds", "cases_per_second", "run", "runs", "finding", "path", "started", "ended", "version"}
)
SENTENCES = frozenset({"explanation", "detail", "why", "reason", "shown", "description"})
CLOSE = 1e-9
SHOWN = 12


def command(state: Path, *arguments: str) -> Any:
    """The JSON document of a command, as the code of a checkout prints it."""
    ran = subprocess.run(
        [sys.executable, "-m", "kerneltruth", *arguments, "--json"],
        env={**os.environ, "PYTHONPATH": str(state / "src"), "CUDA_VISIBLE_DEVICES": ""},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if ran.returncode > 1:
        raise SystemExit(f"{state}: {arguments[0]} ended with exit code {ran.returncode}")
    return json.loads(ran.stdout)


def leaves(document: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """The values of a document that have to agree, each with where it stands."""
    if isinstance(document, dict):
        for name in sorted(document.keys() - TIMES_AND_PATHS):
            yield from leaves(document[name], f"{path}.{name}" if path else name)
    elif isinstance(document, list):
        for at, item in enumerate(document):
            name = item.get("name", at) if isinstance(item, dict) else at
            yield from leaves(item, f"{path}[{name}]")
    else:
        yield path, document


def agree(one: Any, other: Any) -> bool:
    """Whether two values are equal, floats nearly so."""
    if isinstance(one, float) and isinstance(other, int | float):
        return math.isclose(one, other, rel_tol=CLOSE) or (math.isnan(one) and math.isnan(other))
    return bool(one == other)


@dataclass
class Compared:
    """How many values stand in either document, and which of them differ."""

    values: int = 0
    reworded: int = 0
    differ: list[str] = field(default_factory=list)

    def add(self, before: Any, after: Any, what: str = "") -> Compared:
        """Count the values of two documents; `what` says which they are."""
        old, new = dict(leaves(before)), dict(leaves(after))
        for path in sorted(old.keys() | new.keys()):
            self.values += 1
            if path in old and path in new and agree(old[path], new[path]):
                continue
            if path.rpartition(".")[2] in SENTENCES:
                self.reworded += 1
                continue
            said = f"{old.get(path, 'absent')!r} -> {new.get(path, 'absent')!r}"
            self.differ.append(f"{what}{path}: {said}")
        return self


def corpus(before: Path, folder: Path) -> Compared:
    # Earlier states judged a part of the corpus unless told otherwise.
    options = ["audit", "--device", "cpu", "--seed", "0"]
    whole = ["--full"] if "--full" in _help(before, "audit") else []
    old = command(before, *options, *whole, "--out", str(folder / "before"))
    return Compared().add(old["kernels"], command(ROOT, *options)["kernels"])


def _help(state: Path, name: str) -> str:
    ran = subprocess.run(
        [sys.executable, "-m", "kerneltruth", name, "--help"],
        env={**os.environ, "PYTHONPATH": str(state / "src")},
        capture_output=True,
        text=True,
        check=True,
    )
    return ran.stdout


def findings(before: Path, folder: Path) -> Compared:
    del before
    run = folder / "before"
    if not (run / "findings").is_dir():
        raise SystemExit("`findings` are those of `corpus`, which must be run first")
    replayed = command(ROOT, "replay", "--device", "cpu", str(run))["results"]
    apart = [str(result) for result in replayed if not result["reproduced"]]
    return Compared(values=len(replayed), differ=apart)


def suites(before: Path, folder: Path) -> Compared:
    del folder
    found = Compared()
    for name in SUITES:
        options = ["audit", "--suite", name, "--device", "cpu", "--seed", "0"]
        found.add(command(before, *options), command(ROOT, *options), f"{name}: ")
    return found


def study(before: Path, folder: Path) -> Compared:
    for state, name in ((before, "study-before"), (ROOT, "study-now")):
        program = folder / f"{name}.sh"
        source = state / "src"
        program.write_text(
            f'#!/bin/sh\nPYTHONPATH="{source}" exec {sys.executable} -m kerneltruth "$@"\n'
        )
        program.chmod(0o755)
        subprocess.run(
            ["sh", str(state / "examples/study/study.sh"), str(folder / name), "judge"],
            env={**os.environ, "KERNELTRUTH": str(program), "CUDA_VISIBLE_DEVICES": ""},
            stdout=subprocess.DEVNULL,
            check=True,
        )
    old, new = (_outcomes(folder / name / "run") for name in ("study-before", "study-now"))
    run = str(folder / "study-before" / "run")
    found = Compared().add(old, new, "judged: ")
    return found.add(command(before, "analyze", run), command(ROOT, "analyze", run), "analysed: ")


def _outcomes(run: Path) -> dict[str, Any]:
    """The stages of each attempt of a run, in whatever order they ended."""
    lines = map(json.loads, (run / "results.jsonl").read_text().splitlines())
    return {line["key"]: line["stages"] for line in lines}


PARTS = {"corpus": corpus, "findings": findings, "suites": suites, "study": study}


def main() -> int:
    parser = machine.parser(__doc__.splitlines()[0])
    parser.add_argument("before", type=Path, metavar="CHECKOUT")
    parser.add_argument("--part", action="append", choices=tuple(PARTS), default=[])
    parser.add_argument("--folder", type=Path, default=ROOT / "runs" / "unchanged")
    parser.add_argument("--name", default="unchanged", help="of the report")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    rows, lines = [], []
    for part in options.part or PARTS:
        found = PARTS[part](options.before.resolve(), options.folder.resolve())
        rows.append((part, found.values, found.reworded, len(found.differ)))
        lines += [f"- {part}: `{line}`" for line in found.differ[:SHOWN]]
        more = len(found.differ) - SHOWN
        lines += [f"- {part}: {more} more"] if more > 0 else []
    machine.publish(
        options.name,
        f"The code at {_commit(options.before)} and at {_commit(ROOT)}: what differs",
        machine.facts("cpu"),
        [*machine.table(("part", "values, or findings", "reworded", "differ"), rows), "", *lines],
        folder=options.results,
    )
    return int(any(differ for *_, differ in rows))


def _commit(state: Path) -> str:
    ran = subprocess.run(
        ["git", "-C", str(state), "rev-parse", "--short", "HEAD"],
        capture_output=True,
        text=True,
        check=True,
    )
    return ran.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
