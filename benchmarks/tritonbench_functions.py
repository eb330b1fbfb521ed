"""TritonBench-T's own PyTorch functions on trial: what generated kernels are compared with there.

    python benchmarks/tritonbench_functions.py CHECKOUT [--cases 16] [--device cpu] [--seed 0]
        [--out runs/tritonbench-functions] [--table docs/results/tritonbench.md]

CHECKOUT is a checkout of TritonBench. `kerneltruth run` judges what its files define; the table
names each function that is not right, with the first case that shows it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import textwrap
from collections import Counter
from pathlib import Path
from typing import Any

FUNCTIONS = "data/TritonBench_T_v1"
# What stands above this line of the table's file is kept.
MEASURED = "## Measured\n"


def judged(options: argparse.Namespace) -> dict[str, Any]:
    """The document of the run; its attempts are in the run's directory."""
    command = [sys.executable, "-m", "kerneltruth", "run", "--suite", "tritonbench", "--json"]
    command += ["--seed", "0"]
    command += ["--candidates", str(options.checkout / FUNCTIONS), "--out", str(options.out)]
    command += ["--stage", "exe", "--no-explain", "--cases", str(options.cases)]
    command += ["--device", options.device, "--seed", str(options.seed)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    if not done.stdout:
        raise SystemExit(done.returncode or 1)
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def attempts(out: Path) -> list[dict[str, Any]]:
    lines = (out / "results.jsonl").read_text("utf-8").splitlines()
    return sorted((json.loads(line) for line in lines), key=lambda a: str(a["origin"]).lower())


def verdict_of(attempt: dict[str, Any]) -> str:
    return str(attempt["attempt"]["verdict"]["verdict"])


def row(attempt: dict[str, Any]) -> str:
    """A function that is not right, and why."""
    verdict = attempt["attempt"]["verdict"]
    case = (attempt["attempt"].get("failure") or {}).get("case") or {}
    settings = [f"{n}={v}" for n, v in (*case.get("dims", ()), *case.get("attributes", ()))]
    where = " ".join([*settings, case.get("dtype", ""), case.get("recipe", "")])
    said = " ".join(str(verdict.get("detail") or verdict.get("kind") or "").split())
    cells = (Path(attempt["origin"]).stem, attempt["task"], verdict["verdict"], said, where)
    return "| " + " | ".join(c.replace("|", "&#124;") for c in cells) + " |"


def table(
    found: list[dict[str, Any]], document: dict[str, Any], options: argparse.Namespace
) -> str:
    counts = Counter(map(verdict_of, found))
    broken = document["broken"]
    said = ", ".join(f"{n} {verdict}" for verdict, n in counts.most_common())
    rows = [f"{len(found)} functions, {options.cases} cases each on {options.device}: {said}."]
    if broken:
        rows += textwrap.wrap("Not judged: " + "; ".join(b["why"] for b in broken) + ".", 100)
    rows += ["", "| function | task | verdict | what | the case |", "|---|---|---|---|---|"]
    rows += [row(attempt) for attempt in found if verdict_of(attempt) != "pass"]
    return "\n".join(rows) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--cases", type=int, default=16)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("runs/tritonbench-functions"))
    parser.add_argument("--table", type=Path)
    options = parser.parse_args()
    document = judged(options)
    text = table(attempts(options.out), document, options)
    print(text)
    if options.table:
        above = options.table.read_text("utf-8").partition(MEASURED)[0]
        options.table.write_text(above + MEASURED + "\n" + text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
