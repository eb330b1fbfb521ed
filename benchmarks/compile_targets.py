"""Every Triton kernel of the corpus compiled for several GPUs on a machine that needs none.

    python benchmarks/compile_targets.py [--target sm_90 ...] [--cases 2] [--only NAME]

Each kernel is called on a few cases of every dtype of its task; every specialization that it
launches then, in every configuration of an autotuned kernel, is compiled for every target, right
kernels and wrong ones alike. The exit code is 1 if one does not compile.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import machine
import torch
from evaluations import chosen, job_of

from kerneltruth.cases.strategies import generate
from kerneltruth.engine.evaluator import EvaluationRequest, Evaluator
from kerneltruth.engine.scheduling.local_pool import LocalPool
from kerneltruth.engine.scheduling.scheduler import Done
from kerneltruth.oracle.bounds import Policy
from kerneltruth.oracle.candidate_session import CandidateSession
from kerneltruth.oracle.expectation import Expectation
from kerneltruth.oracle.plan import Plan
from kerneltruth.runner.observation import Binary
from kerneltruth.tasks.registry import find

TARGETS = ("sm_80", "sm_89", "sm_90", "sm_100", "gfx942")


def compiled(
    evaluator: Evaluator, job: EvaluationRequest, report: Callable[[int], None]
) -> list[Binary]:
    """Compile what the kernel launches on the first cases of its task."""
    task = find(job.task)
    with CandidateSession(
        task, job.candidate, evaluator.runner, evaluator.cache, deadline_s=60.0
    ) as session:
        for dtype in (*task.dtypes, *task.extended_dtypes):
            wanted = generate(task, seed=job.plan.seed, count=job.plan.cases, dtypes=(dtype,))
            for case in wanted:
                compile_case(session, evaluator.cache.get(task, case))
                report(1)
        return list(session.targets.binaries)


def compile_case(session: CandidateSession, expectation: Expectation) -> None:
    """Compile what the kernel launches on one case, in every configuration."""
    config = 0
    while expectation.invalid is None and config < session.launches.configs:
        _, observation, _ = session.call(expectation, config=config)
        session.compile(expectation, observation.launches, config)
        config += 1


def facts_of(binaries: list[Binary]) -> str:
    """One cell: how many compiled, and the most registers, spills and shared memory among them."""
    if not binaries:
        return "-"
    ok = [b for b in binaries if b.ok]
    most = {
        short: max((v for b in ok if (v := getattr(b, name)) is not None), default=None)
        for short, name in (("r", "registers"), ("s", "spills"), ("b", "shared_bytes"))
    }
    said = " ".join(f"{v}{short}" for short, v in most.items() if v is not None)
    return f"{len(ok)}/{len(binaries)} {said}".strip()


def report(found: dict[str, list[Binary]], targets: tuple[str, ...]) -> tuple[list[str], int]:
    every = [b for binaries in found.values() for b in binaries]
    with_gpu_code = {name: binaries for name, binaries in found.items() if binaries}
    refused = [(name, b) for name, binaries in found.items() for b in binaries if not b.ok]
    totals = []
    for target in targets:
        mine = [b for b in every if b.target == target]
        whole = [
            name
            for name, binaries in with_gpu_code.items()
            if all(b.ok for b in binaries if b.target == target)
        ]
        spent = [b.seconds for b in mine if b.seconds is not None]
        totals.append(
            (
                target,
                f"{len(whole)} of {len(with_gpu_code)}",
                f"{sum(b.ok for b in mine)} of {len(mine)}",
                sum((b.spills or 0) > 0 for b in mine),
                round(sum(spent), 1),
            )
        )
    head = ("target", "kernels", "specializations", "with spills", "seconds")
    without = sorted(name for name, binaries in found.items() if not binaries)
    lines = [*machine.table(head, totals), ""]
    if without:
        lines += [f"No GPU code to compile ({len(without)}): {', '.join(without)}.", ""]
    lines += [f"- REFUSED {name} for {b.target}: {b.error}" for name, b in refused]
    lines += [
        "Per kernel: specializations compiled, then the most registers (r), spilled bytes (s) and",
        "bytes of shared memory (b) of any of them.",
        "",
        *machine.table(
            ("kernel", *targets),
            [
                (name, *(facts_of([b for b in binaries if b.target == t]) for t in targets))
                for name, binaries in sorted(with_gpu_code.items())
            ],
        ),
    ]
    return lines, len(refused)


def main() -> int:
    parser = machine.parser(__doc__.splitlines()[0])
    parser.add_argument("--target", action="append", default=[], help="a target (repeatable)")
    parser.add_argument("--cases", type=int, default=2, help="cases of each dtype")
    parser.add_argument("--workers", type=int, help="processes; one per core if left out")
    parser.add_argument("--only", action="append", default=[], help="only this kernel")
    options = parser.parse_args()
    targets = tuple(options.target) or TARGETS
    torch.set_num_threads(1)
    jobs = [job_of(entry, Plan(cases=options.cases)) for entry in chosen("", options.only)]
    found: dict[str, list[Binary]] = {}
    start = time.monotonic()
    # The kernels run in the interpreter wherever this runs: no device is touched.
    evaluator = Evaluator(device="cpu", targets=targets, policy=Policy())
    try:
        evaluator.start()
        evaluator.warm()
        judges = options.workers or len(os.sched_getaffinity(0))
        for event in LocalPool(work=partial(compiled, evaluator), workers=judges).run(jobs):
            if isinstance(event, Done):
                found[event.job.name] = event.result
    finally:
        evaluator.close()
    seconds = time.monotonic() - start
    lines, refused = report(found, targets)
    lost = len(jobs) - len(found)
    lines.append("")
    lines.append(f"{len(found)} kernels in {seconds:.0f} s; {lost} lost.")
    data: dict[str, Any] = {
        "seconds": seconds,
        "kernels": {
            name: [
                {
                    key: getattr(b, key)
                    for key in (
                        "kernel",
                        "target",
                        "ok",
                        "error",
                        "registers",
                        "spills",
                        "shared_bytes",
                        "instructions",
                        "num_warps",
                    )
                }
                for b in binaries
            ]
            for name, binaries in sorted(found.items())
        },
    }
    about = machine.facts("cpu")
    title = "The corpus compiled for several GPUs without one"
    machine.publish("compile_targets", title, about, lines, folder=options.results, data=data)
    return int(refused > 0 or lost > 0)


if __name__ == "__main__":
    sys.exit(main())
