"""`tasks.json` of a run: what it keeps of its tasks, for the study of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from kerneltruth.errors import UserError
from kerneltruth.runs.files import read_json, write_whole, writing

SCHEMA = 1


def read_tasks(run: Path) -> dict[str, dict[str, Any]]:
    """What a run holds of its tasks, by task: `tasks.json`, which older runs lack.

    Raises:
        UserError: the file is damaged.
    """
    path = run / "tasks.json"
    if not path.exists():
        return {}
    data = read_json(path)
    tasks = data.get("tasks") if isinstance(data, dict) else None
    if not isinstance(tasks, dict):
        raise UserError(f"{path} is damaged: it holds no `tasks`; make the run again")
    return {task: said for task, said in tasks.items() if isinstance(said, dict)}


def write_tasks(run: Path, tasks: dict[str, dict[str, Any]]) -> None:
    """Replace what a run holds of its tasks."""
    text = json.dumps({"schema": SCHEMA, "tasks": tasks}, indent=1)
    with writing(run / "tasks.json"):
        write_whole(run / "tasks.json", text.encode() + b"\n")
