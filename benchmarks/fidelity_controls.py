"""Every control in the interpreter and on the GPU, on the same cases, output against output.

    python benchmarks/fidelity_controls.py [--device auto] [--each 2] [--only NAME]

For every dtype and layout of a control's task, both run a few cases. Their outputs agree on a case
if no element differs by more than the bound that a correct kernel is held to there. Without a GPU
there is nothing to compare, and the script says so.
"""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial

import machine
import torch
from evaluations import chosen, job_of

from kerneltruth.cases.layouts import LAYOUTS
from kerneltruth.cases.strategies import STRATEGIES, generate
from kerneltruth.documents.case import Case
from kerneltruth.documents.verdict import Passed
from kerneltruth.engine.devices import cache_root
from kerneltruth.engine.evaluator import EvaluationRequest, Evaluator
from kerneltruth.engine.scheduling.local_pool import LocalPool
from kerneltruth.engine.scheduling.scheduler import Done
from kerneltruth.oracle.bounds import Policy
from kerneltruth.oracle.candidate_session import CandidateSession
from kerneltruth.oracle.expectation import Expectation, tensors_digest
from kerneltruth.oracle.judge import Ruling
from kerneltruth.oracle.plan import Plan
from kerneltruth.tasks.registry import find
from kerneltruth.tasks.spec import Task


@dataclass(slots=True, kw_only=True)
class Agreement:
    """How the cases of one dtype and layout ended, and how far apart the outputs were."""

    ended: Counter[str] = field(default_factory=Counter)
    worst: float = 0.0
    examples: list[str] = field(default_factory=list)


Found = dict[tuple[str, str], Agreement]


def cases_of(task: Task, each: int) -> Iterator[Case]:
    """Cases of every dtype in every layout, `each` of them, and twice as many contiguous ones."""
    others = tuple(s for s in STRATEGIES if s != "layouts")
    for dtype in (*task.dtypes, *task.extended_dtypes):
        left = Counter({layout: each for layout in LAYOUTS} | {"contiguous": 2 * each})
        for strategies in (("layouts",), others):
            wanted = generate(
                task, strategies=strategies, seed=11, count=24 * each, dtypes=(dtype,)
            )
            for case in wanted:
                if left[case.layout] > 0:
                    left[case.layout] -= 1
                    yield case


def compare(
    cpu: Evaluator, gpu: Evaluator, each: int, job: EvaluationRequest, report: Callable[[int], None]
) -> Found:
    """Run one control's cases on both."""
    task = find(job.task)
    found: Found = {}
    deadline_s = job.plan.deadline_s
    with (
        CandidateSession(task, job.candidate, cpu.runner, cpu.cache, deadline_s=deadline_s) as here,
        CandidateSession(
            task, job.candidate, gpu.runner, cpu.cache, deadline_s=deadline_s
        ) as there,
    ):
        for case in cases_of(task, each):
            expectation = cpu.cache.get(task, case)
            if expectation.invalid is not None:
                continue
            row = found.setdefault((case.dtype, case.layout), Agreement())
            one, two = here.call(expectation)[0], there.call(expectation)[0]
            ended, ratio = agreement(expectation, one, two)
            row.ended[ended] += 1
            row.worst = max(row.worst, ratio)
            if ended not in ("bit for bit", "within the bound") and len(row.examples) < 2:
                row.examples.append(f"{case.summary()}: {ended}, {ratio:.3g} of the bound")
            report(1)
    return found


def agreement(expectation: Expectation, cpu: Ruling, gpu: Ruling) -> tuple[str, float]:
    """How two rulings on one case compare, and the largest difference over the bound."""
    said = cpu.verdict.word, gpu.verdict.word
    if not cpu.outputs or not gpu.outputs:
        return ("neither ran" if said[0] == said[1] else f"{said[0]} / {said[1]}"), 0.0
    if tensors_digest(cpu.outputs) == tensors_digest(gpu.outputs):
        return "bit for bit", 0.0
    worst, wrong = 0.0, False
    for want, one, two in zip(expectation.outputs, cpu.outputs, gpu.outputs, strict=True):
        if want.spec.compare == "accept":
            wrong |= not (isinstance(cpu.verdict, Passed) and isinstance(gpu.verdict, Passed))
            continue
        truth = one.to(torch.float64) if one.is_floating_point() else one
        stats = replace(want, reference=truth, rounded=one).difference(two).stats
        wrong |= stats.num_exceeding > 0
        worst = max(worst, stats.max_bound_ratio or 0.0)
    return ("DIFFERENT" if wrong else "within the bound"), worst


def report(found: dict[str, Found], seconds: float) -> tuple[list[str], int]:
    rows = [(name, key, row) for name, rows in found.items() for key, row in rows.items()]
    total: Counter[str] = sum((row.ended for *_, row in rows), Counter())
    agree = total["bit for bit"] + total["within the bound"]
    compared = sum(total.values()) - total["neither ran"]
    lines = [
        f"**{agree:,} of {compared:,} cases agree within the bound**, {total['bit for bit']:,} of "
        f"them bit for bit ({len(found)} controls, {len(rows)} combinations of control, dtype and "
        f"layout, {seconds:.0f} s); {total['neither ran']:,} ran on neither.",
        "",
    ]
    for at, name in ((0, "dtype"), (1, "layout")):
        sums: dict[str, Agreement] = {}
        for _, key, row in rows:
            into = sums.setdefault(key[at], Agreement())
            into.ended += row.ended
            into.worst = max(into.worst, row.worst)
        lines += [*_table(name, sums), ""]
    by_control = {
        name: Agreement(
            ended=sum((r.ended for r in rows.values()), Counter()),
            worst=max((r.worst for r in rows.values()), default=0.0),
        )
        for name, rows in sorted(found.items())
    }
    lines += [*_table("control", by_control), ""]
    lines += [
        f"- {name} {dtype} {layout}: {text}"
        for name, (dtype, layout), row in rows
        for text in row.examples
    ]
    return lines, compared - agree


def _table(name: str, sums: dict[str, Agreement]) -> list[str]:
    known = ("bit for bit", "within the bound", "neither ran")
    head = (name, "bit for bit", "within the bound", "otherwise", "neither ran", "worst / bound")
    body = []
    for value, row in sorted(sums.items()):
        other = sum(n for ended, n in row.ended.items() if ended not in known)
        bits, bound, neither = (row.ended[ended] for ended in known)
        body.append((value, bits, bound, other, neither, row.worst))
    return machine.table(head, body)


def main() -> int:
    parser = machine.parser(__doc__.splitlines()[0])
    parser.add_argument("--each", type=int, default=2, help="cases per control, dtype and layout")
    parser.add_argument("--workers", type=int, help="judges; one per core if left out")
    parser.add_argument("--only", action="append", default=[], help="only this control")
    parser.add_argument(
        "--against-itself", action="store_true", help="the interpreter twice, to try the script"
    )
    options = parser.parse_args()
    device = machine.device_of(options)
    if device == "cpu" and not options.against_itself:
        print("No GPU here: nothing to compare the interpreter with.")
        return 0
    torch.set_num_threads(1)
    jobs = [job_of(entry, Plan()) for entry in chosen("control", options.only)]
    found: dict[str, Found] = {}
    start = time.monotonic()
    cpu, gpu = (
        Evaluator(device=where, targets=(), policy=Policy(), cache_root=cache_root())
        for where in ("cpu", device)
    )
    try:
        cpu.start()
        gpu.start()
        cpu.warm()
        gpu.warm()
        judges = options.workers or len(os.sched_getaffinity(0))
        for event in LocalPool(work=partial(compare, cpu, gpu, options.each), workers=judges).run(
            jobs
        ):
            if isinstance(event, Done):
                found[event.job.name] = event.result
    finally:
        cpu.close()
        gpu.close()
    lines, differing = report(found, time.monotonic() - start)
    lost = sorted({job.name for job in jobs} - found.keys())
    lines += [f"- LOST {name}" for name in lost]
    data = {
        "controls": {
            name: [
                {
                    "dtype": dtype,
                    "layout": layout,
                    "ended": dict(row.ended),
                    "worst": row.worst,
                    "examples": row.examples,
                }
                for (dtype, layout), row in rows.items()
            ]
            for name, rows in sorted(found.items())
        }
    }
    about = machine.facts(device)
    title = "Controls: Triton's interpreter against the GPU"
    machine.publish("fidelity_controls", title, about, lines, folder=options.results, data=data)
    return int(differing > 0 or bool(lost))


if __name__ == "__main__":
    sys.exit(main())
