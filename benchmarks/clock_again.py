"""The same kernels timed again later, or after a restart: do ratios to eager agree within 1%?

python benchmarks/clock_again.py --out first.json
python benchmarks/clock_again.py --against first.json
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import machine

from kerneltruth.clock.contestants import Effort
from kerneltruth.commands.machine import known_machine
from kerneltruth.commands.timekeeper import Timekeeper
from kerneltruth.commands.timing import opponents
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
            keeper = Timekeeper(
                runner,
                machine=about,
                seed=time.time_ns(),
                baselines=("eager",),
                effort=Effort(budget_s=0.5),
                sources=opponents,
            )
            timed = keeper.time(task, opponents(task)["control"])
            keeper.close()
            for shape in timed["shapes"]:
                eager = shape["baselines"]["eager"]
                found[f"{name}: {shape['summary']}"] = {**eager, "us": shape["candidate_us"]}
    boot = Path("/proc/stat").read_text().partition("btime ")[2].split()[0]
    return {"machine": machine.facts(device), "at": time.time(), "boot": boot, "kernels": found}


def main() -> int:
    parser = machine.parser(__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--against", type=Path)
    options = parser.parse_args()
    device = machine.device_of(options)
    now = measured(device)
    if options.out:
        options.out.write_text(json.dumps(now))
    if not options.against:
        return 0
    before = json.loads(options.against.read_text())
    rows, apart = [], []
    for name, new in now["kernels"].items():
        old = before["kernels"].get(name)
        if old is None:
            continue
        apart.append(abs(new["ratio"] / old["ratio"] - 1))
        ratios = (f"{old['ratio']:.4f}", f"{new['ratio']:.4f}")
        rows.append((name, f"{new['us']:.1f}", *ratios, f"{apart[-1]:.2%}"))
    facts = now["machine"]
    hours = (now["at"] - before["at"]) / 3600
    lines = [
        "## The same kernels, later",
        "",
        f"{facts['device_name']}, {facts['cores']} CPU cores; driver {facts['driver']}, "
        f"torch {facts['torch']}, Triton {facts['triton']}.",
        "",
        f"{hours:.1f} hours apart, "
        + ("another start of a machine" if now["boot"] != before["boot"] else "the same machine")
        + f": {sum(a <= 0.01 for a in apart)} of {len(apart)} ratios to eager agree within 1%, "
        f"the farthest are {max(apart):.2%} apart.",
        "",
        *machine.table(("kernel", "us", "ratio before", "ratio now", "apart"), rows),
    ]
    print("\n".join(lines))
    name = f"clock_again-{machine.slug(facts)}"
    options.results.mkdir(parents=True, exist_ok=True)
    (options.results / f"{name}.md").write_text("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
