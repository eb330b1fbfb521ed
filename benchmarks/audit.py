"""`kerneltruth audit` as a user runs it: seconds and memory, with a cold and a warm cache.

    python benchmarks/audit.py [--device auto] [--workers N] [--keep DIR]

Memory is the peak of the sum of PSS (each shared page counted once) over the command and all its
descendants, sampled five times a second. Sampling takes a little of the processor's time itself.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import machine

PERIOD_S = 0.2
PR_SET_CHILD_SUBREAPER = 36


def descendants(root: int) -> list[int]:
    """The process and all that descend from it."""
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            after_name = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        children.setdefault(int(after_name[1]), []).append(int(entry))
    found, todo = [], [root]
    while todo:
        found.append(todo.pop())
        todo += children.get(found[-1], [])
    return found


def pss_bytes(pid: int) -> int | None:
    """Its proportional share of memory; None if it is gone or hides it."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return None
    return sum(int(line.split()[1]) * 1024 for line in text.splitlines() if line[:4] == "Pss:")


class Sampler:
    """Watches a tree of processes from a thread, until it is stopped."""

    def __init__(self, root: int) -> None:
        self.peak = 0
        self.processes = 0
        self.samples = 0
        self.cost_s = 0.0
        self._root = root
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def stop(self) -> None:
        """Take no more samples."""
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.is_set():
            start = time.thread_time()
            shares = [pss_bytes(pid) for pid in descendants(self._root)]
            total = sum(share for share in shares if share is not None)
            if total > self.peak:
                self.peak, self.processes = total, len(shares)
            self.samples += 1
            spent = time.thread_time() - start
            self.cost_s += spent
            # Never more than a tenth of one core, however many processes there are.
            self._stop.wait(max(PERIOD_S, 10 * spent))


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One run of the command."""

    cache: str
    code: int
    seconds: float
    peak_bytes: int
    processes: int
    samples: int
    sampling_s: float
    document: dict[str, Any] | None


def run(arguments: list[str], cache: Path, *, label: str) -> Measured:
    command = [sys.executable, "-m", "kerneltruth", "audit", "--json", *arguments]
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    start = time.monotonic()
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    sampler = Sampler(process.pid)
    output, _ = process.communicate()
    seconds = time.monotonic() - start
    sampler.stop()
    return Measured(
        cache=label,
        code=process.returncode,
        seconds=seconds,
        peak_bytes=sampler.peak,
        processes=sampler.processes,
        samples=sampler.samples,
        sampling_s=sampler.cost_s,
        document=json.loads(output) if output.strip() else None,
    )


def _row(r: Measured) -> tuple[str, float, int, int, int]:
    return r.cache, round(r.seconds, 1), r.peak_bytes // 2**20, r.processes, r.code


def report(runs: list[Measured]) -> list[str]:
    head = ("compile cache", "seconds", "peak memory, MiB", "processes at the peak", "exit code")
    lines = machine.table(head, [_row(run) for run in runs])
    document = runs[-1].document
    if document is None:
        return [*lines, "", "The audit gave no result; see its messages above."]
    s = document["summary"]
    lines += [
        "",
        f"- controls clean: {s['controls_clean']} of {s['controls']}",
        f"- bugs caught: {s['bugs_caught']} of {s['bugs']}",
        f"- cases judged: {s['cases']:,}, of controls {s['control_cases']:,}",
        "- illusions: " + ", ".join(f"`{name}` {n}" for name, n in s["illusions"].items()),
    ]
    lines += [f"- {note}: {count:,}" for note, count in document["notes"].items()]
    wrong = [k for k in document["kernels"] if (k["verdict"] == "pass") != (k["role"] == "control")]
    lines += [f"- MISJUDGED: {k['role']} `{k['name']}`: {k['verdict']} {k['kind']}" for k in wrong]
    cost = max(r.sampling_s / r.seconds for r in runs)
    lines += ["", f"Sampling memory took {cost:.1%} of one core."]
    return lines


def main() -> int:
    parser = machine.parser(__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, help="judges; the command's own default if left out")
    parser.add_argument("--keep", type=Path, help="keep the cold run's directory here")
    parser.add_argument("--only", action="append", default=[], help="only this kernel (repeatable)")
    options = parser.parse_args()
    device = machine.device_of(options)
    # Orphans of the command come to this process, so that none of them escapes the sampler.
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    arguments = ["--device", device]
    arguments += ["--workers", str(options.workers)] if options.workers else []
    arguments += [word for name in options.only for word in ("--only", name)]
    runs: list[Measured] = []
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder) / "cache"
        for label in ("cold", "warm"):
            kept = options.keep if label == "cold" and options.keep else Path(folder) / label
            runs.append(run([*arguments, "--out", str(kept)], cache, label=label))
    about = machine.facts(device)
    data = {
        "runs": [
            {
                "cache": r.cache,
                "exit_code": r.code,
                "seconds": r.seconds,
                "peak_bytes": r.peak_bytes,
                "processes": r.processes,
                "samples": r.samples,
                "summary": r.document and r.document["summary"],
                "notes": r.document and r.document["notes"],
            }
            for r in runs
        ]
    }
    title = "`kerneltruth audit`: time and memory"
    machine.publish("audit", title, about, report(runs), folder=options.results, data=data)
    return max(r.code for r in runs)


if __name__ == "__main__":
    sys.exit(main())
