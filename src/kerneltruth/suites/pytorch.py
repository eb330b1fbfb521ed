"""Return PyTorch's own function for a task as a candidate, which no verdict may call wrong."""

from __future__ import annotations

from dataclasses import replace

from kerneltruth.corpus.eager import UNAIDED, eager_source
from kerneltruth.runner.candidate import Candidate, read_candidate
from kerneltruth.suites.catalog import open_tasks
from kerneltruth.tasks.registry import eager_modules
from kerneltruth.tasks.spec import Task


def unaided_function(task: Task) -> Candidate | None:
    """Return the code that a PyTorch user would write for the task, with PyTorch's own faults."""
    return eager_of(task, unaided=True) or own_function(task)


def own_function(task: Task) -> Candidate | None:
    """Return an open suite's own right candidate: its program, or the task's reference."""
    suite = open_tasks(task.suite)
    return None if suite is None else suite.own_function(task)


def eager_of(task: Task, *, unaided: bool = False) -> Candidate | None:
    """Return PyTorch itself as the candidate, if a file of `corpus.eager` has the task."""
    module = eager_modules(task.suite).get(task.key)
    return None if module is None else eager_candidate(task, module, unaided=unaided)


def eager_candidate(task: Task, module: str, *, unaided: bool = False) -> Candidate:
    """Return PyTorch itself as the candidate for a task that a file of the suite declares.

    With `unaided`, PyTorch's own faults are not worked around.
    """
    source = eager_source(module)
    plain = f"{task.entry}{UNAIDED}"
    made = read_candidate(
        source,
        f"eager/{module}.py",
        task_names=(task.name,),
        task=task.name,
        entry=plain if unaided and plain in source else task.entry,
    )
    return replace(made, trusted=True)
