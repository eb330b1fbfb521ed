"""`time`: one kernel file against its baselines. Light to import; what needs torch is elsewhere."""

from __future__ import annotations

import shutil
import time
from collections.abc import Generator
from typing import Any

from kerneltruth.commands.head_start import new_runner
from kerneltruth.engine.devices import choose_device
from kerneltruth.engine.events import Step
from kerneltruth.engine.requests import TimeRequest
from kerneltruth.errors import EnvironmentFault, UserError


def run_time(options: TimeRequest) -> Generator[Step, None, dict[str, Any]]:
    """Time one file; yields steps and returns the document of `time --json`."""
    start = time.monotonic()
    if not options.file.is_file():
        what = "is a directory" if options.file.is_dir() else "there is no such file"
        raise UserError(f"cannot read {str(options.file)!r}: {what}; name a Python file")
    if options.profile and shutil.which("ncu") is None:
        raise EnvironmentFault(
            "--profile: ncu is not installed; Nsight Compute comes with the CUDA toolkit"
        )
    runner = new_runner(choose_device(options.device), ())
    try:
        runner.start(("time", "time_compiled") if _compiles(options) else ("time",))
        from kerneltruth.commands.timing import time_file

        return (yield from time_file(options, runner, start))
    finally:
        runner.close()


def _compiles(options: TimeRequest) -> bool:
    """Whether a baseline is compiled by torch, which takes long to import."""
    return not options.baselines or any(name.startswith("compile") for name in options.baselines)
