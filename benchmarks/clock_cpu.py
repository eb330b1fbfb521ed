"""PyTorch's own functions timed against themselves on a CPU, as `kerneltruth time` does it.

    python benchmarks/clock_cpu.py [--rounds 3] [--budget 0.3] [TASK ...]

A CPU's noise between processes is assumed (`HOST_NOISE`), not measured: the table says how far from
1 ratios are, and how often the interval contains 1.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import machine

from kerneltruth.suites.pytorch import eager_of
from kerneltruth.tasks.registry import find

TASKS = ("relu", "softmax", "layer_norm", "gelu", "sum", "add")


def timed(task: str, budget_s: float) -> list[tuple[float, float, float, str]]:
    """Return the ratio of each shape, its interval and its outcome."""
    source = eager_of(find(task))
    assert source is not None
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"{task}.py"
        file.write_text(source.source)
        ran = subprocess.run(
            [
                *(sys.executable, "-m", "kerneltruth", "time", str(file), "--task", task),
                *("--device", "cpu", "--against", "eager", "--budget", str(budget_s), "--json"),
            ],
            capture_output=True,
            text=True,
            check=False,
        )
    document = json.loads(ran.stdout)
    found = [shape["baselines"]["eager"] for shape in document["shapes"] or ()]
    return [(b["ratio"], b["low"], b["high"], b["outcome"]) for b in found]


def main() -> int:
    parser = machine.parser(__doc__.splitlines()[0])
    parser.add_argument("tasks", nargs="*", default=TASKS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--budget", type=float, default=0.3)
    options = parser.parse_args()
    rows, total, inside, wrong = [], 0, 0, 0
    for task in options.tasks:
        found = [f for _ in range(options.rounds) for f in timed(task, options.budget)]
        holds = sum(low <= 1 <= high for _, low, high, _ in found)
        words = [word for *_, word in found]
        ratios = [ratio for ratio, *_ in found]
        decided = len(words) - words.count("tie")
        rows.append((task, len(found), f"{min(ratios):.2f} to {max(ratios):.2f}", holds, decided))
        total, inside = total + len(found), inside + holds
        wrong += decided
    heads = ("task", "shapes timed", "ratios", "contain 1", "not called tie")
    lines = [
        f"{total} ratios of a function to itself; {inside} intervals contain 1, {wrong} are not "
        "called tie.",
        "",
        *machine.table(heads, rows),
    ]
    title = "PyTorch against itself on a CPU"
    machine.publish("clock_cpu", title, machine.facts("cpu"), lines, folder=options.results)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
