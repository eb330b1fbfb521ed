"""Find which task a kernel file is for: by name, else by its entry or its file name."""

from __future__ import annotations

from pathlib import Path

from kerneltruth.errors import UserError
from kerneltruth.runner.candidate import Candidate, load_candidate
from kerneltruth.suites import kernelbench_runs
from kerneltruth.tasks.registry import FOREIGN, by_entry, called, find, listed_of, suites
from kerneltruth.tasks.spec import Task


def recognize(file: Path, name: str | None, suite: str | None) -> tuple[Candidate, Task]:
    """Return the candidate in a file and its task: by name, else by entry, core tasks first.

    Raises:
        UserError: as `load_candidate`, for the first suite if no suite has such an entry.
    """
    if name is None and suite in FOREIGN:
        name = _task_of_file(file, suite)
    if name is not None:
        task = find(name, suite)
        # A task name given by the user may be the function's name in another benchmark's file.
        asked = name.rpartition("/")[2]
        candidate = load_candidate(file, task_names=(asked,), task=asked, entry=task.entry)
        return candidate, task
    refusal: UserError | None = None
    for each in suites() if suite is None else (suite,):
        known = by_entry(each)
        try:
            candidate = load_candidate(file, task_names=tuple(known))
        except UserError as error:
            refusal = refusal or error
            continue
        return candidate, known[candidate.entry]
    assert refusal is not None
    raise refusal


def _task_of_file(file: Path, suite: str) -> str:
    """Return the task of a user's suite that a file is for: by its name, or the only one.

    Raises:
        UserError: the suite has several tasks, and the file's name matches none of them.
    """
    listed = listed_of(suite)
    stem = kernelbench_runs.names_problem(file) or file.stem
    meant = listed.get(stem) or called(stem, listed)
    if meant is None and len(listed) == 1:
        (meant,) = listed.values()
    if meant is None:
        some = ", ".join(list(listed)[:3])
        raise UserError(
            f"{file.name!r} does not say which of the {len(listed)} tasks of {suite} it is for: "
            f"pass --task NAME, such as {some}"
        )
    return meant.name
