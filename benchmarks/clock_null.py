"""Kernels against copies of themselves: does the interval of the ratio contain 1?

    python benchmarks/clock_null.py [--rounds 3] [--effort time|run] [--device cuda]
        [--suite NAME --only TASK ...]

Four copies of each kernel, each in a process of its own, run in turn, in every round in fresh ones;
each two of them are a null pair. Intervals are made as `kerneltruth time` makes them, or as the
perf stage of `run` does, with this machine's noise. `--only` takes tasks of a suite in place of the
kernels below, on all their timed shapes; `--suite kernelbench:CHECKOUT` has networks of many calls.
"""

from __future__ import annotations

import itertools
import json
import math
import statistics
import sys
from dataclasses import replace
from pathlib import Path

import machine

from kerneltruth.cases.philox import stream
from kerneltruth.clock.protocol.effort import RUN_EFFORT, Effort
from kerneltruth.clock.protocol.inputs import make_bench_inputs
from kerneltruth.clock.protocol.sides import Side, SideError
from kerneltruth.clock.schedule.benchmark import InterleavedBenchmark
from kerneltruth.clock.schedule.timed_cases import timed_cases
from kerneltruth.clock.statistics.summary import (
    Block,
    Interval,
    between_processes,
    enough,
    outcome,
    ratio_interval,
)
from kerneltruth.documents.case import Case
from kerneltruth.engine.benchmark.baselines import baseline_sources
from kerneltruth.engine.benchmark.machine import LEAST_NOISE, DeviceWatch, Machine, known_machine
from kerneltruth.engine.benchmark.memory import limit_memory, memory_of
from kerneltruth.runner.candidate import Candidate, read_candidate
from kerneltruth.runner.host import Runner
from kerneltruth.suites.catalog import opened
from kerneltruth.suites.pytorch import eager_of
from kerneltruth.tasks.registry import find, key_of
from kerneltruth.tasks.spec import Task

COPIES = 4
# From here on half-widths have an aim of their own.
LONG_S = 5e-5
# Results are graded elsewhere.
EFFORTS = {"time": replace(Effort(), shown=0), "run": replace(RUN_EFFORT, shown=0)}
# (task, index of the shape, how often the entry calls it): a few microseconds to milliseconds.
KERNELS = (
    ("relu", 0, 1),
    ("matmul_fp16", 0, 1),
    ("softmax", 0, 1),
    ("matmul_fp16", 1, 1),
    ("conv2d", 0, 1),
    ("relu", 1, 1),
    ("softmax", 1, 1),
    ("add", 1, 1),
    ("matmul_fp16", 2, 1),
    ("matmul", 1, 1),
    ("matmul", 2, 1),
    ("matmul", 2, 2),
)


def repeated(task: Task, times: int) -> Candidate:
    """Eager PyTorch, made to do its work several times."""
    eager = eager_of(task)
    assert eager is not None
    if times == 1:
        return eager
    once = eager.source.replace(f"def {task.entry}(", "def _once(")
    more = (
        f"\n\ndef {task.entry}(input, other, **named):\n"
        f"    for _ in range({times - 1}):\n        _once(input, other)\n"
        "    return _once(input, other)\n"
    )
    return read_candidate(
        once + more, eager.path, task_names=(task.name,), task=task.name, entry=task.entry
    )


def blocks_of(benchmark: InterleavedBenchmark, one: str, other: str) -> list[Block]:
    return [
        Block(
            candidate_s=tuple(batch.per_call_s for batch in block[one]),
            baseline_s=tuple(batch.per_call_s for batch in block[other]),
        )
        for block in benchmark.blocks
    ]


def kernels_of(suite: str | None, only: list[str]):
    """What is timed: its name, the candidate, the task, and the case."""
    if not only:
        for name, shape, times in KERNELS:
            task = find(f"kernelbenchx/{name}")
            said = f"{name}[{shape}]" + (f" x{times}" if times > 1 else "")
            yield said, repeated(task, times), task, timed_cases(task)[shape]
    for name in only:
        task = find(key_of(name, suite or ""), suite)
        for shape, case in enumerate(timed_cases(task)):
            yield f"{name}[{shape}]", baseline_sources(task)["eager"], task, case


def pairs(
    runner: Runner,
    about: Machine,
    effort: Effort,
    kernel: tuple[str, Candidate, Task, Case],
    turn: int,
):
    """The intervals of all pairs of copies of a kernel, with what they are about."""
    name, candidate, task, case = kernel
    sessions = [runner.open(candidate, mode="time") for _ in range(COPIES)]
    names = [str(i) for i in range(COPIES)]
    sides = [Side(name=n, child=s) for n, s in zip(names, sessions, strict=True)]
    try:
        benchmark = InterleavedBenchmark(
            sides=sides,
            inputs=make_bench_inputs(task, case, device=runner.device),
            effort=limit_memory(effort, memory_of(runner.device).total, COPIES),
            rng=stream(turn, "null", name),
        )
        benchmark.prepare()
        watch = DeviceWatch(about.telemetry)
        both = list(itertools.combinations(names, 2))
        least, precision = effort.blocks[0], effort.precision
        benchmark.run(
            lambda c: all(enough(blocks_of(c, *p), precision=precision, least=least) for p in both),
            watch.disturbance,
        )
    finally:
        for session in sessions:
            session.close()
    seconds = statistics.median(batch.per_call_s for b in benchmark.blocks for batch in b["0"])
    for one, other in both:
        found = ratio_interval(blocks_of(benchmark, one, other))
        yield {
            "kernel": name,
            "seconds": seconds,
            "estimate": found.estimate,
            "bare_low": found.low,
            "bare_high": found.high,
            "blocks": len(benchmark.blocks),
            "repeated": len(benchmark.disturbed),
            "method": "graph" if benchmark.graphs else "calls",
            "not_captured": [s.why_not_captured for s in sides if s.why_not_captured],
        }


def bare(pair: dict) -> Interval:
    """The interval of these two processes."""
    return Interval(estimate=pair["estimate"], low=pair["bare_low"], high=pair["bare_high"])


def widened(pair: dict, noise: float) -> Interval:
    """The interval as it is given to users: with what differs between processes."""
    return between_processes(bare(pair), pair["blocks"], noise_floor=noise)


def holding(intervals: list[Interval]) -> str:
    """How many contain 1."""
    inside = sum(i.low <= 1 <= i.high for i in intervals)
    return f"{inside} of {len(intervals)} ({inside / len(intervals):.1%})"


def rows(found: list[dict], noise: float):
    for kernel in dict.fromkeys(f["kernel"] for f in found):
        mine = [f for f in found if f["kernel"] == kernel]
        given = [widened(f, noise) for f in mine]
        alone = [bare(f) for f in mine]
        yield (
            kernel,
            f"{statistics.median(f['seconds'] for f in mine) * 1e6:.1f}",
            len(mine),
            sum(i.low <= 1 <= i.high for i in given),
            f"{max(i.half_width for i in given):.2%}",
            f"{statistics.median(i.half_width for i in given):.2%}",
            f"{statistics.median(i.half_width for i in alone):.2%}",
            sum(i.low <= 1 <= i.high for i in alone),
            f"{statistics.pstdev(math.log(f['estimate']) for f in mine):.2%}",
            f"{statistics.mean(f['blocks'] for f in mine):.0f}",
            "/".join(sorted({f["method"] for f in mine})),
        )


def earlier(paths: list[Path]) -> list[str]:
    """Lines on runs on which the least noise and `SCATTER` were chosen."""
    lines = []
    for path in paths:
        known = json.loads(path.read_text())["pairs"]
        both = [widened(p, LEAST_NOISE) for p in known]
        floor = [bare(p).widened(LEAST_NOISE) for p in known]
        lines.append(
            f"- An earlier run, {path.name}: {holding(both)} contain 1; without what the scatter "
            f"adds {holding(floor)}."
        )
    return [*lines, ""] if lines else []


def beside(paths: list[Path], found: list[dict]) -> list[str]:
    """Lines on runs on other cards, of which nothing was chosen, and on all together."""
    lines, together = [], [*found]
    for path in paths:
        known = json.loads(path.read_text())["pairs"]
        together += known
        given = [(p, widened(p, LEAST_NOISE)) for p in known]
        widest, kernel = max((i.half_width, p["kernel"]) for p, i in given if p["seconds"] > LONG_S)
        lines.append(
            f"- Another run, {path.name}: {holding([i for _, i in given])} contain 1, "
            f"{sum(outcome(i) == 'tie' for _, i in given)} are called tie; the widest half-width "
            f"above {LONG_S * 1e6:.0f} us is {widest:.2%}, of {kernel}."
        )
    if not lines:
        return []
    of = {
        kernel: [widened(p, LEAST_NOISE) for p in together if p["kernel"] == kernel]
        for kernel in dict.fromkeys(p["kernel"] for p in together)
    }
    least, second, *_ = sorted(of, key=lambda kernel: sum(i.low <= 1 <= i.high for i in of[kernel]))
    return [
        *lines,
        f"- All together: {holding([i for given in of.values() for i in given])}; of {least} "
        f"{holding(of[least])}, of {second} {holding(of[second])}, of others more.",
        "",
    ]


def measured(
    device: str, rounds: int, effort: Effort, suite: str | None, only: list[str]
) -> tuple[dict, list[dict], float]:
    """The machine, all pairs, and the noise that goes into their intervals."""
    found = []
    with Runner(device=device) as runner:
        runner.start(("time",))
        about = known_machine(runner)
        with opened(suite, runner) as named:
            kernels = list(kernels_of(named, only))
            for turn in range(rounds):
                for kernel in kernels:
                    try:
                        found += list(pairs(runner, about, effort, kernel, turn))
                    except SideError as error:
                        print(f"{kernel[0]}: {error}", file=sys.stderr)
    return machine.facts(device), found, about.noise_floor(1.0)


def main() -> int:
    parser = machine.parser(__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--effort", choices=EFFORTS, default="time", help="whose to make")
    parser.add_argument("--suite", help="whose tasks `--only` names")
    parser.add_argument("--only", nargs="*", default=[], help="tasks in place of the kernels")
    parser.add_argument("--name", help="of the report")
    parser.add_argument("--again", type=Path, help="pairs of an earlier run, in place of new ones")
    parser.add_argument(
        "--beside", type=Path, nargs="*", default=[], help="pairs of runs on other cards: told"
    )
    parser.add_argument(
        "--earlier",
        type=Path,
        nargs="*",
        default=[],
        help="pairs of earlier runs, on which the widths were chosen: told, and not counted",
    )
    options = parser.parse_args()
    if options.again:
        stored = json.loads(options.again.read_text())
        facts, found = stored["machine"], stored["pairs"]
        noise = stored.get("noise", LEAST_NOISE)
    else:
        effort = EFFORTS[options.effort]
        device = machine.device_of(options)
        facts, found, noise = measured(device, options.rounds, effort, options.suite, options.only)
    given = [widened(f, noise) for f in found]
    ties = sum(outcome(i) == "tie" for i in given)
    lines = [
        f"The interval of the ratio contains 1 in {holding(given)} of null pairs; "
        f"{ties} are called tie. Effort: that of `{options.effort}`.",
        "",
        f"Noise between processes: {noise:.2%}, and what the scatter of blocks adds; without that "
        f"{holding([bare(f).widened(noise) for f in found])} contain 1.",
        "",
        *earlier(options.earlier),
        *beside(options.beside, found),
        *machine.table(
            (
                "kernel",
                "us",
                "pairs",
                "contain 1",
                "widest half-width",
                "median",
                "without noise",
                "contain 1 without",
                "scatter of ratios",
                "blocks",
                "method",
            ),
            rows(found, noise),
        ),
    ]
    machine.publish(
        options.name
        or ("clock_null" if options.effort == "time" else f"clock_null_{options.effort}"),
        "Kernels against copies of themselves",
        facts,
        lines,
        folder=options.results,
        data={"noise": noise, "pairs": found},
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
