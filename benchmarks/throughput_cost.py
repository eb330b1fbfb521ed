"""What isolation, and a device's memory that the judge keeps, cost in candidates an hour.

    python benchmarks/throughput_cost.py [--device auto] [--attempts 260] [--cases 16] [--workers N]

The run of throughput.py, with each variant twice: forwards, then backwards, so that a machine that
grows slower or faster favours none. A short run before them starts the machine's caches.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
from argparse import Namespace
from pathlib import Path

import machine
import throughput

SOURCES = Path(__file__).parents[1] / "src"
MOST_COST = 0.15
FIRST = "the level `process`"
VARIANTS = {
    FIRST: ("process", False),
    "the level `strict`": ("strict", False),
    "`strict`, and the judge keeps the device's memory": ("strict", True),
}
ASKS = "    level = levels.chosen(device=device)\n"


def without_keeper(folder: Path) -> Path:
    """A copy of the sources that says that the judge cannot keep a device's memory."""
    copy = folder / "src"
    shutil.copytree(SOURCES, copy, ignore=shutil.ignore_patterns("__pycache__"))
    module = copy / "kerneltruth" / "runner" / "device_memory.py"
    text = module.read_text()
    if text.count(ASKS) != 1:
        raise SystemExit(f"{module}: where why_not begins to try was not found; change ASKS")
    module.write_text(text.replace(ASKS, f'    return "left out for a measurement"\n{ASKS}'))
    return copy


def rate(options: Namespace, device: str, variant: str, copy: Path) -> tuple[float, str]:
    """Candidates an hour of one run from cold, and its outcomes."""
    level, keeper = VARIANTS[variant]
    sources = SOURCES if keeper else copy
    with tempfile.TemporaryDirectory() as folder:
        document, _, seconds = throughput.run(
            options, device, Path(folder), isolation=level, sources=sources
        )
    outcomes = ", ".join(f"{kind} {n}" for kind, n in sorted(document["stages"]["exe"].items()))
    return 3600 * document["attempts"] / seconds, outcomes


def main() -> int:
    parser = machine.parser(__doc__.splitlines()[0])
    throughput.add_options(parser, attempts=260)
    options = parser.parse_args()
    device = machine.device_of(options)
    names = [v for v in VARIANTS if device != "cpu" or not VARIANTS[v][1]]
    found: dict[str, list[tuple[float, str]]] = {name: [] for name in names}
    with tempfile.TemporaryDirectory() as folder:
        copy = without_keeper(Path(folder))
        rate(Namespace(**{**vars(options), "attempts": 40}), device, names[-1], copy)
        for name in [*names, *reversed(names)]:
            found[name].append(rate(options, device, name, copy))
            print(f"{name}: {found[name][-1][0]:,.0f} an hour", file=sys.stderr, flush=True)
    first = statistics.mean(n for n, _ in found[FIRST])
    costs = {name: 1 - statistics.mean(n for n, _ in found[name]) / first for name in names}
    rows = [
        (name, *(f"{n:,.0f}" for n, _ in found[name]), f"{costs[name]:.1%}", found[name][0][1])
        for name in names
    ]
    heads = ("variant", "an hour", "again, in reverse order", "cost", "outcomes of the exe stage")
    lines = [
        f"{options.attempts} candidates in each run, {options.cases} cases each, from cold.",
        "",
        *machine.table(heads, rows),
    ]
    title = "What isolation costs in candidates an hour"
    machine.publish("throughput_cost", title, machine.facts(device), lines, folder=options.results)
    return int(any(cost > MOST_COST for cost in costs.values()))


if __name__ == "__main__":
    sys.exit(main())
