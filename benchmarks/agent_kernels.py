"""Kernels that an agent wrote and its own test certified, judged by KernelBench's models.

    python benchmarks/agent_kernels.py --kernelfalcon CHECKOUT --optimized CHECKOUT
        [--only PART ...] [--device auto|cpu|cuda[:N]] [--results FOLDER]

The checkouts are of Laurawly/kernelagent-artifacts (KernelFalcon's examples) and of
kaiming-cheng/kernelagent-optimization-artifacts (KernelAgent's, before and after its search). Each
file is judged as it lies there, with the problem beside it as its reference, in float32 as
KernelBench has it. A kernel that refuses float32 is judged in bfloat16 alone, as its own test does,
where `published` is not tried. Kernels that are composed of several files are left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import machine
from expert_kernels import MOST, failures

import kerneltruth as kt

HEADER = (
    *("kernel", "verdict", "dtypes", "cases", "broken or refused where promised"),
    *("broken beyond", "first"),
)
NARROW = "bfloat16"


class Kernel(NamedTuple):
    """A kernel's file, and its reference's."""

    name: str
    file: Path
    reference: Path


def kernels(falcon: Path | None, optimized: Path | None) -> Iterator[Kernel]:
    """All kernels of the checkouts, in order."""
    for level, file in (
        ("L1", "kernel_code.py"),
        ("L2", "kernel_code.py"),
        ("L3", "final_kernel.py"),
    ):
        for path in sorted((falcon / level).glob(f"*/{file}")) if falcon else ():
            yield Kernel(f"{level}/{path.parent.name}", path, path.parent / "original.py")
    for file in ("input_kernel.py", "optimized_kernel_beam_search.py"):
        for path in sorted(optimized.glob(f"*/{file}")) if optimized else ():
            name = f"{path.parent.name[:40]}/{path.stem.partition('_kernel')[0]}"
            yield Kernel(name, path, path.parent / "problem.py")


def judged(judge: Any, kernel: Kernel) -> tuple[str, Any]:
    """The dtypes, and the report: in half precision alone if the kernel refuses float32."""
    report = judge.check(kernel.file, reference=kernel.reference, seed=0)
    said = f"{report.detail} {report.explanation}".lower()
    if report.verdict == "runtime_error" and any(n in said for n in ("bfloat16", "bf16")):
        given = {"reference": kernel.reference, "seed": 0, "dtypes": [NARROW]}
        return NARROW, judge.check(kernel.file, **given)
    return "all", report


def row(kernel: Kernel, dtypes: str, report: Any) -> list[Any]:
    """A kernel's line of the table."""
    failed = failures(report, with_status=True)
    return [kernel.name, report.verdict, dtypes, report.cases, *failed]


def main() -> int:
    """Judge all kernels and print the table."""
    options = machine.parser(__doc__ or "")
    options.add_argument("--kernelfalcon", type=Path)
    options.add_argument("--optimized", type=Path)
    options.add_argument("--only", action="append", default=[])
    chosen = options.parse_args()
    device = machine.device_of(chosen)
    rows: list[list[Any]] = []
    with kt.Judge(device=device) as judge:
        for kernel in kernels(chosen.kernelfalcon, chosen.optimized):
            if chosen.only and not any(part in kernel.name for part in chosen.only):
                continue
            try:
                rows.append(row(kernel, *judged(judge, kernel)))
            except kt.UserError as error:
                said = str(error).replace(str(kernel.reference), kernel.reference.name)[:MOST]
                rows.append([kernel.name, "not judged", "", 0, "", "", said])
            print(*rows[-1], sep=" | ", flush=True)
    count = Counter(line[1] for line in rows)
    lines = [f"{len(rows)} kernels: {', '.join(f'{n} {v}' for v, n in count.most_common())}.", ""]
    lines += machine.table(HEADER, rows)
    title = "Kernels of KernelAgent, judged by KernelBench's models"
    machine.publish("agent_kernels", title, machine.facts(device), lines, folder=chosen.results)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
