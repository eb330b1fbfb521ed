"""List tasks: what kernels can be judged on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace

from kerneltruth.cases.promised import promises_of
from kerneltruth.documents.facts import TaskDim, TaskFacts, TaskOutput, TasksDocument
from kerneltruth.errors import UserError
from kerneltruth.oracle.contract import DEFAULT_CONTRACT, contract_named
from kerneltruth.suites.foreign import (
    is_foreign,
    is_one_file,
    listed_at,
    opened,
    own_reference,
)
from kerneltruth.suites.kernelbench.declaration import declaration_of
from kerneltruth.suites.kernelbench.tasks import REFERENCE
from kerneltruth.suites.terms import contract_of
from kerneltruth.tasks.expressions import names_of
from kerneltruth.tasks.registry import TASKS, Listed, find, tasks_of
from kerneltruth.tasks.spec import Task


def list_tasks(suite: str | None) -> TasksDocument:
    """Return the document of `tasks --json`: all tasks, or those of a suite.

    The problems of a foreign suite are listed as their files state them.
    """
    if is_foreign(suite) and not is_one_file(suite):
        return TasksDocument(tasks=tuple(map(_outline, listed_at(suite).values())))
    with opened(suite) as own:
        chosen = (TASKS if own is None else tasks_of(own)).values()
        return TasksDocument(tasks=tuple(map(_describe, chosen)))


def show_task(name: str, suite: str | None, contract: str = DEFAULT_CONTRACT) -> TasksDocument:
    """Return the document of `tasks NAME --json`: one task with what a contract makes of it.

    Raises:
        UserError: there is no such task or contract.
    """
    terms = contract_named(contract)
    with opened(suite) as own:
        task = find(name, own)
        shown = replace(_describe(task), contract=contract_of(task, terms))
        return TasksDocument(tasks=(shown,))


def declare(reference: Path) -> TasksDocument:
    """Return the task of a reference, with a file for `--tasks` that declares it.

    Raises:
        UserError: the file is no reference, or has KernelBench's form.
    """
    with opened(f"{REFERENCE}:{reference}") as suite:
        found = own_reference(suite)
        if found is None or found[0].function is None:
            raise UserError(
                f"--from {reference}: it has KernelBench's form, which a declaration cannot "
                "express; use it as it is, with --reference"
            )
        return TasksDocument(tasks=(_describe(found[2]),), declaration=declaration_of(*found))


def _outline(task: Listed) -> TaskFacts:
    """Describe a problem before it runs: shapes and dtypes are unknown."""
    if task.made is not None:
        return _describe(task.made)
    return TaskFacts(
        key=task.key,
        name=task.name,
        entry=task.entry,
        category=task.category,
        suite=task.key.partition("/")[0],
        signature=task.signature,
        dtypes=(),
        extended_dtypes=(),
        promises=(),
        not_tried={},
        dims={},
        attributes={},
        constraints=(),
        outputs=(),
        flops=None,
        perf=(),
        description=task.description,
        unrefereeable=task.trouble,
    )


def _where(task: Task) -> Iterator[str]:
    """Say what the names in a signature stand for."""
    for name, rule in task.where.items():
        if f"*{name}" in task.signature or f":={name}" in task.signature:
            follows = f"from {', '.join(names_of(rule))}" if callable(rule) else str(rule)
            yield f"{name} {follows}"


def _describe(task: Task) -> TaskFacts:
    return TaskFacts(
        key=task.key,
        name=task.name,
        entry=task.entry,
        category=task.category,
        suite=task.suite,
        signature="; ".join((task.signature, *_where(task))),
        dtypes=tuple(task.dtypes),
        extended_dtypes=tuple(task.extended_dtypes),
        promises=() if task.foreign else tuple(map(str, promises_of(task))),
        not_tried=dict(task.promises.not_tried),
        dims={d.symbol: TaskDim(role=d.role, low=d.low, high=d.high) for d in task.dims},
        attributes={a.name: tuple(a.values) for a in task.attributes},
        constraints=tuple(task.constraints),
        outputs=tuple(
            TaskOutput(name=o.name, dtype=o.dtype, compare=o.compare, when=o.when)
            for o in task.outputs
        ),
        flops=task.flops,
        perf=tuple(dict(shape) for shape in task.perf),
        description=task.description,
        unrefereeable=task.unrefereeable,
    )
