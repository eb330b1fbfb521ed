"""Fit the `calibrated` bounds: 1.5 times the 95th percentile of the controls' largest error.

    python benchmarks/calibrate.py [--cases N] [--only TASK ...] [--out FILE]

Every control runs its task's core cases, in each dtype of the task apart, in Triton's interpreter.
A case gives one number, the largest absolute error of its output against float64; cases of all
controls of a task count alike. The interpreter multiplies float32 in full precision, so the bounds
of matrix products do not allow for TF32.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections import defaultdict
from pathlib import Path

import torch

from kerneltruth.corpus import ENTRIES, Entry, source
from kerneltruth.documents.model import dumps
from kerneltruth.documents.verdict import Passed
from kerneltruth.engine.evaluator import Evaluator
from kerneltruth.engine.run_directory import environment, suite_hash
from kerneltruth.oracle.attempt import AttemptEnded, judge_cases
from kerneltruth.oracle.bounds import FLOOR_ULPS, Policy
from kerneltruth.oracle.candidate_session import CandidateSession
from kerneltruth.oracle.plan import Plan
from kerneltruth.runner.candidate import read_candidate
from kerneltruth.tasks.core import TASKS
from kerneltruth.tasks.registry import find

OUT = Path(__file__).parents[1] / "src" / "kerneltruth" / "oracle" / "calibration.json"
FLOATS = frozenset(FLOOR_ULPS)
ORDINARY = ("default", "boundary", "structured", "regular", "tiles")
QUANTILE = 0.95
MARGIN = 1.5


def main() -> None:
    options = _options()
    controls = [e for e in ENTRIES if e.role == "control"]
    if options.only:
        controls = [e for e in controls if e.task in options.only]
    errors: dict[str, list[float]] = defaultdict(list)
    start = time.monotonic()
    torch.set_num_threads(1)
    evaluator = Evaluator(device="cpu", targets=(), policy=Policy(tf32=False))
    try:
        evaluator.start()
        for number, entry in enumerate(controls, start=1):
            measure(evaluator, entry, options.cases, options.seed, errors)
            said = f"{number}/{len(controls)} {entry.name} {time.monotonic() - start:.0f} s"
            print(said, file=sys.stderr, flush=True)
    finally:
        evaluator.close()
    document = {
        "schema": 1,
        "method": f"{MARGIN} x the {QUANTILE:.0%} quantile of the controls' largest absolute error",
        "provenance": {
            **{k: v for k, v in environment("cpu").items() if v is not None},
            "suite": suite_hash(),
            "controls": sorted(e.name for e in controls),
            "seed": options.seed,
            "cases_per_control_and_dtype": options.cases,
        },
        "cases": {name: len(values) for name, values in sorted(errors.items())},
        "bounds": {name: MARGIN * quantile(values) for name, values in sorted(errors.items())},
    }
    # One entry in a line, so that a change of one bound is a change of one line.
    options.out.write_text(json.dumps(json.loads(dumps(document)), indent=1) + "\n")
    print(f"{len(errors)} bounds from {sum(map(len, errors.values()))} cases: {options.out}")


def measure(
    evaluator: Evaluator, entry: Entry, cases: int, seed: int, errors: dict[str, list[float]]
) -> None:
    """Add the largest errors of a control's cases, by "task/dtype" of the floating outputs."""
    task = find(entry.task)
    candidate = read_candidate(
        source(entry), f"{entry.name}.py", task_names=tuple(TASKS), task=entry.task
    )
    with CandidateSession(
        task, candidate, evaluator.runner, evaluator.cache, deadline_s=60.0
    ) as session:
        for dtype in (*task.dtypes, *task.extended_dtypes):
            plan = Plan(
                seed=seed,
                cases=cases,
                dtypes=(dtype,),
                # A dtype of the extended domain has its ordinary cases there.
                strategies=() if dtype in task.dtypes else ORDINARY,
                domain="core" if dtype in task.dtypes else "extended",
                stop_at_first=False,
                compile=False,
            )
            for event in judge_cases(session, plan):
                if isinstance(event, AttemptEnded):
                    break
                stats = event.judgement.stats
                if not isinstance(event.judgement.verdict, Passed) or stats is None:
                    continue
                outputs = {dtype if o.dtype == "same" else o.dtype for o in task.outputs}
                for name in outputs & FLOATS:
                    if stats.max_abs is not None:
                        errors[f"{task.name}/{name}"].append(stats.max_abs)


def quantile(values: list[float]) -> float:
    """The quantile by linear interpolation between order statistics."""
    if len(values) == 1:
        return values[0]
    return statistics.quantiles(values, n=100, method="inclusive")[round(QUANTILE * 100) - 1]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=24, help="per control and dtype")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", help="tasks; the file then holds no others")
    parser.add_argument("--out", type=Path, default=OUT)
    return parser.parse_args()


if __name__ == "__main__":
    main()
