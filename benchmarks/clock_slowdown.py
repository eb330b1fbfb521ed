"""A kernel against itself with 2% more work: how often is it called slower, and never faster?

    python benchmarks/clock_slowdown.py [--trials 40] [--device cuda]

Every trial has fresh processes. The slower twin has a delay on the device after its work, which was
calibrated to 2% of the kernel's time; the column of median ratios says what it came to.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import machine
from msgspec import structs

from kerneltruth.cases.philox import stream
from kerneltruth.clock.comparison import comparisons
from kerneltruth.clock.integrity.suspicion import by_events
from kerneltruth.clock.protocol.effort import Effort
from kerneltruth.clock.protocol.inputs import make_bench_inputs
from kerneltruth.clock.protocol.sides import Side
from kerneltruth.clock.schedule.benchmark import InterleavedBenchmark
from kerneltruth.clock.schedule.confirmation import resolve_suspicion
from kerneltruth.clock.schedule.timed_cases import timed_cases
from kerneltruth.clock.statistics.summary import Interval, between_processes, enough, outcome
from kerneltruth.engine.benchmark.machine import LEAST_NOISE, DeviceWatch, known_machine
from kerneltruth.runner.candidate import read_candidate
from kerneltruth.runner.host import Runner
from kerneltruth.tasks.registry import find

EFFORT = Effort(budget_s=1.5, blocks=(8, 60), shown=0)

TWIN = """
import torch
CYCLES = {cycles}
def {entry}({parameters}):
    out = {call}
    if CYCLES:
        torch.cuda._sleep(CYCLES)
    return out
"""

# (task, its parameters, what it calls, dims): 60 us and more on a large GPU.
KERNELS = (
    ("softmax", "input, dim, dtype=None", "torch.softmax(input, dim)", {"M": 4096, "N": 4096}),
    ("relu", "input, inplace=False", "torch.relu(input)", {"M": 8192, "N": 4096}),
    (
        "matmul_fp16",
        "input, other",
        "torch.matmul(input, other)",
        {"M": 4096, "N": 4096, "K": 4096},
    ),
    ("matmul", "input, other", "torch.matmul(input, other)", {"M": 2048, "N": 2048, "K": 2048}),
)
SHARE = 0.02


def timed(runner, inputs, effort, turn, slow, plain, about):
    """A benchmark in fresh processes."""
    with (
        runner.open(slow, mode="time") as a,
        runner.open(plain, mode="time") as b,
    ):
        benchmark = InterleavedBenchmark(
            sides=[Side(name="candidate", child=a), Side(name="plain", child=b)],
            inputs=inputs,
            effort=effort,
            rng=stream(turn, "slowdown"),
        )
        watch = DeviceWatch(about.telemetry)
        benchmark.prepare()
        benchmark.run(
            lambda c: enough(by_events(c, "plain"), precision=EFFORT.precision), watch.disturbance
        )
        resolve_suspicion(benchmark, watch.disturbance)
    return benchmark


def twin(row, cycles):
    name, parameters, call, _ = row
    text = TWIN.format(cycles=cycles, entry=name, parameters=parameters, call=call)
    return read_candidate(text, "twin.py", task_names=(name,), task=name)


def seconds_of(benchmark, side):
    return statistics.median(
        batch.per_call_s for block in benchmark.blocks for batch in block[side]
    )


def delay(runner, row, inputs, about):
    """Cycles of a delay that makes 2% of the kernel's time, from what two delays take."""
    times = []
    for cycles in (2000, 6000):
        effort = replace(EFFORT, blocks=(24, 24), budget_s=0.0)
        benchmark = timed(runner, inputs, effort, cycles, twin(row, cycles), twin(row, 0), about)
        times.append(seconds_of(benchmark, "candidate") - seconds_of(benchmark, "plain"))
    per_cycle = (times[1] - times[0]) / 4000
    wanted = SHARE * seconds_of(benchmark, "plain")
    return max(1, round(2000 + (wanted - times[0]) / per_cycle))


def trials(runner, device, about, count):
    """All trials of all kernels."""
    for row in KERNELS:
        name, dims = row[0], row[3]
        task = find(f"kernelbenchx/{name}")
        case = structs.replace(
            timed_cases(task)[0],
            dims=tuple((s, dims.get(s, n)) for s, n in timed_cases(task)[0].dims),
        )
        inputs = make_bench_inputs(task, case, device=device)
        cycles = delay(runner, row, inputs, about)
        for trial in range(count):
            benchmark = timed(runner, inputs, EFFORT, trial, twin(row, cycles), twin(row, 0), about)
            (bare,) = comparisons(benchmark, noise_floor=None)
            yield {
                "kernel": f"{name} {'x'.join(map(str, dims.values()))}",
                "cycles": cycles,
                "seconds": seconds_of(benchmark, "plain"),
                "ratio": bare.ratio.estimate,
                "bare_low": bare.ratio.low,
                "bare_high": bare.ratio.high,
                "suspect": bare.suspect,
                "blocks": len(benchmark.blocks),
            }


def called(trial, noise):
    """The outcome that users are given: with what differs between processes."""
    bare = Interval(estimate=trial["ratio"], low=trial["bare_low"], high=trial["bare_high"])
    return outcome(between_processes(bare, trial["blocks"], noise_floor=noise))


def main() -> int:
    parser = machine.parser(__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--again", type=Path, help="trials of an earlier run, in place of new ones")
    options = parser.parse_args()
    if options.again:
        stored = json.loads(options.again.read_text())
        facts, found, noise = stored["machine"], stored["trials"], LEAST_NOISE
    else:
        device = machine.device_of(options)
        with Runner(device=device) as runner:
            runner.start(("time",))
            about = known_machine(runner)
            found = list(trials(runner, device, about, options.trials))
        facts, noise = machine.facts(device), about.noise_floor(1.0)
    rows = []
    for kernel in dict.fromkeys(f["kernel"] for f in found):
        mine = [f for f in found if f["kernel"] == kernel]
        counts = Counter(called(f, noise) for f in mine)
        rows.append(
            (
                kernel,
                f"{statistics.median(f['seconds'] for f in mine) * 1e6:.1f}",
                f"{statistics.median(f['ratio'] for f in mine):.4f}",
                len(mine),
                counts["slower"],
                counts["tie"],
                counts["faster"],
                sum(f["suspect"] for f in mine),
            )
        )
    slower = sum(called(f, noise) == "slower" for f in found)
    lines = [
        f"{slower} of {len(found)} trials are called slower; "
        f"noise between processes, in every interval: {noise:.2%}.",
        "",
        *machine.table(
            ("kernel", "us", "median ratio", "trials", "slower", "tie", "faster", "suspect"), rows
        ),
    ]
    machine.publish(
        "clock_slowdown",
        "A planted slowdown of 2%",
        facts,
        lines,
        folder=options.results,
        data={"trials": found},
    )
    return int(any(called(f, noise) == "faster" for f in found))


if __name__ == "__main__":
    sys.exit(main())
