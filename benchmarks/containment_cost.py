"""What containment adds to the start and the end of a child, on this machine.

    python benchmarks/containment_cost.py [--repeats 20]

First each level is applied to forked processes, as a warden and its child do it. Then children of a
warm runner are started, and ended, at each level in turn, so that a busy machine slows all alike.
"""

from __future__ import annotations

import os
import statistics
import struct
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import machine

from kerneltruth.runner import sandbox
from kerneltruth.runner.candidate import read_candidate
from kerneltruth.runner.containment import (
    LEVELS,
    Level,
    applying,
    cgroups,
    files,
    landlock,
    levels,
    namespaces,
)
from kerneltruth.runner.host import Runner

MOST_S = 0.05
SOURCE = "def relu(x): return x"


def applied(level: Level | None, shared: tuple[files.FileRule, ...]) -> float:
    """Seconds that a forked process takes to contain itself; None applies the limits alone."""
    with tempfile.TemporaryDirectory() as outside:
        reader, writer = os.pipe()
        warden = os.fork()
        if warden == 0:
            _guard(level, shared, Path(outside) / "own", writer)
        os.close(writer)
        with os.fdopen(reader, "rb") as said:
            before, child, after = struct.unpack("3d", said.read())
        os.waitpid(warden, 0)
    return float(before + child + after)


def _guard(
    level: Level | None, shared: tuple[files.FileRule, ...], folder: Path, writer: int
) -> None:
    """Do the warden's part: before the fork, and after the child's end."""
    held, group = -1, None
    alone = level == "namespaces"
    user = namespaces.own_user() if alone else None
    kept = namespaces.kept(shared)
    start = time.perf_counter()
    sandbox.make_folders(folder, user)
    if alone:
        name = f"kerneltruth-cost-{os.getpid()}"
        group = cgroups.make(name, memory=sandbox.MEMORY, tasks=1024)
        held = namespaces.enter()
    before = time.perf_counter() - start
    child = os.fork()
    if child == 0:
        start = time.perf_counter()
        sandbox.confine(sandbox.ResourceLimits(), user)
        if group is not None:
            group.join()
        if alone:
            namespaces.settle(folder, None, kept)
            folder = namespaces.FOLDER
        if level is not None:
            rules = landlock.merged(shared, files.private((folder,), (), alone=alone))
            applying.contain(level, rules, gpu=False, user=user)
        seconds = time.perf_counter() - start
        os.write(writer, struct.pack("2d", before, seconds))
        os._exit(0)
    os.waitpid(child, 0)
    start = time.perf_counter()
    if alone:
        namespaces.end(held)
    if group is not None:
        group.remove()
    os.write(writer, struct.pack("d", time.perf_counter() - start))
    os._exit(0)


def lived(runner: Runner) -> float:
    """Seconds from a child's start until it has loaded, and from there until it is gone."""
    candidate = read_candidate(SOURCE, "relu.py", task_names=("relu",))
    start = time.perf_counter()
    with runner.open(candidate) as session:
        assert session.loaded.ended == "returned", session.loaded
    return time.perf_counter() - start


def figures(name: str, found: Sequence[float], base: float = 0.0) -> tuple[object, ...]:
    """A row of a table, in milliseconds."""
    middle = statistics.median(found)
    shown = (min(found), middle, max(found), middle - base)
    return (name, *(round(1e3 * seconds, 1) for seconds in shown))


def lives(tried: Sequence[Level], repeats: int) -> dict[Level, list[float]]:
    """What children of warm runners take at each level."""
    runners = {level: Runner(device="cpu", targets=(), isolation=level) for level in tried}
    found: dict[Level, list[float]] = {level: [] for level in tried}
    try:
        for runner in runners.values():
            lived(runner)
        for _ in range(repeats):
            for level, runner in runners.items():
                found[level].append(lived(runner))
    finally:
        for runner in runners.values():
            runner.close()
    return found


def main() -> None:
    """Print the figures; exit with 1 if a level takes over 50 ms."""
    parser = machine.parser(__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=20)
    options = parser.parse_args()
    here = levels.offered()
    tried = LEVELS[: LEVELS.index(here.level) + 1]
    start = time.perf_counter()
    shared = files.shared(os.environ, hidden=(Path.cwd(),), gpu=False)
    listed = time.perf_counter() - start
    given: tuple[Level | None, ...] = (None, *tried)
    alone = {level: [applied(level, shared) for _ in range(options.repeats)] for level in given}
    whole = lives(tried, options.repeats)
    limits, plain = (statistics.median(found) for found in (alone[None], whole["process"]))
    group = "a" if cgroups.may_make() else "no"
    lines = [
        f"Landlock of version {here.landlock_abi}, {group} control group for each child, "
        f"{options.repeats} processes for each figure. A warm process lists its {len(shared)} "
        f"rules once, in {listed:.3f} s.",
        "",
        *machine.table(
            ("applied to a forked process", "least, ms", "median", "most", "beyond limits alone"),
            [figures(level or "limits alone", found, limits) for level, found in alone.items()],
        ),
        "",
        *machine.table(
            (
                "a child, from its start to its end",
                "least, ms",
                "median",
                "most",
                "beyond `process`",
            ),
            [figures(level, found, plain) for level, found in whole.items()],
        ),
    ]
    title = "What containment adds to a child"
    machine.publish("containment_cost", title, machine.facts("cpu"), lines, folder=options.results)
    slow = [found for found in whole.values() if statistics.median(found) - plain > MOST_S]
    raise SystemExit(int(bool(slow)))


if __name__ == "__main__":
    main()
