"""Whether the suites' tasks prove themselves: PyTorch as the candidate, all dtypes and strategies.

    python benchmarks/suite_proof.py [NAME ...] [--cases 16] [--device cpu] [--dtypes float32]

A NAME is a suite (core, kernelbenchx, tritonbench), a file of `tasks/kernelbenchx`, core/FILE,
tritonbench/FILE, a task, or SUITE/TASK. A line is printed for each task; the exit code is 1 if
PyTorch is flagged anywhere. `idle` names attributes and dims that change nothing.
"""

from __future__ import annotations

import argparse
import sys
import traceback
from collections.abc import Iterator

import torch

from kerneltruth.documents.model import dumps
from kerneltruth.engine.proof import Proof, prove
from kerneltruth.oracle.bounds import Policy
from kerneltruth.oracle.expectation_builder import ExpectationCache
from kerneltruth.oracle.plan import Plan
from kerneltruth.runner.host import Runner
from kerneltruth.suites.pytorch import eager_candidate
from kerneltruth.tasks import core, earlier, kernelbenchx, tritonbench
from kerneltruth.tasks.spec import Task

FILES = {
    name: (folder, name.rpartition("/")[2])
    for folder in (core.FOLDER, kernelbenchx.FOLDER, tritonbench.FOLDER, earlier.FOLDER)
    for name in dict.fromkeys(folder.eager_modules.values())
}
SHORT = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16", "fp64": "float64"}


def chosen(names: list[str]) -> Iterator[tuple[str, Task]]:
    """Files and tasks; a file that does not import is reported, and the others go on."""
    wanted = {*names}
    only_files = wanted <= {*FILES}
    for module, (folder, file) in FILES.items():
        if names and only_files and module not in wanted:
            continue
        try:
            tasks = folder.tasks_of(file)
        except Exception:
            print(f"{module}: does not import", file=sys.stderr)
            traceback.print_exc(limit=-2)
            continue
        for task in tasks:
            known = {module, task.suite, task.name, f"{task.suite}/{task.name}"}
            if not names or wanted & known:
                yield module, task


def line(proof: Proof) -> str:
    judged = " ".join(f"{d}:{n}" for d, n in proof.cases.items())
    counts = {
        "flagged": len(proof.flagged),
        "declined": proof.declined.total(),
        "unrefereeable": proof.unrefereeable.total(),
        "skipped": proof.skipped.total(),
    }
    said = " ".join(f"{k}={v}" for k, v in counts.items() if v or k == "flagged")
    idle = f" idle={','.join(proof.idle)}" if proof.idle else ""
    mark = "ok " if proof.holds else "BAD"
    return f"{mark} {proof.task:48} {judged} {said}{idle} {proof.seconds:.1f}s"


def details(proof: Proof, *, most: int) -> Iterator[str]:
    for flag in proof.flagged[:most]:
        yield f"    FLAG {flag.case}: {flag.verdict} {flag.detail[:300]}"
    for title, counts in (
        ("unrefereeable", proof.unrefereeable),
        ("declined", proof.declined),
        ("skipped", proof.skipped),
    ):
        for reason, count in counts.most_common(most):
            yield f"    {title} {count}: {reason[:200]}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--cases", type=int, default=16)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtypes", default="")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("-v", "--verbose", action="store_true", help="all reasons, not two each")
    options = parser.parse_args()
    torch.set_num_threads(1)
    dtypes = tuple(SHORT.get(d, d) for d in options.dtypes.split(",") if d)
    bad = 0
    cache = ExpectationCache(Policy())
    with Runner(device=options.device) as runner:
        for module, task in chosen(options.names):
            if dtypes and not {*dtypes} & {*task.dtypes, *task.extended_dtypes}:
                continue
            try:
                candidate = eager_candidate(task, module)
                proof = prove(
                    task,
                    candidate,
                    runner,
                    cache,
                    plan=Plan(seed=options.seed, cases=options.cases, dtypes=dtypes or None),
                )
            except Exception:
                bad += 1
                print(f"BAD {task.key}: the proof itself failed", flush=True)
                traceback.print_exc(limit=-4)
                continue
            bad += not proof.holds
            if options.json:
                print(dumps(proof.document()), flush=True)
                continue
            print(line(proof), flush=True)
            for text in details(proof, most=1000 if options.verbose else 2):
                print(text)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
