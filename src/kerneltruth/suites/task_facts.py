"""Store facts about a run's tasks in `tasks.json`, for analysis."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from kerneltruth.documents.facts import ReferenceRecord
from kerneltruth.runs.tasks_file import read_tasks, write_tasks
from kerneltruth.suites.reference_facts import facts_of
from kerneltruth.tasks.registry import FOREIGN, find


def store_facts(run: Path, tasks: Iterable[str]) -> None:
    """Store the facts of these tasks in a run, beside those that it has.

    A foreign suite's tasks are left out: making one may take seconds, and their references are not
    only torch operators.
    """
    known = read_tasks(run)
    missing = {t for t in tasks if t not in known and t.partition("/")[0] not in FOREIGN}
    if not missing:
        return
    for task in sorted(missing):
        own = find(task)
        facts = {name: v for name, v in asdict(facts_of(own)).items() if v is not None}
        known[task] = ReferenceRecord(**facts, dtypes=tuple(own.dtypes))
    write_tasks(run, known)
