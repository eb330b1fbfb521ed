"""PyTorch's own function for a task, as a candidate: what no verdict may speak against."""

from __future__ import annotations

from kerneltruth.importers.flashinfer.suite import DataSet
from kerneltruth.importers.kernelbench.suite import Problems
from kerneltruth.runner.candidate import Candidate
from kerneltruth.tasks.registry import FOREIGN, tasks_of
from kerneltruth.tasks.spec import Task


def control_of(task: Task) -> Candidate | None:
    """What anybody would write for the task with PyTorch, faults of PyTorch's own included."""
    # Most candidates need none.
    from kerneltruth.commands.suite_audit import eager_of

    return eager_of(task, unaided=True) or own_function(task)


def own_function(task: Task) -> Candidate | None:
    """A problem's own model, or a definition's own reference: each is eager PyTorch."""
    if task.suite not in FOREIGN:
        return None
    suite = tasks_of(task.suite)
    if isinstance(suite, DataSet):
        return suite.own_reference(task.key)
    return suite.own_model(task.name) if isinstance(suite, Problems) else None
