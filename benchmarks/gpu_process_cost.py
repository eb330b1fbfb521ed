"""What a fresh process per candidate costs on a GPU: context, first call, further calls, end.

The CUDA driver starts contexts one after the other, however many cores there are, so the time to
start N fresh processes at once bounds what a warm audit can take. Prints one row per number of
processes at once, and writes it to results/.
"""

from __future__ import annotations

import multiprocessing
import statistics
import sys
import time
from multiprocessing.queues import Queue

import machine
import torch

from kerneltruth.cases.strategies import generate
from kerneltruth.corpus import ENTRIES, source
from kerneltruth.engine.evaluator import Evaluator
from kerneltruth.oracle.bounds import Policy
from kerneltruth.oracle.candidate_session import CandidateSession
from kerneltruth.runner.candidate import read_candidate
from kerneltruth.tasks.core import TASKS
from kerneltruth.tasks.registry import find

KERNEL = "gelu"
CASES = 20
REPEATS = 3
AT_ONCE = (1, 4, 8, 16)

Sample = tuple[float, float, float, float]


def evaluate(evaluator: Evaluator, queue: Queue[list[Sample]]) -> None:
    entry = next(e for e in ENTRIES if e.name == KERNEL)
    task = find(entry.task)
    candidate = read_candidate(
        source(entry), f"{KERNEL}.py", task_names=tuple(TASKS), task=entry.task
    )
    cases = list(generate(task, seed=0, count=CASES, device="cuda"))
    expectations = [evaluator.cache.get(task, case) for case in cases]
    samples: list[Sample] = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        session = CandidateSession(
            task, candidate, evaluator.runner, evaluator.cache, deadline_s=60, ends_first=True
        )
        session.loaded()
        loaded = time.perf_counter()
        session.call(expectations[0])
        called = time.perf_counter()
        further = []
        for expectation in expectations[1:]:
            start = time.perf_counter()
            session.call(expectation)
            further.append(time.perf_counter() - start)
        ending = time.perf_counter()
        session.close()
        closed = time.perf_counter()
        median = statistics.median(further)
        samples.append((loaded - began, called - loaded, median, closed - ending))
    queue.put(samples)


def main() -> int:
    options = machine.parser(__doc__.splitlines()[0]).parse_args()
    device = machine.device_of(options)
    if device == "cpu":
        print("There is no GPU here, so there is nothing to measure.")
        return 0
    context = multiprocessing.get_context("fork")
    torch.set_num_threads(1)
    evaluator = Evaluator(device=device, targets=(), policy=Policy())
    rows = []
    try:
        began = time.perf_counter()
        evaluator.start()
        evaluator.warm()
        warm = time.perf_counter() - began
        for count in AT_ONCE:
            queue = context.Queue()
            workers = [
                context.Process(target=evaluate, args=(evaluator, queue)) for _ in range(count)
            ]
            for worker in workers:
                worker.start()
            samples = [s for _ in workers for s in queue.get()]
            for worker in workers:
                worker.join()
            load, first, further, end = (statistics.median(s[i] for s in samples) for i in range(4))
            rows.append((count, load, first, further * 1e3, end))
    finally:
        evaluator.close()
    head = ("processes at once", "context and load, s", "first call, s", "next call, ms", "end, s")
    lines = [f"Warm-up of the zygote, once per run: {warm:.1f} s.", "", *machine.table(head, rows)]
    about = machine.facts(device)
    title = "A fresh process per candidate"
    machine.publish("gpu_process_cost", title, about, lines, folder=options.results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
