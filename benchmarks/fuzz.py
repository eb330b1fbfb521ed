"""Feed each reader of untrusted bytes what a coverage-guided fuzzer finds, and count what breaks.

    PYTHONPATH=WHERE_ATHERIS_IS python benchmarks/fuzz.py [--target wire ...] [--seconds 600]

A crash is an exception that is no refusal, or a refusal of several lines; a hang, an input that
takes over 2 s of CPU time; growth, what the process's peak memory rose by in one input. A forgery
is an input that is accepted though no judge writes it. Inputs that do any of these are kept in
`--keep`, with what was counted: a run with the same folder goes on from there. Needs atheris.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import machine
from fuzz_targets import targets

CHILD = Path(__file__).with_name("fuzz_child.py")
# A target that finishes no input for so long hangs, on whatever but its CPU time.
STANDS_STILL_S = 300
# What one input may add to the peak.
MOST_GROWTH = 300 * 2**20
_NO_ATHERIS = (
    "benchmarks/fuzz.py needs atheris: `pip install --target DIR atheris`, and run it with "
    "PYTHONPATH=DIR"
)


def measured(name: str, keep: Path, seconds: int) -> list[Any]:
    """Fuzz one target in a process of its own; return its row."""
    command = [sys.executable, str(CHILD), name, str(seconds), str(keep)]
    log = keep / f"{name}.log"
    with log.open("ab") as file:
        process = subprocess.Popen(
            command, stdout=file, stderr=file, preexec_fn=lambda: os.nice(10)
        )
        code = _ended(process, keep / f"{name}.json")
    text = log.read_text(errors="replace")
    if not (keep / f"{name}.json").exists():
        raise SystemExit(f"{name}: did not begin; see {log}")
    found = json.loads((keep / f"{name}.json").read_text())
    edges = re.findall(r"cov: (\d+)", text)
    kept = re.findall(r"corp: (\d+)", text)
    for kind in ("crashes", "hangs", "forgeries"):
        for place, count in found[kind].items():
            print(f"{name}: {kind}: {place} ({count} times)", file=sys.stderr)
    if code != 0:
        print(f"{name}: the process ended with {code}; see {log}", file=sys.stderr)
    return [
        name,
        f"{found['seconds']:.0f}",
        found["executions"],
        int(edges[-1]) if edges else None,
        int(kept[-1]) if kept else None,
        len(found["crashes"]) + (code not in (0, None)),
        len(found["hangs"]) + (code is None),
        f"{found['slowest_s']:.2f}",
        f"{found['growth'] / 2**20:.0f}",
        len(found["forgeries"]),
    ]


def _ended(process: subprocess.Popen[bytes], found: Path) -> int | None:
    """Wait for a target's process; return its exit code, or None if it stood still."""
    began = time.time()
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(5)
        last_input = found.stat().st_mtime if found.exists() else began
        if time.time() - max(began, last_input) > STANDS_STILL_S:
            process.kill()
            process.wait()
            return None


def main() -> int:
    parser = machine.parser(__doc__.splitlines()[0])
    parser.add_argument("--target", action="append", help="one of the targets; default: all")
    parser.add_argument("--seconds", type=int, default=600, help="of CPU time for each target")
    parser.add_argument("--jobs", type=int, default=1, help="targets at a time")
    parser.add_argument("--keep", type=Path, help="folder for inputs; default: a temporary one")
    options = parser.parse_args()
    if importlib.util.find_spec("atheris") is None:
        raise SystemExit(_NO_ATHERIS)
    known = list(targets())
    names = options.target or known
    if unknown := set(names) - set(known):
        raise SystemExit(f"--target {min(unknown)}: must be one of {', '.join(known)}")
    keep = options.keep or Path(tempfile.mkdtemp(prefix="fuzz-"))
    keep.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(options.jobs) as pool:
        rows = list(pool.map(lambda name: measured(name, keep, options.seconds), names))
    head = (
        *("target", "CPU s", "executions", "edges", "corpus", "crashes", "hangs", "slowest, s"),
        *("growth, MiB", "forgeries"),
    )
    machine.publish(
        "fuzz",
        "Readers of untrusted bytes, fuzzed",
        machine.facts("cpu"),
        [
            *machine.table(head, rows),
            "",
            "A hang is an input of over 2 s of CPU time; growth is what the peak of memory",
            "rose by in one input; inputs have up to 64 KiB. Crashes, hangs and forgeries",
            "are counted by place.",
        ],
        folder=options.results,
    )
    wrong = any(row[5] or row[6] or row[9] or float(row[8]) * 2**20 > MOST_GROWTH for row in rows)
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
