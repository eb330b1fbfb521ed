"""Candidate processes warmed up early: they import torch while this one does. No torch here."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from kerneltruth.runner.host import Runner


def new_runner(device: str, targets: tuple[str, ...]) -> Runner:
    """Return a runner for the device; Triton compiles for other targets on a CPU only."""
    on_cpu = device == "cpu"
    return Runner(device=device, targets=targets if on_cpu else (), cache_root=cache_root())


def begin(runner: Runner, *, timed: bool = False) -> None:
    """Begin to warm up, and return at once.

    Args:
        runner: to warm up.
        timed: whether right kernels are to be timed; on a CPU none is.
    """
    if runner.device == "cpu":
        runner.start(("run", "compile") if runner.targets else ("run",))
    else:
        runner.start(("run", "time_compiled") if timed else ("run",))


def cache_root() -> Path | None:
    """Return where compiled kernels are kept between runs, so that a second run is warm.

    None where no such place can be written: then every run compiles anew.
    """
    with contextlib.suppress(OSError, RuntimeError):
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        folder = Path(base) / "kerneltruth" / "compiled"
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK | os.X_OK):
            return folder
    return None
