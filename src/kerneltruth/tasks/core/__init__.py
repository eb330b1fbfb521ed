"""The operators of the audit's corpus: the tuples of this folder's files."""

from __future__ import annotations

from kerneltruth.tasks.collection import Folder
from kerneltruth.tasks.spec import CORE, Task

SUITE = CORE

_FOLDER = Folder(__name__, __path__, SUITE)
MODULES = tuple(f"{SUITE}/{module}" for module in _FOLDER.modules)


def tasks_of(module: str) -> tuple[Task, ...]:
    """The tasks that one file declares."""
    return _FOLDER.tasks_of(module.removeprefix(f"{SUITE}/"))


def modules_by_key() -> dict[str, str]:
    """The file of `corpus.eager` that has each task's function."""
    return {key: f"{SUITE}/{module}" for key, module in _FOLDER.modules_by_key.items()}


def __getattr__(name: str) -> dict[str, Task]:
    """`TASKS`, read when it is asked for."""
    if name == "TASKS":
        return _FOLDER.tasks
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
