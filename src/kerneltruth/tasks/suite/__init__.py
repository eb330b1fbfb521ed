"""Every task, by name: the tuples of this folder's files, concatenated."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from kerneltruth.errors import InternalError, UserError
from kerneltruth.tasks.spec import Task
from kerneltruth.tasks.suite import (
    activation,
    attention,
    index,
    loss,
    math,
    matrix_multiply,
    normalization,
    pooling,
    quantization,
    reduce,
    spatial,
)


def by_name(tasks: Iterable[Task]) -> dict[str, Task]:
    """The tasks in their order, by name; two of one name are our mistake."""
    table: dict[str, Task] = {}
    for task in tasks:
        if task.name in table:
            raise InternalError(f"two tasks are named {task.name!r}")
        table[task.name] = task
    return table


TASKS: dict[str, Task] = by_name(
    (
        *activation.TASKS,
        *normalization.TASKS,
        *reduce.TASKS,
        *matrix_multiply.TASKS,
        *attention.TASKS,
        *index.TASKS,
        *loss.TASKS,
        *pooling.TASKS,
        *spatial.TASKS,
        *quantization.TASKS,
        *math.TASKS,
    )
)


def find(name: str) -> Task:
    """The task of that name; a user's misspelling is answered with the nearest names."""
    if name in TASKS:
        return TASKS[name]
    near = get_close_matches(name, TASKS, n=3, cutoff=0.5)
    hint = f"nearest: {', '.join(near)}; " if near else ""
    raise UserError(f"unknown task {name!r}; {hint}see `kerneltruth tasks`")
