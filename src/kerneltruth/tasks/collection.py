"""Tables of tasks by key."""

from __future__ import annotations

from collections.abc import Iterable

from kerneltruth.errors import InternalError
from kerneltruth.tasks.spec import Task


def by_key(tasks: Iterable[Task]) -> dict[str, Task]:
    """The tasks in their order, by key; two of one key are our mistake."""
    table: dict[str, Task] = {}
    for task in tasks:
        if task.key in table:
            raise InternalError(f"two tasks are named {task.key!r}")
        table[task.key] = task
    return table
