"""List the tasks that kernels can be judged on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace

from kerneltruth.cases.promised import promises_of
from kerneltruth.documents.contracts import contract_name
from kerneltruth.documents.facts import TaskDim, TaskFacts, TaskOutput, TasksDocument
from kerneltruth.errors import UserError
from kerneltruth.oracle.contract import DEFAULT_CONTRACT
from kerneltruth.runner.host import Runner
from kerneltruth.suites.catalog import (
    is_at_hand,
    open_suite,
    open_tasks,
    opened,
    suite_class,
    terms_of,
)
from kerneltruth.suites.kernelbench.tasks import REFERENCE
from kerneltruth.suites.suite import Opening
from kerneltruth.suites.terms import contract_of
from kerneltruth.tasks.categories import CRITERIA
from kerneltruth.tasks.expressions import names_of
from kerneltruth.tasks.registry import TASKS, Listed, find, tasks_of
from kerneltruth.tasks.spec import Task


def list_tasks(suite: str | None) -> TasksDocument:
    """Return the document of `tasks --json`: all tasks, or those of a suite.

    The problems of a suite are listed as their files state them; only a user's own file is run.
    """
    if suite is None or is_at_hand(suite):
        chosen = (TASKS if suite is None else tasks_of(suite)).values()
        return TasksDocument(tasks=tuple(map(_describe, chosen)))
    if suite_class(suite.partition(":")[0]).any_name:
        with opened(suite) as own:
            return TasksDocument(tasks=tuple(map(_describe, tasks_of(own or "").values())))
    found = open_suite(Opening(option=suite, runner=Runner(device="cpu")))
    return TasksDocument(tasks=tuple(map(_outline, found.listed().values())))


def show_task(name: str, suite: str | None, contract: str = DEFAULT_CONTRACT) -> TasksDocument:
    """Return the document of `tasks NAME --json`: one task under a contract.

    Raises:
        UserError: there is no such task or contract.
    """
    chosen = contract_name(contract)
    with opened(suite) as own:
        task = find(name, own)
        shown = replace(_describe(task), contract=contract_of(task, chosen, terms_of(task.suite)))
        return TasksDocument(tasks=(shown,))


def declare(reference: Path) -> TasksDocument:
    """Return the task of a reference, with a file for `--tasks` that declares it.

    Raises:
        UserError: the file is no reference, or has KernelBench's form.
    """
    with opened(f"{REFERENCE}:{reference}") as suite:
        known = open_tasks(suite)
        assert known is not None
        ((name, _),) = known.listed().items()
        declaration = known.suite.declaration(name)
        if declaration is None:
            raise UserError(
                f"--from {reference}: it has KernelBench's form, which a declaration cannot "
                "express; use it as it is, with --reference"
            )
        task = known[f"{known.name}/{name}"]
        return TasksDocument(tasks=(_describe(task),), declaration=declaration)


def _outline(task: Listed) -> TaskFacts:
    """Describe a problem before it runs: shapes and dtypes are unknown."""
    if task.made is not None:
        return _describe(task.made)
    return TaskFacts(
        key=task.key,
        name=task.name,
        entry=task.entry,
        category=task.category,
        criterion=CRITERIA.get(task.category),
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
        criterion=CRITERIA.get(task.category),
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
