"""What it costs to say whose work a result is: the share of a passing control's time.

    python benchmarks/kernel_share_cost.py [--device cpu|cuda:0] [--cases 48] [--rounds 5]
        [--every 1]

The probe is timed within whole judgements. What counting adds to a call is the difference between
calls on the published inputs that count and calls that do not, in turn; it is paid once. With
`--every N` each Nth control is judged, where all of them take long.
"""

from __future__ import annotations

import time
from statistics import median
from typing import Any

import machine

from kerneltruth.cases.published import published_case
from kerneltruth.corpus import ENTRIES, Entry, source
from kerneltruth.engine.evaluator import EvaluationRequest, Evaluator
from kerneltruth.oracle import case_loop, kernel_fact
from kerneltruth.oracle.bounds import Policy
from kerneltruth.oracle.candidate_session import CandidateSession
from kerneltruth.oracle.plan import Plan
from kerneltruth.runner.candidate import read_candidate
from kerneltruth.tasks.core import TASKS
from kerneltruth.tasks.registry import find

CALLS = 40


def request(entry: Entry, cases: int) -> EvaluationRequest:
    """A control to be judged."""
    candidate = read_candidate(
        source(entry), f"{entry.name}.py", task_names=tuple(TASKS), task=entry.task
    )
    plan = Plan(cases=cases, compile=False, deadline_s=60.0)
    return EvaluationRequest(name=entry.name, task=entry.task, candidate=candidate, plan=plan)


def judged(evaluator: Evaluator, request: EvaluationRequest, rounds: int) -> tuple[float, float]:
    """Seconds of a judgement, and of the probe within it: medians."""
    spent: list[float] = []

    def timed(*arguments: Any, required: bool) -> Any:
        began = time.perf_counter()
        fact = kernel_fact.kernel_fact(*arguments, required=required)
        spent.append(time.perf_counter() - began)
        return fact

    setattr(case_loop, "kernel_fact", timed)  # noqa: B010
    whole = []
    for _ in range(rounds + 1):
        began = time.perf_counter()
        evaluator.evaluate(request)
        whole.append(time.perf_counter() - began)
    setattr(case_loop, "kernel_fact", kernel_fact.kernel_fact)  # noqa: B010
    # The first one has to make what is expected.
    return median(whole[1:]), median(spent[1:])


def counting(evaluator: Evaluator, request: EvaluationRequest) -> float:
    """Seconds that counting adds to a call."""
    task, device = find(request.task), evaluator.runner.device
    taken: dict[bool, list[float]] = {True: [], False: []}
    with CandidateSession(
        task, request.candidate, evaluator.runner, evaluator.cache, deadline_s=60.0
    ) as session:
        expectation = evaluator.cache.get(task, published_case(task, seed=0, device=device))
        session.call(expectation)
        known = session.launches.work
        for i in range(2 * CALLS):
            session.launches.work = None if i % 2 else known
            began = time.perf_counter()
            session.call(expectation)
            taken[session.launches.work is not known].append(time.perf_counter() - began)
    return median(taken[True]) - median(taken[False])


def main() -> None:
    parser = machine.parser(__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=48)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--every", type=int, default=1, help="judge each Nth control alone")
    options = parser.parse_args()
    device = machine.device_of(options)
    evaluator = Evaluator(policy=Policy(), device=device, targets=())
    evaluator.start()
    evaluator.warm()
    rows = []
    controls = [(e.name, request(e, options.cases)) for e in ENTRIES if e.role == "control"]
    triton = [(name, job) for name, job in controls if job.candidate.language == "triton"]
    for name, job in triton[:: options.every]:
        whole, probe = judged(evaluator, job, options.rounds)
        rows.append((name, whole, probe, counting(evaluator, job)))
    evaluator.close()
    total, probes, counts = (sum(column) for column in [*zip(*rows, strict=True)][1:])
    lines = [
        f"{len(rows)} controls, {options.cases} cases each: the probe takes {probes / total:.2%} "
        f"of a judgement, counting adds {counts / total:.2%}.",
        "",
        *machine.table(
            ("control", "judged, ms", "probe, ms", "counting, ms"),
            [(name, *(1e3 * value for value in values)) for name, *values in rows],
        ),
    ]
    title = "What it costs to say whose work a result is"
    about = machine.facts(device)
    machine.publish("kernel_share_cost", title, about, lines, folder=options.results)


if __name__ == "__main__":
    main()
