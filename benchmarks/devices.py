"""The same kernels on several devices: which verdicts differ, and how far speedups travel.

    python benchmarks/devices.py RUN RUN [RUN ...]

The runs are those of `small_study.py --part judge` on each device (FOLDER/run).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import machine


def compared(runs: list[Path], *options: str) -> str:
    """What `kerneltruth compare` prints."""
    command = [sys.executable, "-m", "kerneltruth", "compare", *map(str, runs), *options]
    about = {**os.environ, "COLUMNS": "100"}
    # Exit code 1 says that verdicts differ.
    done = subprocess.run(command, capture_output=True, text=True, env=about)
    if done.returncode not in (0, 1):
        raise SystemExit(done.stderr)
    return done.stdout


def figures(speed: dict[str, Any], baseline: str) -> tuple[object, ...]:
    spread = speed["spread"]
    return (
        baseline,
        speed["shared"],
        f"{spread['median']:.3f}",
        f"{spread['p90']:.3f}",
        f"{spread['most']:.3f}",
        speed["differ"],
        speed["flips"],
    )


def main() -> int:
    parser = machine.parser(__doc__.splitlines()[0])
    parser.add_argument("runs", type=Path, nargs="+")
    options = parser.parse_args()
    document = json.loads(compared(options.runs, "--json"))
    devices = [f"{i}. {run['device']}" for i, run in enumerate(document["runs"], 1)]
    shown = compared(options.runs)
    for i, run in enumerate(options.runs, 1):
        shown = shown.replace(str(run), f"run {i}")
    lines = [
        f"Runs: {'; '.join(devices)}.",
        "",
        f"The same verdict: {document['same']} of {document['kernels']} kernels.",
        "",
        *machine.table(
            (
                "against",
                "kernels",
                "largest over smallest speedup: median",
                "p90",
                "most",
                "differ beyond their intervals",
                "faster in one and slower in another",
            ),
            [figures(speed, name) for name, speed in document["speed"].items() if speed["shared"]],
        ),
        "",
        "```",
        shown.rstrip(),
        "```",
    ]
    about = machine.facts("cpu")
    machine.publish("devices", "Kernels on several devices", about, lines, folder=options.results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
