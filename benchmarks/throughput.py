"""How many candidates an hour `run` judges, and whether the judge's memory stays flat.

    python benchmarks/throughput.py [--device auto] [--attempts 400] [--cases 16] [--workers N]
    python benchmarks/throughput.py --small --attempts 10000 --cases 4

Every candidate is a kernel of the corpus made a source of its own, so that each is compiled from
cold in a fresh process, judged in the exe stage on 16 cases and, if wrong, explained. With --small
they are plain torch functions: many attempts in little time, to watch memory.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import machine

from kerneltruth.corpus import ENTRIES, source

PERIOD_S = 2.0
SMALL = "import torch\nNUMBER = {number}\ndef relu(input):\n    return torch.relu(input)\n"


def write_submissions(path: Path, attempts: int, *, small: bool) -> None:
    """So many sources, each different from all others."""
    kernels = [e for e in ENTRIES if "triton" in source(e)]
    with path.open("w") as file:
        for number in range(attempts):
            entry = kernels[number % len(kernels)]
            text = SMALL.format(number=number) if small else f"{source(entry)}\n# {number}\n"
            task = "relu" if small else entry.task
            file.write(json.dumps({"file": f"{task}.py", "predict": text}) + "\n")


def resident_bytes(root: int) -> list[int]:
    """Resident memory of the command and of each judge, the command first; children left out."""
    found = []
    for pid in [root, *(int(p) for p in _children(root))]:
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes()
            if pid != root and b"runner.zygote" in words:
                continue
            text = Path(f"/proc/{pid}/smaps_rollup").read_text()
        except OSError:
            continue
        found.append(
            sum(int(x.split()[1]) * 1024 for x in text.splitlines() if x[:8] == "Private_")
        )
    return found


def _children(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []


class Watch:
    """Samples a command's memory and progress until it ends."""

    def __init__(self, process: subprocess.Popen[bytes], results: Path) -> None:
        self.samples: list[tuple[int, int, int]] = []
        self._process, self._results = process, results
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        size, done = 0, 0
        while self._process.poll() is None:
            if self._results.exists():
                with self._results.open("rb") as file:
                    file.seek(size)
                    new = file.read()
                size, done = size + len(new), done + new.count(b"\n")
            memory = resident_bytes(self._process.pid)
            if len(memory) > 1:
                self.samples.append((done, memory[0], max(memory[1:])))
            time.sleep(PERIOD_S)

    def end(self) -> None:
        """Wait for the last sample."""
        self._thread.join()


def run(
    options: Any,
    device: str,
    folder: Path,
    *,
    isolation: str | None = None,
    sources: Path | None = None,
) -> tuple[dict[str, Any], Watch, float]:
    """One run as a user makes it, with an empty compile cache; of other sources, where given."""
    submissions, out = folder / "submissions.jsonl", folder / "run"
    write_submissions(submissions, options.attempts, small=options.small)
    command = [
        *(sys.executable, "-m", "kerneltruth", "run", "--suite", "core", "--json"),
        *("--seed", "0"),
        *("--candidates", str(submissions), "--out", str(out), "--device", device),
        *("--cases", str(options.cases), "--stage", "exe"),
        *(("--workers", str(options.workers)) if options.workers else ()),
        *(("--isolation", isolation) if isolation else ()),
    ]
    environment = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache")}
    if sources:
        environment["PYTHONPATH"] = str(sources)
    start = time.monotonic()
    with (folder / "document.json").open("wb") as document:
        process = subprocess.Popen(
            command, env=environment, stdout=document, stderr=subprocess.DEVNULL
        )
        watch = Watch(process, out / "results.jsonl")
        code = process.wait()
    seconds = time.monotonic() - start
    watch.end()
    if code:
        raise SystemExit(f"run ended with exit code {code}")
    return json.loads((folder / "document.json").read_text()), watch, seconds


def memory_table(watch: Watch, attempts: int) -> list[str]:
    """Medians of memory over tenths of the attempts."""
    rows = []
    for tenth in range(10):
        low, high = attempts * tenth // 10, attempts * (tenth + 1) // 10
        here = [s for s in watch.samples if low < s[0] <= high]
        if here:
            parent, judge = (statistics.median(s[i] for s in here) / 2**20 for i in (1, 2))
            rows.append((f"{low} to {high}", f"{parent:.0f}", f"{judge:.0f}"))
    return list(machine.table(("attempts", "command, MiB", "largest judge, MiB"), rows))


def add_options(parser: argparse.ArgumentParser, *, attempts: int) -> None:
    """What `run` asks for: how much is judged, and by how many."""
    parser.add_argument("--attempts", type=int, default=attempts)
    parser.add_argument("--cases", type=int, default=16)
    parser.add_argument("--workers", type=int)
    parser.set_defaults(small=False)


def main() -> int:
    parser = machine.parser(__doc__.splitlines()[0])
    add_options(parser, attempts=400)
    parser.add_argument("--small", action="store_true", help="plain torch functions")
    options = parser.parse_args()
    device = machine.device_of(options)
    with tempfile.TemporaryDirectory() as folder:
        document, watch, seconds = run(options, device, Path(folder))
    outcomes = document["stages"]["exe"]
    rate = 3600 * document["attempts"] / seconds
    lines = [
        f"{document['attempts']} candidates, {options.cases} cases each, in {seconds:.1f} s from "
        f"start to end: {rate:,.0f} an hour.",
        "",
        f"Outcomes of the exe stage: {', '.join(f'{k} {n}' for k, n in sorted(outcomes.items()))}.",
        "",
        "Private memory, median over each tenth of the attempts:",
        "",
        *memory_table(watch, document["attempts"]),
    ]
    name = "throughput_small" if options.small else "throughput"
    title = "Candidates an hour" + (", plain torch functions" if options.small else "")
    machine.publish(name, title, machine.facts(device), lines, folder=options.results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
