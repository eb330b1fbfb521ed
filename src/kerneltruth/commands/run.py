"""`run`: many candidates through the stages call, exe and perf.

Light to import; what needs torch is in `running`.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from kerneltruth.commands.devices import choose_device, choose_targets
from kerneltruth.commands.head_start import begin, new_runner
from kerneltruth.commands.step import Step
from kerneltruth.errors import UserError
from kerneltruth.importers.submission import Labels

STAGES = ("call", "exe", "perf")
EXECUTORS = ("local", "ray")
# Judged unless told otherwise, or as many as it takes to try what the task promises.
CASES = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What the command line says.

    Attributes:
        candidates: a file, a folder, or a run directory of KernelBench.
        cases: judged per candidate in the exe stage; None means 16, or as many as it takes to try
            what its task promises.
        stages: which of `STAGES`, a prefix of them.
        baselines: whether the peers' checks are run on each candidate too.
        against: whom right candidates are timed against; empty means the usual ones.
        labels: for candidates whose own format does not say.
        address: of the Ray cluster; None starts or finds a local one.
    """

    suite: str
    candidates: Path
    device: str = "auto"
    seed: int = 0
    out: Path | None = None
    workers: int | None = None
    deadline_s: float = 20.0
    cases: int | None = None
    strategies: tuple[str, ...] = ()
    stages: tuple[str, ...] = STAGES
    explain: bool = True
    baselines: bool = False
    against: tuple[str, ...] = ()
    labels: Labels = field(default_factory=Labels)
    executor: str = "local"
    address: str | None = None
    targets: tuple[str, ...] = ("sm_90",)


def stages_until(last: str) -> tuple[str, ...]:
    """The stages up to one of them.

    Raises:
        UserError: there is no such stage.
    """
    if last not in STAGES:
        raise UserError(f"--stage {last!r}: must be one of {', '.join(STAGES)}")
    return STAGES[: STAGES.index(last) + 1]


def run_suite(options: RunOptions) -> Generator[Step, None, dict[str, Any]]:
    """Judge every candidate; yields steps and returns the document of `run --json`."""
    start = time.monotonic()
    if options.executor not in EXECUTORS:
        raise UserError(f"--executor {options.executor!r}: must be one of {', '.join(EXECUTORS)}")
    if options.against and "perf" not in options.stages:
        raise UserError(
            f"--against {options.against[0]}: nothing is timed up to the stage "
            f"{options.stages[-1]}; leave it out, or the --stage"
        )
    if not options.candidates.exists():
        raise UserError(f"--candidates {options.candidates}: there is no such file or folder")
    options = replace(options, targets=choose_targets(options.targets))
    runner = new_runner(choose_device(options.device), options.targets)
    try:
        # From here on the runner's processes import torch, and so does this one, side by side.
        if options.executor == "local":
            begin(runner, timed="perf" in options.stages)
        from kerneltruth.commands.running import judge_submissions

        return (yield from judge_submissions(options, runner, start))
    finally:
        runner.close()
