"""`run` killed at random times: after resuming, every attempt has one outcome, the undisturbed one.

    python benchmarks/kill_runs.py [--rounds 50] [--device cpu] [--executor local]

Each round begins a run of the same submissions and, at a random time of it, kills -9 the parent, a
judge, or the parent of candidates' processes, or fills the disk that the run is written to. Then
the command is repeated until it ends by itself, and its results are compared with an undisturbed
run's.
The disk is a small file system of its own where one can be mounted, else a limit on file sizes.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import machine

from kerneltruth.corpus import ENTRIES, source

KERNELS = (
    "relu",
    "relu_strided",
    "relu_grid_capped",
    "gelu",
    "gelu_no_half",
    "softmax",
    "softmax_no_max",
    "sigmoid",
    "tanh_naive_exp",
    "rmsnorm",
    "rmsnorm_no_sqrt",
    "numpy_softmax",
)
BROKEN = {
    "no_python": "def (",
    "no_entry": "x = 1\n",
    "raises": "def relu(x): raise ValueError(x)\n",
}
ALL_KINDS = ("parent", "judge", "zygote", "disk")
DISK_BYTES = 4 * 2**20
MOST_RESUMES = 10


def make_submissions(folder: Path) -> Path:
    """A prediction file of corpus kernels, broken sources and a repeated one."""
    known = {entry.name: entry for entry in ENTRIES}
    lines = [
        {"file": f"{known[name].task}.py", "predict": source(known[name])}
        for name in KERNELS
        if name in known
    ]
    lines += [{"file": "relu.py", "predict": text} for text in BROKEN]
    lines.append(lines[0])
    path = folder / "submissions.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def command(options: argparse.Namespace, submissions: Path, out: Path) -> list[str]:
    return [
        *(sys.executable, "-m", "kerneltruth", "run", "--suite", "core", "--seed", "0"),
        *("--candidates", str(submissions), "--out", str(out), "--device", options.device),
        *("--cases", "8", "--no-explain", "--stage", "exe", "--workers", str(options.workers)),
    ]


def outcomes(out: Path) -> dict[str, str]:
    """What each attempt came to, by key; a key that occurs twice is an error."""
    found: dict[str, str] = {}
    for raw in (out / "results.jsonl").read_text().splitlines():
        line = json.loads(raw)
        if line["key"] in found:
            raise SystemExit(f"{line['key']} has two outcomes")
        stages = line["stages"]
        found[line["key"]] = json.dumps([stages["call"]["outcome"], stages["exe"]])
    return found


def family(root: int) -> dict[str, list[int]]:
    """Processes below the command, by what they are."""
    parents: dict[int, int] = {}
    words: dict[int, str] = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()
            parents[int(entry)] = int(fields[1])
            words[int(entry)] = Path(f"/proc/{entry}/cmdline").read_bytes().decode(errors="replace")
    children = [pid for pid, parent in parents.items() if parent == root]
    return {
        "parent": [root],
        "zygote": [p for p in children if "runner.zygote" in words[p]],
        "judge": [p for p in children if "runner.zygote" not in words[p]],
    }


class Disk:
    """Where runs are written: a file system that can be filled, or a plain folder."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "disk"
        self.path.mkdir()
        size = f"size={DISK_BYTES}"
        mount = ["mount", "-t", "tmpfs", "-o", size, "tmpfs", str(self.path)]
        self.mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0

    def fill(self) -> None:
        """Write until nothing is left."""
        free = os.statvfs(self.path)
        with contextlib.suppress(OSError):
            (self.path / "filling").write_bytes(bytes(free.f_bavail * free.f_frsize))

    def free(self) -> None:
        """Undo `fill`."""
        (self.path / "filling").unlink(missing_ok=True)

    def close(self) -> None:
        """Unmount it."""
        if self.mounted:
            subprocess.run(["umount", "-l", str(self.path)], check=False)


def disturb(kind: str, process: subprocess.Popen[bytes], disk: Disk, chance: random.Random) -> bool:
    """Do the harm, once there is what to harm; False where the run ended before that."""
    while process.poll() is None:
        if kind == "disk":
            disk.fill()
            return True
        victims = family(process.pid)[kind]
        if victims:
            with contextlib.suppress(ProcessLookupError):
                os.kill(chance.choice(victims), signal.SIGKILL)
            return True
        time.sleep(0.05)
    return False


def one_round(
    options: argparse.Namespace, submissions: Path, disk: Disk, kind: str, after_s: float, seed: int
) -> tuple[dict[str, str], bool, int]:
    """One disturbed run and its resumptions; outcomes, whether harm was done, resumptions."""
    out = disk.path / "run"
    shutil.rmtree(out, ignore_errors=True)
    limit: Callable[[], None] | None = None
    if kind == "disk" and not disk.mounted:
        size = random.Random(seed).randrange(2_000, 30_000)

        limit = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (size, size))
    process = subprocess.Popen(
        command(options, submissions, out),
        preexec_fn=limit,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(after_s)
    harmed = limit is not None or disturb(kind, process, disk, random.Random(seed))
    code = process.wait(600)
    disk.free()
    resumes = 0
    while code != 0:
        resumes += 1
        if resumes > MOST_RESUMES:
            raise SystemExit(f"{kind}: still exit code {code} after {MOST_RESUMES} resumptions")
        ran = subprocess.run(
            command(options, submissions, out),
            stderr=subprocess.PIPE,
            text=True,
            stdout=subprocess.DEVNULL,
            check=False,
        )
        code = ran.returncode
        if code not in (0, 3):
            raise SystemExit(f"{kind}: exit code {code} on resuming: {ran.stderr[-2000:]}")
    return outcomes(out), harmed, resumes


def main() -> int:
    parser = machine.parser(__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    options.device = machine.device_of(options)
    chance = random.Random(options.seed)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        submissions = make_submissions(folder)
        disk = Disk(folder)
        try:
            subprocess.run(
                command(options, submissions, folder / "plain"),
                check=True,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            start = time.monotonic()
            subprocess.run(
                command(options, submissions, folder / "timed"),
                check=True,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            lasts = time.monotonic() - start
            want = outcomes(folder / "plain")
            counts: Counter[tuple[str, str]] = Counter()
            resumes = 0
            for number in range(options.rounds):
                kind = ALL_KINDS[number % len(ALL_KINDS)]
                got, harmed, again = one_round(
                    options, submissions, disk, kind, chance.uniform(0.05, 0.9) * lasts, number
                )
                resumes += again
                same = got == want
                counts[kind, "harmed" if harmed else "too late to harm"] += 1
                counts[kind, "same outcomes" if same else "DIFFERENT"] += 1
                if not same:
                    print(
                        kind,
                        {
                            k: (want.get(k), got.get(k))
                            for k in want.keys() | got.keys()
                            if want.get(k) != got.get(k)
                        },
                        file=sys.stderr,
                    )
        finally:
            disk.close()
    columns = ("harmed", "too late to harm", "same outcomes", "DIFFERENT")
    rows = [(kind, *(counts[kind, c] for c in columns)) for kind in ALL_KINDS]
    lines = [
        *machine.table(("what was killed or filled", *columns), rows),
        "",
        f"{options.rounds} rounds of {len(want)} attempts, {resumes} resumptions, "
        f"{time.monotonic() - began:.0f} s; an undisturbed run takes {lasts:.1f} s.",
    ]
    about = machine.facts(options.device)
    machine.publish("kill_runs", "Runs killed at random", about, lines, folder=options.results)
    return 0 if not sum(n for (_, word), n in counts.items() if word == "DIFFERENT") else 1


if __name__ == "__main__":
    sys.exit(main())
