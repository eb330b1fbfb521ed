"""How long a user waits: `kerneltruth --help`, and `check` of a small kernel with warm caches.

    python benchmarks/latency.py [--device auto] [--kernel relu] [--repeats 5]

Each figure is the median of whole processes, timed from outside.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import machine

from kerneltruth.corpus import ENTRIES, source


def wall_s(command: Sequence[str], environment: dict[str, str], folder: Path) -> tuple[float, str]:
    """Seconds from the start of the command to its end, and what it printed."""
    start = time.monotonic()
    ran = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    seconds = time.monotonic() - start
    if ran.returncode != 0:
        raise SystemExit(f"{' '.join(command)} ended with {ran.returncode}: {ran.stderr[-2000:]}")
    return seconds, ran.stdout


def walls(
    command: Sequence[str], environment: dict[str, str], folder: Path, repeats: int
) -> list[float]:
    """Seconds of each repetition, after one that fills the file cache."""
    wall_s(command, environment, folder)
    return [wall_s(command, environment, folder)[0] for _ in range(repeats)]


def main() -> int:
    parser = machine.parser(__doc__.splitlines()[0])
    parser.add_argument("--kernel", default="relu", help="which control `check` judges")
    parser.add_argument("--repeats", type=int, default=5, help="of each command but --help")
    options = parser.parse_args()
    device = machine.device_of(options)
    entry = next(e for e in ENTRIES if e.name == options.kernel)
    # A relative PYTHONPATH would lead nowhere from the temporary folder.
    paths = [str(Path(p).absolute()) for p in os.environ.get("PYTHONPATH", "").split(":") if p]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        environment = {
            **os.environ,
            "PYTHONPATH": ":".join(paths),
            "XDG_CACHE_HOME": str(folder / "cache"),
        }
        (folder / f"{entry.name}.py").write_text(source(entry))
        program = [sys.executable, "-m", "kerneltruth"]
        check = [*program, "check", f"{entry.name}.py", "--task", entry.task, "--device", device]
        check += ["--seed", "0"]
        checked = f"`kerneltruth check {entry.name}.py`"
        times = {
            "`kerneltruth --help`": walls([*program, "--help"], environment, folder, 10),
            f"`kerneltruth check {entry.name}.py`": walls(
                check, environment, folder, options.repeats
            ),
            "`import torch`": walls(
                [sys.executable, "-c", "import torch"], environment, folder, options.repeats
            ),
            "`import triton, torch`": walls(
                [sys.executable, "-c", "import triton, torch"], environment, folder, options.repeats
            ),
        }
        document = json.loads(wall_s([*check, "--json"], environment, folder)[1])
    medians = {what: statistics.median(seconds) for what, seconds in times.items()}
    rows = [
        (what, round(medians[what], 2), round(min(s), 2), round(max(s), 2), len(s))
        for what, s in times.items()
    ]
    whole, torch_s = medians[checked], medians["`import torch`"]
    lines = [
        *machine.table(("command", "median, s", "least", "most", "repeats"), rows),
        "",
        f"`check` judged {document['cases']} cases: {document['verdict']}. Importing torch is "
        f"{torch_s / whole:.0%} of its time, judging {document['seconds'] / whole:.0%}.",
    ]
    about = machine.facts(device)
    title = "Latency of the command line"
    data = {"seconds": times, "judging_s": document["seconds"], "cases": document["cases"]}
    machine.publish("latency", title, about, lines, folder=options.results, data=data)
    return 0


if __name__ == "__main__":
    sys.exit(main())
