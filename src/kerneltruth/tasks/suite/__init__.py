"""KernelBenchX's 176 tasks, declared in our own words: the tuples of this folder's files."""

from __future__ import annotations

import pkgutil
from dataclasses import replace
from importlib import import_module

from kerneltruth.tasks.collection import by_key
from kerneltruth.tasks.spec import Task

SUITE = "kernelbenchx"

MODULES: tuple[str, ...] = tuple(sorted(m.name for m in pkgutil.iter_modules(__path__)))


def tasks_of(module: str) -> tuple[Task, ...]:
    """The tasks that one file of this folder declares."""
    declared: tuple[Task, ...] = import_module(f"{__name__}.{module}").TASKS
    return tuple(replace(task, suite=SUITE) for task in declared)


TASKS: dict[str, Task] = by_key(task for module in MODULES for task in tasks_of(module))
