"""Published benchmarks whose tasks this package declares."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Self

from kerneltruth.suites.suite import NOTHING, Opening, Suite
from kerneltruth.suites.terms import Terms
from kerneltruth.tasks.registry import tasks_of
from kerneltruth.tasks.spec import Task

QUOTED = "the sentences of the task's published prompt, which its tasks keep, and this project"


class KernelBenchX(Suite):
    """KernelBenchX's tasks."""

    place = NOTHING
    called = "kernelbenchx"
    # Read at commit fd41922.
    terms = Terms(
        check="the benchmark's own test at its sizes, on a standard and an outlier draw, of a "
        "function with the task's name or `kernel_function`; it need not launch a kernel: a file "
        "without @triton.jit is only marked, and only where it is timed",
        checked_by="EVAL/1_exe_acc.py, utils/correction_utils.py (impl_must_export_kernel) and "
        "EVAL/triton_validator.py of BonnieW05/KernelBenchX",
        prompt=QUOTED,
    )

    @classmethod
    def open(cls, path: Path, opening: Opening) -> Self:
        """Return the suite; there is nothing to open."""
        return cls()

    def tasks(self) -> Iterable[Task]:
        """Return the declared tasks."""
        return tasks_of(self.called).values()


class TritonBench(KernelBenchX):
    """TritonBench's tasks, aligned with PyTorch."""

    called = "tritonbench"
    terms = Terms(
        check="the benchmark's own test at its sizes, whose printed text is compared; nearly all "
        "of its tests print nothing",
        checked_by="1_exe_acc.py of thunlp/TritonBench",
        prompt=QUOTED,
    )
