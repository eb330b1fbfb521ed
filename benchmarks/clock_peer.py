"""KernelBench's timing and ours on the same kernels in one run: what each says, and its spread.

    python benchmarks/clock_peer.py [--repetitions 5] [--device cuda]

The peer's protocol, in our own words, after its version 423217d: one fixed input; 3 calls to warm
up, each synchronized; then 100 trials, each with a synchronization, 256 MiB of int64 written to
flush the L2 cache, and events around one call; the mean counts. The kernel and then the reference
are timed in one process, a fresh one for each repetition, which has the device to itself.
"""

from __future__ import annotations

import statistics
import struct
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import machine
from msgspec.structs import asdict

from kerneltruth.clock.device.lock import device_for_timing
from kerneltruth.clock.protocol.effort import Effort
from kerneltruth.clock.protocol.inputs import BenchInputs, make_bench_inputs
from kerneltruth.clock.schedule.timed_cases import timed_cases
from kerneltruth.engine.benchmark.baselines import baseline_sources
from kerneltruth.engine.benchmark.benchmarker import Benchmarker
from kerneltruth.engine.benchmark.machine import Machine, known_machine
from kerneltruth.runner.candidate import Candidate
from kerneltruth.runner.host import Runner
from kerneltruth.runner.observation import TensorResult
from kerneltruth.runner.session import Session
from kerneltruth.runner.timing.messages import (
    AllocateBuffers,
    FillBuffers,
    PrepareInputs,
    RunBatch,
    ShowResult,
)
from kerneltruth.tasks.registry import find

KERNELS = (
    *("softmax", "relu", "gelu", "sum", "rms_norm", "layer_norm"),
    *("matmul", "cross_entropy", "cumsum", "transpose_copy"),
)
SHAPE = 1
PEER = """

import functools as _functools
import torch as _torch

_reference = {{"__name__": "reference"}}
exec({reference!r}, _reference)
_kernel = {entry}


def _mean_s(kernel, args, named):
    for _ in range(3):
        kernel(*args, **named)
        _torch.cuda.synchronize()
    _torch.cuda.empty_cache()
    times = []
    for trial in range(101):
        _torch.cuda.synchronize()
        before, after = (_torch.cuda.Event(enable_timing=True) for _ in "12")
        thrashed = _torch.empty(2**28 // 8, dtype=_torch.int64, device="cuda")
        thrashed.fill_(42)
        del thrashed
        before.record()
        result = kernel(*args, **named)
        after.record()
        _torch.cuda.synchronize()
        if trial:
            times.append(before.elapsed_time(after) / 1000)
    return _torch.tensor(times, dtype=_torch.float64).mean()


@_functools.wraps(_kernel)
def {entry}(*args, **named):
    kernels = _kernel, _reference["{of_reference}"]
    return _torch.stack([_mean_s(k, args, named) for k in kernels])
"""


def peer_seconds(
    runner: Runner, kernel: Candidate, reference: Candidate, inputs: BenchInputs
) -> tuple[float, float]:
    """What the peer's protocol says of a kernel and of its reference."""
    peer = PEER.format(entry=kernel.entry, reference=reference.source, of_reference=reference.entry)
    child = runner.open(replace(kernel, source=kernel.source + peer), mode="time")
    try:
        with device_for_timing(runner.device):
            return _peer_seconds(child, inputs)
    finally:
        child.close()


def _peer_seconds(child: Session, inputs: BenchInputs) -> tuple[float, float]:
    count = len(inputs.moving)
    for message in (
        PrepareInputs(arguments=inputs.arguments),
        AllocateBuffers(count=1),
        FillBuffers(buffers=(0,), windows=((0,),) * count),
        RunBatch(buffers=(0,)),
        ShowResult(),
    ):
        seen = child.request(message, deadline_s=60.0)
        if seen.ended != "returned":
            raise RuntimeError(f"{child.candidate.path}: {seen.ended}: {seen.message}")
    result = seen.results[0]
    assert isinstance(result, TensorResult)
    of_kernel, of_reference = struct.unpack("<2d", result.data)
    return of_kernel, of_reference


def spread(values: list[float]) -> float:
    return (max(values) - min(values)) / statistics.median(values)


def measured(
    runner: Runner, about: Machine, name: str, turn: int
) -> tuple[str, dict[str, float], dict[str, Any] | None]:
    """The case, and what either says of a kernel in one repetition."""
    task = find(name)
    case = timed_cases(task)[SHAPE]
    # Only this shape, for both.
    shape = dict(case.dims) | {k: v for k, v in case.attributes if k in task.perf[SHAPE]}
    task = replace(task, perf=(shape,))
    sources = baseline_sources(task)
    inputs = make_bench_inputs(task, case, device=runner.device)
    began = time.monotonic()
    control, eager = peer_seconds(runner, sources["control"], sources["eager"], inputs)
    peer = {"us": control * 1e6, "ratio": eager / control, "took_s": time.monotonic() - began}
    began = time.monotonic()
    benchmarker = Benchmarker(
        runner,
        machine=about,
        seed=turn,
        baselines=("eager",),
        effort=Effort(budget_s=0.5),
        sources=baseline_sources,
    )
    try:
        timed = benchmarker.time(task, sources["control"])
    finally:
        # The peer's next process has the device to itself.
        benchmarker.close(wait=True)
    took_s = time.monotonic() - began
    if not timed.shapes:
        print(f"{name}: {timed.outcome}: {timed.detail}", file=sys.stderr)
        return case.summary(), peer, None
    (found,) = timed.shapes
    ours = {
        **asdict(found.baselines["eager"]),
        "us": found.candidate_us,
        "flags": found.flags,
    }
    ours["took_s"] = took_s
    return case.summary(), peer, ours


def main() -> int:
    parser = machine.parser(__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=5)
    options = parser.parse_args()
    device = machine.device_of(options)
    found: dict[str, dict[str, Any]] = {}
    with Runner(device=device) as runner:
        runner.start(("time",))
        about = known_machine(runner)
        for turn in range(options.repetitions):
            for name in KERNELS:
                case, peer, ours = measured(runner, about, name, turn)
                row = found.setdefault(name, {"kernel": name, "case": case, "peer": [], "ours": []})
                row["peer"].append(peer)
                if ours is not None:
                    row["ours"].append(ours)
            tell(list(found.values()), turn + 1, device, options.results)
    return 0


def tell(found: list[dict[str, Any]], repetitions: int, device: str, results: Path) -> None:
    """Publish the results after this many repetitions."""
    facts = machine.facts(device)
    rows = []
    for f in found:
        peer, ours = ([x["ratio"] for x in f[k]] for k in ("peer", "ours"))
        if not ours:
            nothing = ("none",) * 6
            rows.append((f["kernel"], "", "", f"{statistics.median(peer):.3f}", *nothing))
            continue
        widths = [(x["high"] - x["low"]) / 2 / x["ratio"] for x in f["ours"]]
        rows.append(
            (
                f["kernel"],
                f"{statistics.median(x['us'] for x in f['peer']):.1f}",
                f"{statistics.median(x['us'] for x in f['ours']):.1f}",
                f"{statistics.median(peer):.3f}",
                f"{spread(peer):.1%}",
                f"{statistics.median(ours):.3f}",
                f"{spread(ours):.1%}",
                f"{statistics.median(widths):.2%}",
                "/".join(sorted({x["outcome"] for x in f["ours"]})),
                f"{len(ours)} of {repetitions}",
            )
        )
    took = [
        statistics.median(x["took_s"] for f in found for x in f[whose])
        for whose in ("peer", "ours")
    ]
    lines = [
        f"Our Triton controls against eager PyTorch, {repetitions} repetitions in fresh "
        "processes. The spread is the difference of the largest and the smallest ratio over the "
        "median. With processes and compilation a kernel and its reference take "
        f"{took[0]:.1f} s by the peer's protocol and {took[1]:.1f} s by ours, in the median.",
        "",
        *machine.table(
            (
                "kernel",
                "us, peer",
                "us, ours",
                "ratio, peer",
                "spread",
                "ratio, ours",
                "spread",
                "half-width said",
                "called",
                "timed by ours",
            ),
            rows,
        ),
    ]
    machine.publish(
        "clock_peer",
        "KernelBench's timing and ours",
        facts,
        lines,
        folder=results,
        data={"kernels": found},
    )


if __name__ == "__main__":
    sys.exit(main())
