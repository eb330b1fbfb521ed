"""`check`: one kernel file judged. Light to import; what needs torch is in `judging`."""

from __future__ import annotations

import time
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kerneltruth.commands.devices import choose_device, choose_targets
from kerneltruth.commands.head_start import begin, new_runner
from kerneltruth.commands.step import Step
from kerneltruth.errors import UserError

# Judged unless told otherwise, or as many as it takes to try what the task promises.
CASES = 48


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckOptions:
    """What the command line says."""

    file: Path
    task: str | None = None
    suite: str | None = None
    dtypes: tuple[str, ...] = ()
    strategies: tuple[str, ...] = ()
    cases: int | None = None
    bounds: str = "spread"
    tf32: bool = True
    domain: str = "extended"
    targets: tuple[str, ...] = ("sm_90",)
    device: str = "auto"
    seed: int = 0
    out: Path | None = None
    deadline_s: float = 20.0


def run_check(options: CheckOptions) -> Generator[Step, None, dict[str, Any]]:
    """Judge one file; yields steps and returns the document of `check --json`."""
    start = time.monotonic()
    if options.domain not in ("core", "extended"):
        raise UserError(f"--domain {options.domain!r}: must be core or extended")
    if not options.file.is_file():
        what = "is a directory" if options.file.is_dir() else "there is no such file"
        raise UserError(f"cannot read {str(options.file)!r}: {what}; name a Python file")
    runner = new_runner(choose_device(options.device), choose_targets(options.targets))
    try:
        # From here on the runner's processes import torch, and so does this one, side by side.
        begin(runner)
        from kerneltruth.commands.judging import judge_file

        return (yield from judge_file(options, runner, start))
    finally:
        runner.close()
