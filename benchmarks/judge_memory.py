"""What the worst input at each limit adds to the judge's memory, beyond the input itself.

    python benchmarks/judge_memory.py

Each row is read in a forked process whose peak is measured. `fuzz_targets.py` has the readers; the
answers of real children are measured by tests/unit/runner/test_hostile_children.py.
"""

from __future__ import annotations

import base64
import json
import os
import re
import resource
import struct
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import machine
from fuzz_targets import FINDINGS, PREDICTIONS, SUBMISSION, targets

from kerneltruth.documents.model import CONTAINER, ITEM, VALUES, VALUES_OF_RUN
from kerneltruth.runner.bundle import Bundle, bundle_text
from kerneltruth.runner.link import LARGEST_HEADER
from kerneltruth.runner.regular_file import MOST_BYTES
from kerneltruth.suites.lines import MAX_JSON_BYTES, MAX_LINE_BYTES
from kerneltruth.suites.submission import MAX_SOURCE_BYTES

MOST = 300 * 2**20
# What JSON may hold, as short as it can be, by what takes the most memory.
_FILLED = {
    "lists": "[],",
    "objects": "{},",
    "objects of one key": '{"a":1},',
    "numbers": "1.5,",
    "short texts": '"xyz",',
    "one text": None,
}


# Whole documents of a run.
_OF_RUN = ("finding", "export", "manifest")


def filled(before: str, unit: str | None, after: str, size: int) -> bytes:
    """JSON of at most a size, with as many units as fit between two texts."""
    room = size - len(before) - len(after) - 8
    if unit is None:
        return f'{before}"{"x" * room}"{after}'.encode()
    return f"{before}{unit * (room // len(unit))}0{after}".encode()


def bounded(before: str, unit: str | None, after: str, size: int, most: int) -> bytes:
    """As much as a reader still parses."""
    if unit is not None:
        containers, commas = sum(map(unit.count, "[{")), unit.count(",")
        count = most // (containers * CONTAINER + commas * ITEM)
        size = min(size, (count - 200) * len(unit))
    return filled(before, unit, after, size)


def inputs() -> Iterator[tuple[str, str, bytes]]:
    """Targets, what they are given, and the bytes."""
    finding = FINDINGS[0].decode().strip()[:-1]
    for name, unit in _FILLED.items():
        places = [
            ("wire", '{"~kind":"Observation","ended":"raised","results":[', "]}", LARGEST_HEADER),
            ("finding", f'{finding},"more":[', "]}", MOST_BYTES),
            ("export", f'{{"schema":2,"finding":{finding}}},"source":[', "]}", MOST_BYTES),
            ("ledger", '{"key":"a","more":[', "]}", MOST_BYTES),
            ("manifest", '{"schema":2,"tasks":[', "]}", MOST_BYTES),
            ("predictions", '{"task":"relu","code":[', "]}", MAX_LINE_BYTES),
            ("kernelbench", '{"kernels":[', "]}", MAX_JSON_BYTES),
            ("endpoint", '{"choices":[', "]}", 32 * 2**20),
        ]
        for target, before, after, size in places:
            most = VALUES_OF_RUN if target in _OF_RUN else VALUES
            yield target, name, bounded(before, unit, after, size, most)
    for name, unit in {
        "calls": "f(x)\n",
        "names": "a,",
        "numbers": "1,",
        "brackets": "()\n",
        "operators": "a+",
        "subscripts": "a[0]\n",
        "functions": "def f(a=1):b\n",
    }.items():
        words = len(re.findall(r"\w+|[^\w\s]", unit))
        text = (unit * (100_000 // words - 8)).rstrip("+")
        yield "screen", f"{name}, 100,000 words", text.encode()
    yield "screen", "one text, 4 MiB", b'"' + b"x" * (MAX_SOURCE_BYTES - 2) + b'"'
    yield "reply", "fences, 4 MiB", b"```\nx = 1\n```\n" * (MAX_SOURCE_BYTES // 14)
    packed = Bundle(module="k", function="f", files={"k.py": b"x", "k.so": b"\xff" * (2**24 - 1)})
    yield "bundle", "16 MiB in few bytes", bundle_text(packed).encode()
    noise = Bundle(module="k", function="f", files={"k.py": b"x", "k.so": os.urandom(2**24 - 1)})
    yield "bundle", "16 MiB of noise", bundle_text(noise).encode()
    size = MOST_BYTES - 200
    head = json.dumps({"x": {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}}).encode()
    stored = struct.pack("<Q", len(head)) + head + bytes(size)
    yield "inputs", "64 MiB", stored
    exported = {"schema": 2, "version": "1", "finding": json.loads(FINDINGS[0]), "source": "x"}
    coded = base64.b64encode(stored[: MOST_BYTES * 3 // 4 - 2**16]).decode()
    yield "export", "inputs of 48 MiB", json.dumps(exported | {"inputs": coded}).encode()
    yield "predictions", "as they are", PREDICTIONS
    many = {f"level_1_problem_2_sample_{n}": "x = 1\n" * 50 for n in range(20_000)}
    yield "kernelbench", "20,000 sources", json.dumps(SUBMISSION | {"kernels": many}).encode()


def grown(read: Callable[[bytes], None], data: bytes) -> tuple[int, float]:
    """By how many bytes a process's peak grows while it reads, and its seconds."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        Path("/proc/self/clear_refs").write_text("5")
        before, start = _resident("VmRSS"), time.process_time()
        try:
            read(data)
        finally:
            took = time.process_time() - start
            os.write(writer, struct.pack("qd", _resident("VmHWM") - before, took))
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as said:
        growth, seconds = struct.unpack("qd", said.read())
    os.waitpid(child, 0)
    return int(growth), float(seconds)


def _resident(which: str) -> int:
    found = re.search(rf"{which}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) * 1024


def main() -> int:
    options = machine.parser(__doc__.splitlines()[0]).parse_args()
    known = targets()
    rows: list[tuple[str, str, float, float, float]] = []
    worst: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as name:
        for target, about, data in inputs():

            def read(given: bytes, reads: str = target) -> None:
                try:
                    known[reads].read(given, Path(name))
                except known[reads].refusals:
                    pass

            growth, seconds = grown(read, data)
            print(target, about, f"{growth / 2**20:.0f} MiB", file=sys.stderr)
            beyond = growth - len(data)
            rows.append((target, about, len(data) / 2**20, beyond / 2**20, seconds))
            worst[target] = max(worst.get(target, 0), beyond)
    shown = [max((r for r in rows if r[0] == name), key=lambda r: r[3]) for name in worst]
    slowest = max(rows, key=lambda r: r[4])
    machine.publish(
        "judge_memory",
        "What the worst inputs add to the judge's memory",
        machine.facts("cpu"),
        [
            f"{len(rows)} inputs at the limits of {len(worst)} readers; the worst of each reader. "
            "The peak counts beyond the input itself.",
            f"The slowest took {slowest[4]:.1f} s of CPU time: {slowest[0]}, {slowest[1]}.",
            "",
            *machine.table(
                ("reader", "input", "its MiB", "growth beyond it, MiB", "CPU seconds"),
                [(n, a, f"{s:.1f}", f"{g:.0f}", f"{t:.1f}") for n, a, s, g, t in shown],
            ),
        ],
        folder=options.results,
    )
    return int(max(worst.values()) > MOST)


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (8 * 2**30, 8 * 2**30))
    sys.exit(main())
