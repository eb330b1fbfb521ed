"""What the corpus says of each of its kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Literal

from kerneltruth.corpus.patch import apply_patch
from kerneltruth.errors import InternalError


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One kernel of the corpus.

    Attributes:
        name: the kernel's name, which is also its file's.
        task: the task that it claims to compute; a bug's is its control's.
        role: a control must never be flagged, a bug must be caught.
        fault: what is wrong, in a few words; None for a control.
        breaks: the obligation that the fault breaks first; None for a control.
        control: the control that does the same without the fault; None for a control.
        note: where the fault shows, or what the control is about.
    """

    name: str
    task: str
    role: Literal["control", "bug"]
    fault: str | None
    control: str | None
    note: str
    breaks: str | None = None

    def __post_init__(self) -> None:
        is_bug = self.role == "bug"
        if any(is_bug != (said is not None) for said in (self.fault, self.control, self.breaks)):
            raise InternalError(
                f"{self.name}: a bug, and only a bug, has a fault, a control and what it breaks"
            )


def control(name: str, task: str, note: str) -> Entry:
    """Declare a correct kernel."""
    return Entry(name=name, task=task, role="control", fault=None, control=None, note=note)


def bug(name: str, *, control: str, fault: str, breaks: str, note: str) -> Entry:
    """Declare a wrong kernel; `with_tasks` adds its control's task."""
    return Entry(
        name=name,
        task="",
        role="bug",
        fault=fault,
        control=control,
        note=note,
        breaks=breaks,
    )


def with_tasks(entries: Sequence[Entry]) -> tuple[Entry, ...]:
    """Return the entries, bugs with the tasks of their controls."""
    tasks = {entry.name: entry.task for entry in entries}
    return tuple(replace(entry, task=tasks[entry.control or entry.name]) for entry in entries)


def filename(entry: Entry) -> str:
    """The kernel's file, relative to this folder."""
    return f"{entry.role}s/{entry.name}.py"


def source(entry: Entry) -> str:
    """The kernel's source text: of its file, or its control's with the bug's patch.

    A patch shows the fault alone. A bug that shares little with its control is a file, and so is
    one that the documents run `check` on.
    """
    folder = files("kerneltruth.corpus")
    patch = folder.joinpath(f"bugs/{entry.name}.patch")
    if entry.role == "control" or not patch.is_file():
        return folder.joinpath(filename(entry)).read_text(encoding="utf-8")
    correct = folder.joinpath(f"controls/{entry.control}.py").read_text(encoding="utf-8")
    try:
        return apply_patch(patch.read_text(encoding="utf-8"), correct)
    except ValueError as error:
        raise InternalError(f"{patch.name} does not fit {entry.control}.py: {error}") from None
