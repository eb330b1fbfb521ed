"""The same kernels timed again later, or after a restart: do ratios to eager agree within 1%?

python benchmarks/clock_again.py --out first.json
python benchmarks/clock_again.py --against first.json [another.json]
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import machine
import torch

from kerneltruth.clock.protocol.effort import Effort
from kerneltruth.documents.model import plain
from kerneltruth.engine.benchmark.baselines import baseline_sources
from kerneltruth.engine.benchmark.benchmarker import Benchmarker
from kerneltruth.engine.benchmark.machine import known_machine
from kerneltruth.runner.host import Runner
from kerneltruth.tasks.registry import find

KERNELS = ("softmax", "gelu", "sum", "rms_norm", "matmul", "cross_entropy", "transpose_copy")


def measured(device: str) -> dict[str, Any]:
    """Ratios of our controls to eager PyTorch, by kernel and shape."""
    found: dict[str, Any] = {}
    with Runner(device=device) as runner:
        runner.start(("time",))
        about = known_machine(runner)
        for name in KERNELS:
            task = find(name)
            benchmarker = Benchmarker(
                runner,
                machine=about,
                seed=time.time_ns(),
                baselines=("eager",),
                effort=Effort(budget_s=0.5),
                sources=baseline_sources,
            )
            timed = benchmarker.time(task, baseline_sources(task)["control"])
            benchmarker.close(wait=True)
            for shape in timed.shapes or ():
                eager: Any = plain(shape.baselines["eager"])
                found[f"{name}: {shape.summary}"] = {**eager, "us": shape.candidate_us}
    card = getattr(torch.cuda.get_device_properties(device), "uuid", None)
    return {
        "machine": machine.facts(device),
        "at": time.time(),
        "card": None if card is None else str(card),
        "kernels": found,
    }


def where(one: dict[str, Any], other: dict[str, Any]) -> str:
    """Whether two measurements were on one card."""
    if None in (one["card"], other["card"]):
        return "perhaps another card"
    return "the same card" if one["card"] == other["card"] else "another card"


def _ago(seconds: float) -> str:
    return (
        f"{seconds / 60:.0f} minutes before" if seconds < 5400 else f"{seconds / 3600:.1f} h before"
    )


def main() -> int:
    parser = machine.parser(__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--against", type=Path, nargs="*", default=[])
    options = parser.parse_args()
    device = machine.device_of(options)
    now = measured(device)
    if options.out:
        options.out.write_text(json.dumps(now))
    earlier = [json.loads(path.read_text()) for path in options.against]
    if not earlier:
        return 0
    facts = now["machine"]
    lines = [
        "Ratios of our Triton controls to eager PyTorch, each time in fresh processes.",
        "",
    ]
    columns = []
    for before in earlier:
        apart = {
            name: abs(new["ratio"] / before["kernels"][name]["ratio"] - 1)
            for name, new in now["kernels"].items()
        }
        columns.append((f"{where(now, before)}, {_ago(now['at'] - before['at'])}", apart))
        lines.append(
            f"- {columns[-1][0]}: {sum(a <= 0.01 for a in apart.values())} of {len(apart)} agree "
            f"within 1%, the farthest are {max(apart.values()):.2%} apart."
        )
    lines += [
        "",
        *machine.table(
            ("kernel", "us", "ratio", *(f"apart: {head}" for head, _ in columns)),
            (
                (
                    name,
                    f"{new['us']:.1f}",
                    f"{new['ratio']:.4f}",
                    *(f"{a[name]:.2%}" for _, a in columns),
                )
                for name, new in now["kernels"].items()
            ),
        ),
    ]
    machine.publish("clock_again", "The same kernels, later", facts, lines, folder=options.results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
