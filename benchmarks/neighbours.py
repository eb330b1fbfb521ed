"""What greedy and violent candidates cost those that are judged beside and after them.

    python benchmarks/neighbours.py [--ordinary 100] [--only NAME ...] [--cases 4] [--workers 2]

Two runs of the same ordinary candidates, right and wrong ones: alone, and with a hostile one before
every few. Verdicts, kinds, counts and profiles of the ordinary ones must be the same, each hostile
one must cost one line of the run, and nothing that it started or wrote may be left.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import machine

from kerneltruth.runner.containment import levels

_RIGHT = "import torch\ndef relu(input):\n    return torch.relu(input){}\n# {}\n"
# What an ordinary candidate adds to the result.
_ORDINARY = ("", ".clone()", " + 0.01", " * (input.shape[-1] < 100)")
_HOSTILE = """
import os, signal, socket, subprocess, sys, time
import torch

def nothing(*_):
    pass

{body}

def relu(input):
    harm()
    return torch.relu(input)
"""
# Each is tried where a call begins; those that end give the right result.
HOSTILE = {
    "forks": "def harm():\n    while True:\n        os.fork()",
    "forks when told to end": (
        "def harm():\n    for n in range(1, 65):\n        try:\n"
        "            signal.signal(n, lambda *_: os.fork())\n"
        "        except (OSError, ValueError):\n            pass\n    os.fork()\n    time.sleep(60)"
    ),
    "becomes a daemon": (
        "def harm():\n    if os.fork() == 0:\n        os.setsid()\n        if os.fork() == 0:\n"
        "            signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "            while True:\n                time.sleep(1)\n        os._exit(0)"
    ),
    "fills memory": (
        "kept = []\ndef harm():\n    while True:\n"
        "        kept.append(bytearray(2**26).replace(b'\\0', b'1'))"
    ),
    "fills the disk": (
        "def harm():\n    for n in range(9):\n        with open(str(n), 'wb') as file:\n"
        "            os.posix_fallocate(file.fileno(), 0, 2**30)\n    time.sleep(60)"
    ),
    "makes many files": (
        "def harm():\n    for n in range(10**6):\n        open(str(n), 'wb').close()"
    ),
    "takes descriptors": (
        "kept = []\ndef harm():\n    while True:\n        kept.append(socket.socketpair())"
    ),
    "starts threads": (
        "import threading\ndef harm():\n    while True:\n"
        "        threading.Thread(target=time.sleep, args=(60,)).start()"
    ),
    "hangs": "def harm():\n    while True:\n        pass",
    "stops its siblings": (
        "def harm():\n    for pid in range(max(2, os.getpid() - 5000), os.getpid() + 5000):\n"
        "        if pid != os.getpid():\n            try:\n"
        "                os.kill(pid, signal.SIGSTOP)\n            except OSError:\n"
        "                pass"
    ),
    "stops itself": "def harm():\n    os.kill(os.getpid(), signal.SIGSTOP)",
    "kills its session": "def harm():\n    os.killpg(0, signal.SIGKILL)",
    "prints": "def harm():\n    while True:\n        os.write(1, b'x' * 2**16)",
    "leaves System V memory": (
        "import ctypes\ndef harm():\n    libc = ctypes.CDLL(None)\n"
        "    for _ in range(9):\n        libc.shmget(0, 2**20, 0o1666)\n"
        "        libc.semget(0, 4, 0o1666)\n        libc.msgget(0, 0o1666)"
    ),
    "leaves shared memory": (
        "def harm():\n    for folder in ('/dev/shm', '/tmp', '/var/tmp', '/run'):\n        try:\n"
        "            open(f'{folder}/left-by-a-neighbour', 'wb').close()\n        except OSError:\n"
        "            pass"
    ),
}
# What a line of a run says of time, place and name; the rest must be the same.
_COMPARED = ("verdict", "kind", "passed", "profile", "hazards", "score", "stages")
# Seconds in which processes that were killed end, on a busy machine.
ENDING_S = 5.0
_LEFT_IN = ("/dev/shm", "/tmp", "/var/tmp", "/run")


def ordinary(count: int) -> list[str]:
    """As many sources, each of its own text."""
    return [_RIGHT.format(_ORDINARY[n % len(_ORDINARY)], n) for n in range(count)]


def mixed(sources: Sequence[str], hostile: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield names and sources: hostile ones in turn, with ordinary ones around them."""
    every = max(1, len(sources) // (len(hostile) + 1))
    left = list(hostile.items())
    for number, text in enumerate(sources):
        if number and number % every == 0 and left:
            name, body = left.pop(0)
            yield name, _HOSTILE.format(body=body)
        yield f"{number}", text
    yield from ((name, _HOSTILE.format(body=body)) for name, body in left)


def run(
    sources: Sequence[tuple[str, str]], options: Any, folder: Path
) -> tuple[dict[str, Any], float, list[str]]:
    """One run: the lines by name of their candidate, its seconds, and what it left."""
    folder.mkdir()
    temporary = folder / "tmp"
    temporary.mkdir()
    names = [name for name, _ in sources]
    with (folder / "given.jsonl").open("w") as file:
        for _, text in sources:
            file.write(json.dumps({"file": "relu.py", "predict": text}) + "\n")
    command = [
        *(sys.executable, "-m", "kerneltruth", "run", "--suite", "core", "--json", "--seed", "0"),
        *("--candidates", str(folder / "given.jsonl"), "--out", str(folder / "run")),
        *("--device", "cpu", "--cases", str(options.cases), "--timeout", str(options.timeout)),
        *("--workers", str(options.workers), "--stage", "exe"),
    ]
    before, start = traces(temporary), time.monotonic()
    environment = {
        **os.environ,
        "TMPDIR": str(temporary),
        "XDG_CACHE_HOME": str(folder / "cache"),
    }
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    seconds = time.monotonic() - start
    if ran.returncode:
        raise SystemExit(f"run ended with exit code {ran.returncode}: {ran.stderr[-2000:]}")
    lines: dict[str, Any] = {}
    for text in (folder / "run" / "results.jsonl").read_text().splitlines():
        line = json.loads(text)
        number = int(line["origin"].rpartition(":")[2]) - 1
        if names[number] in lines:
            raise SystemExit(f"{names[number]}: judged twice")
        lines[names[number]] = line
    return lines, seconds, _left(temporary, before)


def _left(temporary: Path, before: set[str]) -> list[str]:
    """What a run has left once its killed processes had time to end."""
    end = time.monotonic() + ENDING_S
    while (left := traces(temporary) - before) and time.monotonic() < end:
        time.sleep(0.1)
    return sorted(left)


def traces(temporary: Path) -> set[str]:
    """What candidates may leave: processes of a run, files, and System V objects."""
    found = set()
    for name in os.listdir("/proc"):
        try:
            words = Path("/proc", name, "cmdline").read_bytes() if name.isdigit() else b""
        except OSError:
            continue
        # The children of a zygote have its command line, which names its folder.
        if str(temporary).encode() in words:
            found.add(f"process {name}")
    found |= {str(path) for path in temporary.iterdir()}
    for folder in _LEFT_IN:
        path = Path(folder, "left-by-a-neighbour")
        found |= {str(path)} if path.exists() else set()
    for kind in ("shm", "sem", "msg"):
        table = Path("/proc/sysvipc", kind)
        rows = table.read_text().splitlines()[1:] if table.exists() else []
        found |= {f"System V {kind} {row.split()[1]}" for row in rows}
    return found


def judged(line: Mapping[str, Any]) -> dict[str, Any]:
    """What must be the same of an ordinary candidate."""
    found = {name: line.get(name) for name in _COMPARED}
    found |= {name: line["attempt"][name] for name in ("cases", "failed")}
    for entry in (found["profile"] or {}).values():
        entry.pop("finding", None)
    return found


def main() -> int:
    parser = machine.parser(__doc__.splitlines()[0])
    parser.add_argument("--ordinary", type=int, default=100)
    parser.add_argument("--only", action="append", help="a hostile one by name; default: all")
    parser.add_argument("--cases", type=int, default=4)
    parser.add_argument("--timeout", type=float, default=4.0)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    chosen = {name: HOSTILE[name] for name in options.only or HOSTILE}
    sources = ordinary(options.ordinary)
    with tempfile.TemporaryDirectory() as name:
        alone, alone_s, _ = run(
            [(f"{n}", t) for n, t in enumerate(sources)], options, Path(name, "a")
        )
        beside, beside_s, left = run(list(mixed(sources, chosen)), options, Path(name, "b"))
    differ = [n for n in alone if n not in beside or judged(beside[n]) != judged(alone[n])]
    for name in differ:
        print(f"{name}: {judged(alone[name])}\n  became {judged(beside[name])}", file=sys.stderr)
    rows = [
        (name, beside[name]["verdict"], str(beside[name]["attempt"]["verdict"].get("detail", "")))
        if name in beside
        else (name, "missing", "")
        for name in chosen
    ]
    machine.publish(
        "neighbours",
        "Ordinary candidates beside hostile ones",
        machine.facts("cpu"),
        [
            f"Isolation: {levels.chosen()}. "
            f"{len(sources)} ordinary candidates, {options.workers} judges: {alone_s:.0f} s alone, "
            f"{beside_s:.0f} s with {len(chosen)} hostile ones among them.",
            f"Verdicts that differ: {len(differ)}. Left behind: {', '.join(left) or 'nothing'}.",
            "",
            *machine.table(("hostile candidate", "verdict", "detail"), rows),
        ],
        folder=options.results,
    )
    return int(bool(differ or left or len(beside) != len(sources) + len(chosen)))


if __name__ == "__main__":
    sys.exit(main())
