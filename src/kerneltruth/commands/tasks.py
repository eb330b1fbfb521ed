"""`tasks`: what kernels can be judged on."""

from __future__ import annotations

from typing import Any

from kerneltruth.tasks.registry import TASKS, find, tasks_of
from kerneltruth.tasks.spec import Task


def list_tasks(name: str | None, suite: str | None) -> dict[str, Any]:
    """The document of `tasks --json`: all tasks, those of a suite, or one."""
    if name:
        chosen = [find(name, suite)]
    else:
        chosen = list((TASKS if suite is None else tasks_of(suite)).values())
    return {"schema": 1, "tasks": [_describe(t) for t in chosen]}


def _describe(task: Task) -> dict[str, Any]:
    return {
        "key": task.key,
        "name": task.name,
        "entry": task.entry,
        "category": task.category,
        "suite": task.suite,
        "signature": task.signature,
        "dtypes": list(task.dtypes),
        "extended_dtypes": list(task.extended_dtypes),
        "dims": {d.symbol: {"role": d.role, "low": d.low, "high": d.high} for d in task.dims},
        "attributes": {a.name: list(a.values) for a in task.attributes},
        "constraints": list(task.constraints),
        "outputs": [
            {"name": o.name, "dtype": o.dtype, "compare": o.compare, "when": o.when}
            for o in task.outputs
        ],
        "flops": task.flops,
        "perf": [dict(shape) for shape in task.perf],
        "description": task.description,
    }
