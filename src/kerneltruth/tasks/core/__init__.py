"""The operators of the audit's corpus: the tuples of this folder's files."""

from __future__ import annotations

from kerneltruth.tasks.collection import Folder
from kerneltruth.tasks.spec import CORE, Task

FOLDER = Folder(__name__, __path__, CORE, eager="core/")


def __getattr__(name: str) -> dict[str, Task]:
    """Load `TASKS` at the first access: one file can be imported without all the others."""
    if name == "TASKS":
        return FOLDER.tasks
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
