"""KernelBenchX's 176 tasks, declared in our own words: the tuples of this folder's files."""

from __future__ import annotations

import pkgutil
from dataclasses import replace
from functools import cache
from importlib import import_module

from kerneltruth.tasks.collection import by_key
from kerneltruth.tasks.spec import Task

SUITE = "kernelbenchx"

MODULES: tuple[str, ...] = tuple(sorted(m.name for m in pkgutil.iter_modules(__path__)))


def tasks_of(module: str) -> tuple[Task, ...]:
    """The tasks that one file of this folder declares."""
    declared: tuple[Task, ...] = import_module(f"{__name__}.{module}").TASKS
    return tuple(replace(task, suite=SUITE) for task in declared)


@cache
def modules_by_key() -> dict[str, str]:
    """The file that declares each task."""
    return {task.key: module for module in MODULES for task in tasks_of(module)}


@cache
def _all() -> dict[str, Task]:
    return by_key(task for module in MODULES for task in tasks_of(module))


def __getattr__(name: str) -> dict[str, Task]:
    """`TASKS`, read when it is asked for: one file can be imported without all the others."""
    if name == "TASKS":
        return _all()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
