"""Render `tasks` and `doctor`."""

from __future__ import annotations

from collections import Counter

from msgspec import UNSET
from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from kerneltruth.documents.facts import ContractFacts, DoctorDocument, TaskFacts, TasksDocument


def tasks_view(document: TasksDocument) -> RenderableType:
    """Return a table of tasks, or one task in full."""
    tasks = document.tasks
    if len(tasks) == 1:
        contract = tasks[0].contract
        shown = () if contract is UNSET else (Text(), _contract(contract))
        return Group(_one(tasks[0]), *shown)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("task", "category", "dims", "dtypes"):
        table.add_column(column, overflow="fold")
    for task in tasks:
        dims = " ".join(f"{s}:{d.role}" for s, d in task.dims.items())
        table.add_row(task.key, task.category, dims, " ".join(task.dtypes))
    counts = Counter(task.category for task in tasks)
    total = ", ".join(f"{n} {c}" for c, n in sorted(counts.items()))
    return Group(table, Text(f"{len(tasks)} tasks: {total}"))


def _one(task: TaskFacts) -> RenderableType:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for key in ("key", "category", "suite", "signature", "entry", "description"):
        table.add_row(key, str(getattr(task, key)))
    for symbol, dim in task.dims.items():
        high = "" if dim.high is None else f", at most {dim.high}"
        table.add_row(f"dim {symbol}", f"{dim.role}, at least {dim.low}{high}")
    for name, values in task.attributes.items():
        table.add_row(f"attribute {name}", ", ".join(map(repr, values)))
    table.add_row("dtypes", " ".join(task.dtypes))
    if task.extended_dtypes:
        table.add_row("further dtypes", " ".join(task.extended_dtypes))
    if task.promises:
        table.add_row("promises", "; ".join(task.promises))
    for promise, why in task.not_tried.items():
        table.add_row("not tried", f"{promise}: {why}")
    if task.constraints:
        table.add_row("constraints", "; ".join(task.constraints))
    for output in task.outputs:
        when = f", when {output.when}" if output.when else ""
        said = f"{output.dtype}, compared by {output.compare}{when}"
        table.add_row(f"output {output.name}", said)
    if task.unrefereeable:
        table.add_row("unrefereeable", task.unrefereeable)
    table.add_row("flops", task.flops)
    for shape in task.perf:
        table.add_row("timed at", " ".join(f"{s}={n}" for s, n in shape.items()))
    return table


def _contract(contract: ContractFacts) -> RenderableType:
    """Show what a contract asks of a task: a line for each obligation, sentences below."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    table.add_row("contract", f"{contract.name}: {contract.asks}")
    table.add_row("", f"{contract.reason} (source: {contract.source})")
    for name, obligation in contract.obligations.items():
        decides = "decides" if obligation.decisive else "is only noted"
        because = f": {obligation.reason}" if obligation.reason else ""
        table.add_row(name, f"{decides}{because}")
        for said in obligation.promises:
            table.add_row("", Text(f"{said.promise}: “{said.sentence}”"))
    return table


def doctor_view(document: DoctorDocument) -> RenderableType:
    """Show what the machine can do, then what is missing."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    table.add_row("python", f"{document.python} on {document.system}")
    for device in document.devices:
        table.add_row(device.device, f"{device.name}: {device.runs}")
    if document.driver:
        table.add_row("driver", document.driver)
    versions = " ".join(f"{n} {v or 'MISSING'}" for n, v in document.libraries.items())
    table.add_row("libraries", versions)
    table.add_row("compiles for", " ".join(document.compile_targets) or "nothing")
    isolation = document.isolation
    table.add_row("isolation", isolation.level + ": " + "; ".join(isolation.in_force))
    table.add_row("", "not yet: " + isolation.limited_by)
    for missing in document.missing:
        table.add_row("missing", f"{missing.what} -> {missing.add}")
    return table
