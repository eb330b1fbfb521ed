"""Collect tasks by key, and suites that are folders of declarations."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from importlib import import_module

from kerneltruth.errors import DeclarationError, InternalError
from kerneltruth.tasks.spec import Task


def by_key(tasks: Iterable[Task]) -> dict[str, Task]:
    """Return the tasks in order, by key; a repeated key is our mistake."""
    table: dict[str, Task] = {}
    for task in tasks:
        if task.key in table:
            raise InternalError(f"two tasks are named {task.key!r}")
        table[task.key] = task
    return table


class Folder:
    """A suite whose tasks are the tuples `TASKS` of a package's files.

    One file can be imported without all the others.

    Attributes:
        suite: its name.
        modules: its files.
    """

    def __init__(self, package: str, path: Iterable[str], suite: str, *, eager: str) -> None:
        self.suite = suite
        self.modules: tuple[str, ...] = tuple(sorted(m.name for m in pkgutil.iter_modules(path)))
        self._package = package
        self._eager = eager

    def tasks_of(self, module: str) -> tuple[Task, ...]:
        """Return the tasks that one file declares."""
        try:
            declared: tuple[Task, ...] = import_module(f"{self._package}.{module}").TASKS
        except DeclarationError as error:
            raise InternalError(f"{self._package}.{module}: {error}") from error
        return tuple(replace(task, suite=self.suite) for task in declared)

    @cached_property
    def eager_modules(self) -> dict[str, str]:
        """Return the file of `corpus.eager` that has each task's function, by key."""
        return {
            task.key: f"{self._eager}{module}"
            for module in self.modules
            for task in self.tasks_of(module)
        }

    @cached_property
    def tasks(self) -> dict[str, Task]:
        """Return the tasks by key."""
        return by_key(task for module in self.modules for task in self.tasks_of(module))
