"""How long the library takes: its import, one warm `kt.check`, and many candidates beside `run`.

    python benchmarks/library_latency.py [--device auto] [--kernels relu softmax] [--rounds 5]

A check is timed in the caller: of the same kernel again, and of one whose source differs each time,
which is compiled anew. `Judge.check_many` and `kerneltruth run` judge the same controls with the
same seed and workers, as whole processes in turn; the least of each is compared, since what else
runs on the machine only adds.
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

import kerneltruth as kt
from kerneltruth.corpus import ENTRIES, source
from kerneltruth.engine.scheduling.scheduler import JUDGES_PER_GPU

CASES = 16
SEED = 5
# A whole process: starts, judges every file of a folder, and ends.
MANY = """
import sys
from pathlib import Path
import kerneltruth as kt
folder, device, cases, seed, workers = sys.argv[1:]
names = [p for p in sorted(Path(folder).glob("*.py"))]
with kt.Judge(device=device, workers=int(workers), seed=int(seed)) as judge:
    found = list(judge.check_many(names, suite="core", cases=int(cases)))
print(sum(report.passed for report in found), len(found))
"""


def import_s(repeats: int) -> list[float]:
    """Seconds of the import with its names, in fresh processes."""
    code = (
        "import time; start = time.perf_counter(); import kerneltruth as kt; kt.check, kt.Judge; "
        "print(time.perf_counter() - start); import sys; assert 'torch' not in sys.modules"
    )
    return [float(_out([sys.executable, "-c", code])) for _ in range(repeats)]


def check_s(judge: kt.Judge, name: str, repeats: int, *, new: bool) -> list[float]:
    """Seconds of one check of a control, in a judge that knows its task."""
    entry = next(e for e in ENTRIES if e.name == name)
    text = source(entry)
    judge.check(text, task=entry.task, cases=CASES)
    seconds = []
    for number in range(repeats):
        another = f"{text}\n# {number} {time.time()}" if new else text
        start = time.perf_counter()
        report = judge.check(another, task=entry.task, cases=CASES)
        seconds.append(time.perf_counter() - start)
        assert report.passed, report
    return seconds


def many_s(folder: Path, device: str, workers: int) -> tuple[float, int]:
    """Seconds of a process that judges a folder through the library, and how many it judged."""
    start = time.perf_counter()
    printed = _out(
        [sys.executable, "-c", MANY, str(folder), device, str(CASES), str(SEED), str(workers)]
    )
    passed, judged = map(int, printed.split())
    assert passed == judged
    return time.perf_counter() - start, judged


def run_s(folder: Path, device: str, workers: int) -> tuple[float, int]:
    """The same through `kerneltruth run`."""
    command = [sys.executable, "-m", "kerneltruth", "run", "--suite", "core", "--stage", "exe"]
    command += ["--candidates", str(folder), "--device", device, "--cases", str(CASES), "--json"]
    command += ["--seed", str(SEED), "--workers", str(workers)]
    with tempfile.TemporaryDirectory() as out:
        start = time.perf_counter()
        document = json.loads(_out([*command, "--out", f"{out}/run"]))
        seconds = time.perf_counter() - start
    assert document["stages"]["exe"] == {"pass": document["attempts"]}
    return seconds, document["attempts"]


def _out(command: Sequence[str]) -> str:
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        raise SystemExit(f"{' '.join(command)[:80]} ended with {ran.returncode}: {ran.stderr}")
    return ran.stdout


def _row(what: str, seconds: Sequence[float]) -> tuple[str, float, float, float, int]:
    middle = statistics.median(seconds)
    return what, round(middle, 3), round(min(seconds), 3), round(max(seconds), 3), len(seconds)


def main() -> int:
    parser = machine.parser(__doc__.splitlines()[0])
    parser.add_argument("--kernels", nargs="*", default=["relu", "softmax"])
    parser.add_argument("--repeats", type=int, default=30, help="of each check")
    parser.add_argument("--rounds", type=int, default=5, help="of the library and `run` in turn")
    parser.add_argument("--workers", type=int, help="one for each core, at most 8 for a GPU")
    options = parser.parse_args()
    device = machine.device_of(options)
    cores = len(os.sched_getaffinity(0))
    workers = options.workers or (cores if device == "cpu" else min(cores, JUDGES_PER_GPU))
    rows = [_row("`import kerneltruth`", import_s(10))]
    with kt.Judge(device=device, workers=1, seed=SEED) as judge:
        rows += [
            _row(
                f"`Judge.check`, {CASES} cases: {'a new' if new else 'the same'} {name}",
                check_s(judge, name, options.repeats, new=new),
            )
            for name in options.kernels
            for new in (False, True)
        ]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for entry in ENTRIES:
            if entry.role == "control":
                (folder / f"{entry.name}.py").write_text(source(entry))
        rounds = [
            (many_s(folder, device, workers), run_s(folder, device, workers))
            for _ in range(options.rounds)
        ]
    many, command = ([each[0] for each in found] for found in zip(*rounds, strict=True))
    rows += [_row("`Judge.check_many`, all controls", many), _row("`run`, the same", command)]
    judged = rounds[0][0][1]
    lines = [
        *machine.table(("what", "median, s", "least", "most", "repeats"), rows),
        "",
        f"`check_many` judged {judged} controls with {workers} workers in "
        f"{min(many) / min(command):.0%} of the least time of `run`. Load of the machine: "
        f"{os.getloadavg()[1]:.1f} processes over {cores} cores.",
    ]
    data = {"rows": rows, "judged": judged, "load": os.getloadavg(), "workers": workers}
    about = machine.facts(device)
    machine.publish(
        "library_latency", "Latency of the library", about, lines, folder=options.results, data=data
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
