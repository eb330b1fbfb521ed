"""Render `tasks` and `doctor`."""

from __future__ import annotations

from collections import Counter

from msgspec import UNSET
from rich.console import Group, RenderableType
from rich.text import Text

from kerneltruth.documents.facts import ContractFacts, DoctorDocument, TaskFacts, TasksDocument
from kerneltruth.report.figures import pairs, table


def tasks_view(document: TasksDocument) -> RenderableType:
    """Return a table of tasks, or one task in full."""
    tasks = document.tasks
    if len(tasks) == 1:
        contract = tasks[0].contract
        shown = () if contract is UNSET else (Text(), _contract(contract))
        return Group(_one(tasks[0]), *shown)
    columns = ("task", "category", "dims", "dtypes")
    listed = table(None, *columns, words=columns)
    for task in tasks:
        dims = " ".join(f"{s}:{d.role}" for s, d in task.dims.items())
        listed.add_row(task.key, task.category, dims, " ".join(task.dtypes))
    counts = Counter(task.category for task in tasks)
    total = ", ".join(f"{n} {c}" for c, n in sorted(counts.items()))
    return Group(listed, Text(f"{len(tasks)} tasks: {total}"))


def _one(task: TaskFacts) -> RenderableType:
    rows = pairs()
    criterion = f": {task.criterion}" if task.criterion else ""
    for key in ("key", "category", "suite", "signature", "entry", "description"):
        rows.add_row(key, f"{getattr(task, key)}{criterion if key == 'category' else ''}")
    for symbol, dim in task.dims.items():
        high = "" if dim.high is None else f", at most {dim.high}"
        rows.add_row(f"dim {symbol}", f"{dim.role}, at least {dim.low}{high}")
    for name, values in task.attributes.items():
        rows.add_row(f"attribute {name}", ", ".join(map(repr, values)))
    rows.add_row("dtypes", " ".join(task.dtypes))
    if task.extended_dtypes:
        rows.add_row("further dtypes", " ".join(task.extended_dtypes))
    if task.promises:
        rows.add_row("promises", "; ".join(task.promises))
    for promise, why in task.not_tried.items():
        rows.add_row("not tried", f"{promise}: {why}")
    if task.constraints:
        rows.add_row("constraints", "; ".join(task.constraints))
    for output in task.outputs:
        when = f", when {output.when}" if output.when else ""
        said = f"{output.dtype}, compared by {output.compare}{when}"
        rows.add_row(f"output {output.name}", said)
    if task.unrefereeable:
        rows.add_row("unrefereeable", task.unrefereeable)
    by_sizes = task.flops is not None and task.flops.startswith("{")
    rows.add_row("flops", "by the sizes; --json lists them" if by_sizes else task.flops)
    for shape in task.perf:
        rows.add_row("timed at", " ".join(f"{s}={n}" for s, n in shape.items()))
    return rows


def _contract(contract: ContractFacts) -> RenderableType:
    """Show what a contract asks of a task: a line for each obligation, sentences below."""
    rows = pairs()
    rows.add_row("contract", f"{contract.name}: {contract.asks}")
    rows.add_row("", f"{contract.reason} (source: {contract.source})")
    for name, obligation in contract.obligations.items():
        decides = "decides" if obligation.decisive else "is only noted"
        because = f": {obligation.reason}" if obligation.reason else ""
        rows.add_row(name, f"{decides}{because}")
        for said in obligation.promises:
            rows.add_row("", Text(f"{said.promise}: “{said.sentence}”"))
    return rows


def doctor_view(document: DoctorDocument) -> RenderableType:
    """Show what the machine can do, then what is missing."""
    rows = pairs()
    rows.add_row("python", f"{document.python} on {document.system}")
    for device in document.devices:
        rows.add_row(device.device, f"{device.name}: {device.runs}")
    if document.driver:
        rows.add_row("driver", document.driver)
    versions = " ".join(f"{n} {v or 'MISSING'}" for n, v in document.libraries.items())
    rows.add_row("libraries", versions)
    rows.add_row("compiles for", " ".join(document.compile_targets) or "nothing")
    isolation = document.isolation
    rows.add_row("isolation", isolation.level + ": " + "; ".join(isolation.in_force))
    rows.add_row("", "left open: " + isolation.limited_by)
    for missing in document.missing:
        rows.add_row("missing", f"{missing.what} -> {missing.add}")
    return rows
