"""kerneltruth judges GPU kernels that a language model wrote.

    import kerneltruth as kt

    report = kt.check("softmax.py", task="softmax")

The names below are imported when they are first used; none of them imports torch here.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kerneltruth.errors import (
        DeclarationError,
        EnvironmentFault,
        InternalError,
        KernelTruthError,
        UserError,
    )
    from kerneltruth.library.candidates import NamedCandidate
    from kerneltruth.library.checking import KernelIncorrect, assert_correct, check
    from kerneltruth.library.judge import Judge
    from kerneltruth.library.options import CheckOptions
    from kerneltruth.library.report import FoundFailure, Report
    from kerneltruth.suites.suite import Opening, Suite, TaskSource
    from kerneltruth.suites.terms import Terms
    from kerneltruth.tasks.spec import Benchmark, Dim, Output, Promises, Variants, task

__version__ = "0.1.0"

__all__ = [
    "Benchmark",
    "CheckOptions",
    "DeclarationError",
    "Dim",
    "EnvironmentFault",
    "FoundFailure",
    "InternalError",
    "Judge",
    "KernelIncorrect",
    "KernelTruthError",
    "NamedCandidate",
    "Opening",
    "Output",
    "Promises",
    "Report",
    "Suite",
    "TaskSource",
    "Terms",
    "UserError",
    "Variants",
    "assert_correct",
    "check",
    "task",
]

_HOMES = {
    "kerneltruth.errors": (
        *("DeclarationError", "EnvironmentFault", "InternalError", "KernelTruthError"),
        "UserError",
    ),
    "kerneltruth.library.candidates": ("NamedCandidate",),
    "kerneltruth.library.checking": ("KernelIncorrect", "assert_correct", "check"),
    "kerneltruth.library.judge": ("Judge",),
    "kerneltruth.library.options": ("CheckOptions",),
    "kerneltruth.library.report": ("FoundFailure", "Report"),
    "kerneltruth.suites.suite": ("Opening", "TaskSource", "Suite"),
    "kerneltruth.suites.terms": ("Terms",),
    "kerneltruth.tasks.spec": (
        *("Benchmark", "Dim", "Output", "Promises", "Variants"),
        "task",
    ),
}


def __getattr__(name: str) -> object:
    for home, names in _HOMES.items():
        if name in names:
            _refuse_recursion(home)
            found = globals()[name] = getattr(import_module(home), name)
            return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _refuse_recursion(home: str) -> None:
    """Refuse to judge in a file that a judge imports, where each judgement would lead to another.

    A candidate's process may not read the library: its own error would not say why.

    Raises:
        RuntimeError: this process imports a candidate.
    """
    child = sys.modules.get("kerneltruth.runner.child.entry")
    importing: list[str] = getattr(child, "IMPORTING", [])
    if importing and home.startswith("kerneltruth.library"):
        raise RuntimeError(
            "a kernel is judged while its own file is imported; put the call under "
            '`if __name__ == "__main__":`'
        )


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
