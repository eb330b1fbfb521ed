"""Judge candidates one at a time with one checkout of the code: the worker of `profile_cost.py`.

It runs with that checkout's `src` on PYTHONPATH, and thus imports only what both states have. Each
line of its input is a request as JSON, each line of its output the reply: seconds and verdict.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import sys
import time
from dataclasses import fields
from typing import Any

import torch

from kerneltruth.engine.evaluator import EvaluationRequest, Evaluator
from kerneltruth.explain.diagnosis import DiagnosisEffort
from kerneltruth.oracle.bounds import Policy
from kerneltruth.runner.candidate import Candidate


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


def answer(evaluator: Evaluator, described: dict[str, Any]) -> dict[str, Any]:
    request = request_of(described)
    began = time.perf_counter()
    attempt = evaluator.evaluate(request).attempt
    seconds = time.perf_counter() - began
    return {"seconds": seconds, "verdict": type(attempt.verdict).__name__, "cases": attempt.cases}


def main() -> None:
    # What a candidate prints must not be taken for a reply.
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    torch.set_num_threads(1)
    evaluator = Evaluator(policy=Policy(), device=sys.argv[1])
    evaluator.start()
    evaluator.warm()
    for line in sys.stdin:
        print(json.dumps(answer(evaluator, json.loads(line))), file=replies, flush=True)
    evaluator.close()


if __name__ == "__main__":
    main()
