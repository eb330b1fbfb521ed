"""Read and write a run's `tasks.json`: what analysis needs to know about its tasks."""

from __future__ import annotations

from pathlib import Path

from kerneltruth.documents.facts import ReferenceRecord, RunTasks
from kerneltruth.documents.model import dumps, parse, updated
from kerneltruth.errors import UserError
from kerneltruth.runs.files import read_json, write_whole, writing


def read_tasks(run: Path) -> dict[str, ReferenceRecord]:
    """Return a run's records of its tasks, by task; older runs have no `tasks.json`.

    Raises:
        UserError: the file is damaged, or its schema is newer.
    """
    path = run / "tasks.json"
    if not path.exists():
        return {}
    data = read_json(path)
    if not isinstance(data, dict) or "tasks" not in data:
        raise UserError(f"{path} is damaged: it holds no `tasks`; repeat the run")
    return parse(RunTasks, updated(data, str(path))).tasks


def write_tasks(run: Path, tasks: dict[str, ReferenceRecord]) -> None:
    """Replace a run's records of its tasks."""
    text = dumps(RunTasks(tasks=tasks), indent=1)
    with writing(run / "tasks.json"):
        write_whole(run / "tasks.json", text.encode() + b"\n")
