"""KernelBenchX's 176 tasks, declared in our own words: the tuples of this folder's files."""

from __future__ import annotations

from kerneltruth.tasks.collection import Folder
from kerneltruth.tasks.spec import Task

SUITE = "kernelbenchx"

_FOLDER = Folder(__name__, __path__, SUITE)
MODULES = _FOLDER.modules
tasks_of = _FOLDER.tasks_of


def modules_by_key() -> dict[str, str]:
    """The file of `corpus.eager` that has each task's function; it is named as this folder's."""
    return _FOLDER.modules_by_key


def __getattr__(name: str) -> dict[str, Task]:
    """`TASKS`, read when it is asked for: one file can be imported without all the others."""
    if name == "TASKS":
        return _FOLDER.tasks
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
