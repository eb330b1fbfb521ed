"""Plain PyTorch as a candidate: a file of functions for each file of the suite, by entry.

Where PyTorch has a fault of its own, the entry goes around it, and what anybody would write stands
beside it, named by `UNAIDED`: what that does wrong is no kernel's fault either.
"""

from __future__ import annotations

from pathlib import Path

from kerneltruth.errors import InternalError

UNAIDED = "_unaided"


def eager_source(module: str) -> str:
    """The source of a file of functions, by the name of the suite's file."""
    path = Path(__file__).parent / f"{module}.py"
    if not path.is_file():
        raise InternalError(f"no eager functions for the tasks of {module!r}")
    return path.read_text(encoding="utf-8")
