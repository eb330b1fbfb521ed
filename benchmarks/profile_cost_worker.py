"""Judge candidates one at a time with one checkout of the code: the worker of `profile_cost.py`.

It runs with that checkout's `src` on PYTHONPATH, and thus imports only what both states have. Each
line of its input is a request as JSON, each line of its output the reply: seconds and verdict.

On a CPU, the seconds are those of processors, of this process and all that it started: others use
the machine as well. On a GPU, whose time no process is charged with, they are those of a clock.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import json
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import torch

from kerneltruth.engine.evaluator import EvaluationRequest, Evaluator
from kerneltruth.explain.diagnosis import DiagnosisEffort
from kerneltruth.oracle.bounds import Policy
from kerneltruth.runner.candidate import Candidate

# How long a child that is no longer needed may take to end; its zygote stays.
END_S = 0.5


def plan_class() -> Any:
    """The class of plans, which stood beside the loop over cases before it had its own module."""
    try:
        return importlib.import_module("kerneltruth.oracle.plan").Plan
    except ModuleNotFoundError:
        return importlib.import_module("kerneltruth.oracle.case_loop").Plan


def plan_of(cases: int) -> Any:
    """The plan of `run`, in the words that this state knows."""
    made = plan_class()
    known = {field.name for field in fields(made)}
    growing = {name: True for name in ("whole", "promises") if name in known}
    return made(cases=cases, **growing)


def request_of(described: dict[str, Any]) -> EvaluationRequest:
    """The candidate; a source that differs in each round is compiled from cold each time."""
    source = f"{described['source']}\n# {described['round']}\n"
    candidate = Candidate(
        source=source,
        path=described["name"],
        sha256=hashlib.sha256(source.encode("utf-8", "surrogatepass")).hexdigest(),
        language=described["language"],
        entry=described["entry"],
    )
    effort = DiagnosisEffort(evaluations=60, seconds=1.0) if described["explain"] else None
    return EvaluationRequest(
        name=described["name"],
        task=described["task"],
        candidate=candidate,
        plan=plan_of(described["cases"]),
        effort=effort,
    )


def descendants() -> Iterator[list[str]]:
    """Yield the fields of /proc/PID/stat, from the state on, of all that this process started."""
    found: dict[int, list[str]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            found[int(path.parent.name)] = path.read_text().rpartition(")")[2].split()
    for process, about in found.items():
        above = process
        while above in found and above != os.getpid():
            above = int(found[above][1])
        if above == os.getpid() and process != above:
            yield about


def usage() -> tuple[float, int]:
    """Return the processors' seconds of all processes, ended ones too, and how many are alive."""
    below = list(descendants())
    ticks = sum(int(n) for about in below for n in about[11:15])
    living = sum(about[0] != "Z" for about in below)
    return time.process_time() + ticks / os.sysconf("SC_CLK_TCK"), living


def answer(evaluator: Evaluator, described: dict[str, Any], device: str) -> dict[str, Any]:
    request = request_of(described)
    used, living = usage()
    began = time.perf_counter()
    attempt = evaluator.evaluate(request).attempt
    took = seconds = time.perf_counter() - began
    if device == "cpu":
        end = time.monotonic() + END_S
        while usage()[1] > living and time.monotonic() < end:
            time.sleep(0.02)
        seconds = usage()[0] - used
    return {
        "seconds": seconds,
        "clock": took,
        "verdict": type(attempt.verdict).__name__,
        "cases": attempt.cases,
    }


def main() -> None:
    # What a candidate prints must not be taken for a reply.
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    torch.set_num_threads(1)
    evaluator = Evaluator(policy=Policy(), device=sys.argv[1])
    evaluator.start()
    evaluator.warm()
    for line in sys.stdin:
        reply = answer(evaluator, json.loads(line), sys.argv[1])
        print(json.dumps(reply), file=replies, flush=True)
    evaluator.close()


if __name__ == "__main__":
    main()
