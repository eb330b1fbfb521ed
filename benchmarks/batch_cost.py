"""Where the seconds go that it takes to time a candidate: by message, and within a child.

    python benchmarks/batch_cost.py [--candidates 4] [--device cuda]

First right kernels are timed with the effort of `run`, one after the other as there, and the
judge's seconds are split by what a child was asked for. Then the parts of a batch and of a
refill are made in this process, each by itself.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from typing import Any

import machine
import torch

from kerneltruth.cases.philox import stream
from kerneltruth.clock.protocol.effort import RUN_EFFORT
from kerneltruth.clock.protocol.inputs import BenchInputs, make_bench_inputs
from kerneltruth.clock.protocol.sides import Side
from kerneltruth.clock.schedule.timed_cases import timed_cases
from kerneltruth.engine.benchmark.baselines import CANDIDATE, baseline_sources
from kerneltruth.engine.benchmark.benchmarker import DEFAULT_BASELINES, Benchmarker
from kerneltruth.engine.benchmark.machine import known_machine
from kerneltruth.engine.devices import cache_root
from kerneltruth.runner.candidate import read_candidate
from kerneltruth.runner.host import Runner
from kerneltruth.runner.timing import timed_worker
from kerneltruth.runner.timing.messages import AllocateBuffers, PrepareInputs, RunBatch
from kerneltruth.tasks.registry import find

TASKS = ("softmax", "gelu", "sum", "matmul")
# Rows of a batch whose parts are looked at.
ROWS = 24
REPEATS = 30

Seconds = defaultdict[tuple[str, str], list[float]]


def by_message(device: str, candidates: int) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Time candidates; lines on what each task took, and a row for each message."""
    found: Seconds = defaultdict(list)
    do = Side.do

    def timed(side: Side, message: Any, deadline_s: float) -> Any:
        began = time.perf_counter()
        try:
            return do(side, message, deadline_s)
        finally:
            who = "candidate" if side.name == CANDIDATE else "baselines"
            what = type(message).__name__.lower()
            if isinstance(message, RunBatch):
                what += " of graphs" if message.graphs else " of calls"
            found[who, what].append(time.perf_counter() - began)

    setattr(Side, "do", timed)  # noqa: B010
    lines = []
    with Runner(device=device, cache_root=cache_root()) as runner:
        runner.start(("time", "time_compiled"))
        about = known_machine(runner)
        for name in TASKS:
            benchmarker = Benchmarker(
                runner,
                machine=about,
                seed=1,
                baselines=DEFAULT_BASELINES if device != "cpu" else ("eager",),
                effort=RUN_EFFORT,
                sources=baseline_sources,
            )
            spent = [
                _spent(benchmarker, name, i, found, on_gpu=device != "cpu")
                for i in range(candidates + 1)
            ][1:]
            benchmarker.close(wait=True)
            means = {k: statistics.mean(s[k] for s in spent) for k in spent[0]}
            lines.append(f"- {name}: " + ", ".join(f"{k} {v:.3f}" for k, v in means.items()))
    Side.do = do  # type: ignore[method-assign]
    rows = [
        (f"{what}, {who}", len(s), statistics.median(s) * 1e3, max(s) * 1e3, sum(s))
        for (who, what), s in sorted(found.items(), key=lambda item: -sum(item[1]))
    ]
    return lines, rows


def _spent(
    benchmarker: Benchmarker, name: str, number: int, found: Seconds, *, on_gpu: bool
) -> dict[str, float]:
    """Seconds of one candidate, a source of its own; the first one's baselines compile, too."""
    task = find(name)
    right = baseline_sources(task)["control" if on_gpu else "eager"]
    text = f"{right.source}\n# {number} {time.time_ns()}\n"
    candidate = read_candidate(text, f"{name}.py", task_names=(name,), task=name)
    if number == 0:
        kept = {key: [*seconds] for key, seconds in found.items()}
    began = time.perf_counter()
    document = benchmarker.time(task, candidate)
    assert document.outcome in ("timed", "timing_suspect"), document
    took = time.perf_counter() - began
    if number == 0:
        # Baselines compile only once.
        found.clear()
        found.update(kept)
    costs = {key: getattr(document, key) for key in ("import_s", "first_call_s", "compile_s")}
    return {"all": took, **costs, **(document.spent or {})}


def within_a_child(device: str, name: str) -> list[tuple[Any, ...]]:
    """Medians of the parts of a batch and a refill, for the largest shape of a task."""
    task = find(name)
    case = timed_cases(task)[-1]
    inputs = make_bench_inputs(task, case, device=device)
    made = _track(device, inputs)
    made.do(AllocateBuffers(count=ROWS))
    rng = stream(1, name)
    on_gpu = device != "cpu"

    def wait() -> None:
        if on_gpu:
            torch.cuda.synchronize()

    def refilled() -> None:
        made.do(inputs.refill(range(ROWS), inputs.draw(rng, ROWS)))

    def filled() -> None:
        refill = inputs.refill(range(ROWS), inputs.draw(rng, ROWS))
        moving = [h for h in made._held if not h.supply.fixed]
        for i, held in enumerate(moving):
            scales = refill.scales[i] if refill.scales else ()
            held.refill(refill.buffers, refill.windows[i], scales)
        wait()

    def flushed() -> None:
        timed_worker._sum(made._flush)
        wait()

    def called() -> None:
        for call in made.calls:
            call()
        wait()

    def flipped() -> None:
        made._flip()
        wait()

    rows = tuple(range(ROWS))
    parts: dict[str, Callable[[], Any]] = {
        "draw contents": lambda: inputs.draw(rng, ROWS),
        "refill": refilled,
        "of that: fill rows": filled,
        "of that: persisting lines": timed_worker._no_persisting_lines if on_gpu else lambda: None,
        "lap": lambda: made.do(RunBatch(buffers=rows, head_start_s=5e-4 if on_gpu else 0.0)),
        "of that: the calls": called,
        "of that: the flush": flushed,
        "hide contents, or bring them back": flipped,
        "wait for nothing": wait,
    }
    found = []
    for what, part in parts.items():
        part()
        seconds = []
        for _ in range(REPEATS if on_gpu else 3):
            wait()
            began = time.perf_counter()
            part()
            seconds.append(time.perf_counter() - began)
        found.append((f"{name}: {what}", statistics.median(seconds) * 1e3, max(seconds) * 1e3))
    return found


def _track(device: str, inputs: BenchInputs) -> timed_worker.TimedWorker:
    call: dict[str, Callable[..., Any]]
    call = {"softmax": lambda x: torch.softmax(x, -1), "matmul": torch.matmul}

    def ready(offered: Any) -> list[Callable[[], Any]]:
        tensors = [[o.value for o in row if o.tensor] for row in offered]
        return [partial(call["softmax" if len(t) == 1 else "matmul"], *t) for t in tensors]

    stock = PrepareInputs(
        arguments=inputs.arguments, flush_bytes=RUN_EFFORT.flush_bytes if device != "cpu" else 0
    )
    return timed_worker.TimedWorker(stock, torch.device(device), ready)


def main() -> int:
    parser = machine.parser(__doc__.splitlines()[0])
    parser.add_argument("--candidates", type=int, default=4, help="of each task")
    options = parser.parse_args()
    device = machine.device_of(options)
    lines, messages = by_message(device, options.candidates)
    parts = [row for name in ("softmax", "matmul") for row in within_a_child(device, name)]
    report = [
        f"Seconds in the mean of {options.candidates} candidates of each task:",
        "",
        *lines,
        "",
        *machine.table(("message", "count", "median, ms", "most, ms", "in all, s"), messages),
        "",
        f"In this process, {ROWS} rows of the largest shape:",
        "",
        *machine.table(("part", "median, ms", "most, ms"), parts),
    ]
    about = machine.facts(device)
    machine.publish("batch_cost", "What timing costs", about, report, folder=options.results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
