"""What containment adds to the start of a child, on this machine.

    python benchmarks/containment_cost.py [--repeats 20]

Each level is applied to forked processes; the figures are medians and the slowest.
"""

from __future__ import annotations

import argparse
import os
import statistics
import struct
import tempfile
import time
from pathlib import Path

from kerneltruth.runner import sandbox
from kerneltruth.runner.containment import LEVELS, Level, applying, files, landlock, levels

MOST_S = 0.05


def once(level: Level | None, shared: tuple[files.Rule, ...], folder: Path) -> float:
    """Seconds that a forked process takes to contain itself; None applies the limits alone."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        start = time.perf_counter()
        sandbox.confine(sandbox.ResourceLimits())
        if level is not None:
            rules = landlock.merged(shared, files.private((folder,), ()))
            applying.contain(level, rules, gpu=False)
        os.write(writer, struct.pack("d", time.perf_counter() - start))
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as said:
        (seconds,) = struct.unpack("d", said.read())
    os.waitpid(child, 0)
    return float(seconds)


def main() -> None:
    """Print the figures; exit with 1 if a level takes over 50 ms."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=20)
    repeats = parser.parse_args().repeats
    here = levels.offered()
    print(f"this machine offers {here.level!r}, Landlock {here.landlock_abi}")
    start = time.perf_counter()
    shared = files.shared(os.environ, hidden=(Path.cwd(),), gpu=False)
    print(f"{len(shared)} rules, listed once per warm process: {time.perf_counter() - start:.3f} s")
    slow = False
    with tempfile.TemporaryDirectory() as folder:
        for level in (None, *LEVELS[: LEVELS.index(here.level) + 1]):
            found = [once(level, shared, Path(folder)) for _ in range(repeats)]
            middle, most = statistics.median(found), max(found)
            print(f"{level or 'limits':10} {middle * 1e3:6.1f} ms, at most {most * 1e3:6.1f} ms")
            slow |= middle > MOST_S
    raise SystemExit(int(slow))


if __name__ == "__main__":
    main()
