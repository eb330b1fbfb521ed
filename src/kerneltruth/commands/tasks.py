"""`tasks`: what kernels can be judged on."""

from __future__ import annotations

from typing import Any

from kerneltruth.errors import UserError
from kerneltruth.tasks.core import TASKS
from kerneltruth.tasks.registry import find
from kerneltruth.tasks.spec import Task


def list_tasks(name: str | None, suite: str | None) -> dict[str, Any]:
    """The document of `tasks --json`: all tasks, those of a suite, or one."""
    chosen = [find(name)] if name else list(TASKS.values())
    if suite is not None:
        suites = sorted({t.suite for t in TASKS.values()})
        if suite not in suites:
            raise UserError(f"--suite {suite!r}: must be one of {', '.join(suites)}")
        chosen = [t for t in chosen if t.suite == suite]
    return {"schema": 1, "tasks": [_describe(t) for t in chosen]}


def _describe(task: Task) -> dict[str, Any]:
    return {
        "name": task.name,
        "category": task.category,
        "suite": task.suite,
        "signature": task.signature,
        "dtypes": list(task.dtypes),
        "extended_dtypes": list(task.extended_dtypes),
        "dims": {d.symbol: {"role": d.role, "low": d.low, "high": d.high} for d in task.dims},
        "attributes": {a.name: list(a.values) for a in task.attributes},
        "constraints": list(task.constraints),
        "flops": task.flops,
        "description": task.description,
    }
