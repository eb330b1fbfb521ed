"""`time`: one kernel file against its baselines. Light to import; what needs torch is elsewhere."""

from __future__ import annotations

import shutil
import time
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kerneltruth.commands.devices import choose_device
from kerneltruth.commands.head_start import new_runner
from kerneltruth.commands.step import Step
from kerneltruth.errors import EnvironmentFault, UserError


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeOptions:
    """What the command line says.

    Attributes:
        baselines: names of baselines; empty means the usual ones.
        budget_s: seconds of blocks for each shape.
        measure_again: forget what is known of the device.
        profile: whether Nsight Compute looks at the kernels too.
    """

    file: Path
    task: str | None = None
    suite: str | None = None
    dtype: str | None = None
    baselines: tuple[str, ...] = ()
    budget_s: float = 2.0
    measure_again: bool = False
    profile: bool = False
    device: str = "auto"
    seed: int | None = None
    out: Path | None = None
    deadline_s: float = 30.0


def run_time(options: TimeOptions) -> Generator[Step, None, dict[str, Any]]:
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


def _compiles(options: TimeOptions) -> bool:
    """Whether a baseline is compiled by torch, which takes long to import."""
    return not options.baselines or any(name.startswith("compile") for name in options.baselines)
