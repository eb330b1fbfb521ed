"""`audit`: the built-in corpus judged, beside what the peers' checks say of the same kernels.

Light to import; what needs torch is in `auditing`.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kerneltruth.commands.devices import choose_device, choose_targets
from kerneltruth.commands.head_start import begin, new_runner
from kerneltruth.commands.step import Step
from kerneltruth.errors import EnvironmentFault, UserError
from kerneltruth.runner.host import Runner


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditOptions:
    """What the command line says."""

    device: str = "auto"
    seed: int = 0
    out: Path | None = None
    workers: int | None = None
    deadline_s: float = 20.0
    only: tuple[str, ...] = ()
    full: bool = False
    cases: int = 32
    promises: bool = False
    baselines: bool = True
    targets: tuple[str, ...] = ("sm_90",)
    suite: str | None = None
    timed: bool = False
    budget_s: float | None = None


def run_audit(options: AuditOptions) -> Generator[Step, None, dict[str, Any]]:
    """Judge the corpus, or prove a suite; yields steps and returns the document of `--json`.

    Raises:
        UserError: there is no such suite, or it goes with none of the options.
        EnvironmentFault: it is to be timed, and there is no GPU.
    """
    start = time.monotonic()
    if options.budget_s is not None and options.suite is None:
        raise UserError("--budget: goes with --suite")
    if options.timed and options.suite is None:
        raise UserError("--timed: times PyTorch's functions of a suite; name it by --suite")
    options = replace(options, targets=choose_targets(options.targets))
    runner = new_runner(choose_device(options.device), options.targets)
    try:
        # From here on the runner's processes import torch, and so does this one, side by side.
        if options.timed:
            return (yield from _time_suite(options, runner, start))
        begin(runner)
        if options.suite is not None:
            if options.out is not None:
                raise UserError("--out: a suite's proof keeps no run; use --json")
            from kerneltruth.commands.proving import audit_suite

            return (yield from audit_suite(options, runner, start))
        from kerneltruth.commands.auditing import audit_corpus

        return (yield from audit_corpus(options, runner, start))
    finally:
        runner.close()


def _time_suite(
    options: AuditOptions, runner: Runner, start: float
) -> Generator[Step, None, dict[str, Any]]:
    if options.out is not None:
        raise UserError("--out: a timed suite keeps no run; use --json")
    if runner.device == "cpu":
        raise EnvironmentFault(
            "--timed: there is no GPU, and what a busy host takes says nothing of the clock; run "
            "this where `kerneltruth doctor` shows a device"
        )
    runner.start(("time",))
    from kerneltruth.commands.timed_audit import time_suite

    return (yield from time_suite(options, runner, start))
