"""KernelBench's timing and ours on the same kernels in one run: what each says, and its spread.

    python benchmarks/clock_peer.py [--repetitions 5] [--device cuda]

The peer's protocol, in our own words: one fixed input, 3 calls to warm up, then 100 trials, each
with a synchronization, 256 MiB of int64 written to flush the L2 cache, and events around one call;
the mean counts. Kernel and reference are timed one after the other, in fresh processes here.
"""

from __future__ import annotations

import json
import statistics
import struct
import sys
from dataclasses import replace

import machine

from kerneltruth.clock.contestants import Effort, Inputs
from kerneltruth.clock.stocking import stocked, timed_cases
from kerneltruth.commands.machine import known_machine
from kerneltruth.commands.timekeeper import Timekeeper
from kerneltruth.commands.timing import opponents
from kerneltruth.runner.candidate import Candidate
from kerneltruth.runner.host import Runner
from kerneltruth.runner.protocol import Lap, Refill, Rows, Show, Stock, TensorResult
from kerneltruth.tasks.registry import find

KERNELS = (
    *("softmax", "relu", "gelu", "sum", "rms_norm", "layer_norm"),
    *("matmul", "cross_entropy", "cumsum", "transpose_copy"),
)
SHAPE = 1
PEER = """

import functools as _functools
import torch as _torch


def _timed(kernel):
    @_functools.wraps(kernel)
    def peer(*args, **named):
        for _ in range(3):
            kernel(*args, **named)
        _torch.cuda.synchronize()
        _torch.cuda.empty_cache()
        times = []
        for trial in range(101):
            _torch.cuda.synchronize()
            before, after = (_torch.cuda.Event(enable_timing=True) for _ in "12")
            _torch.empty(2**28 // 8, dtype=_torch.int64, device="cuda").fill_(42)
            before.record()
            kernel(*args, **named)
            after.record()
            _torch.cuda.synchronize()
            if trial:
                times.append(before.elapsed_time(after) / 1000)
        return _torch.tensor(times, dtype=_torch.float64).mean().reshape(1)

    return peer


{entry} = _timed({entry})
"""


def peer_seconds(runner: Runner, candidate: Candidate, inputs: Inputs) -> float:
    """What the peer's protocol says of a kernel in a fresh process."""
    source = candidate.source + PEER.replace("{entry}", candidate.entry)
    with runner.open(replace(candidate, source=source), mode="time") as child:
        count = len(inputs.moving)
        for errand in (
            Stock(arguments=inputs.arguments),
            Rows(count=1),
            Refill(rows=(0,), windows=((0,),) * count),
            Lap(rows=(0,)),
            Show(),
        ):
            seen = child.errand(errand, deadline_s=60.0)
            if seen.ended != "returned":
                raise RuntimeError(f"{candidate.path}: {seen.ended}: {seen.message}")
    result = seen.results[0]
    assert isinstance(result, TensorResult)
    (seconds,) = struct.unpack("<d", result.data)
    return float(seconds)


def spread(values: list[float]) -> float:
    return (max(values) - min(values)) / statistics.median(values)


def main() -> int:
    parser = machine.parser(__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=5)
    options = parser.parse_args()
    device = machine.device_of(options)
    found = []
    with Runner(device=device) as runner:
        runner.start(("time",))
        about = known_machine(runner)
        for name in KERNELS:
            task = find(name)
            case = timed_cases(task)[SHAPE]
            # Only this shape, for both.
            shape = dict(case.dims) | {k: v for k, v in case.attributes if k in task.perf[SHAPE]}
            task = replace(task, perf=(shape,))
            sources = opponents(task)
            inputs = stocked(task, case, device=device)
            row = {"kernel": name, "case": case.summary(), "peer": [], "ours": []}
            for turn in range(options.repetitions):
                times = [
                    peer_seconds(runner, sources[side], inputs) for side in ("control", "eager")
                ]
                row["peer"].append({"us": times[0] * 1e6, "ratio": times[1] / times[0]})
                keeper = Timekeeper(
                    runner,
                    machine=about,
                    seed=turn,
                    baselines=("eager",),
                    effort=Effort(budget_s=0.5),
                    sources=opponents,
                )
                timed = keeper.time(task, sources["control"])
                keeper.close()
                if timed["outcome"] != "timed":
                    print(f"{name}: {timed['outcome']}: {timed.get('detail')}", file=sys.stderr)
                    continue
                (shape_found,) = timed["shapes"]
                eager = shape_found["baselines"]["eager"]
                row["ours"].append({**eager, "us": shape_found["candidate_us"]})
            found.append(row)
    facts = machine.facts(device)
    rows = []
    for f in found:
        peer, ours = ([x["ratio"] for x in f[k]] for k in ("peer", "ours"))
        if not ours:
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
            )
        )
    lines = [
        "## KernelBench's timing and ours",
        "",
        f"{facts['device_name']}, {facts['cores']} CPU cores; driver {facts['driver']}, "
        f"torch {facts['torch']}, Triton {facts['triton']}.",
        "",
        f"Our Triton controls against eager PyTorch, {options.repetitions} repetitions in fresh "
        "processes. The spread is the difference of the largest and the smallest ratio over the "
        "median.",
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
            ),
            rows,
        ),
    ]
    print("\n".join(lines))
    name = f"clock_peer-{machine.slug(facts)}"
    options.results.mkdir(parents=True, exist_ok=True)
    (options.results / f"{name}.md").write_text("\n".join(lines) + "\n")
    (options.results / f"{name}.json").write_text(json.dumps({"machine": facts, "kernels": found}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
