"""Match submissions with tasks: each becomes an entry of the run, or is reported as broken."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from kerneltruth.documents.lines import Labels
from kerneltruth.errors import UserError
from kerneltruth.runner.candidate import (
    GENERIC_ENTRIES,
    Candidate,
    only_function,
    read_candidate,
)
from kerneltruth.suites.catalog import takes_any_name
from kerneltruth.suites.recognize import for_own
from kerneltruth.suites.submission import Broken, Read, Submission
from kerneltruth.tasks.registry import FUSED, Listed, called

# Two files of TritonBench-T name their task by an argument.
_OTHER_NAMES = {"input": "mean", "A": "solve"}
# Two of its entries compute nothing by themselves.
_NO_KERNELS = {
    "autocast": "a context manager, under which other operators choose their dtype",
    "quantize_dynamic": "a conversion of a model, which takes no tensors",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One submission with its task.

    Attributes:
        key: stable for the same source at the same place.
        sha256: of the source.
    """

    key: str
    sha256: str
    submission: Submission
    task: Listed
    labels: Labels

    @property
    def identity(self) -> tuple[str, str]:
        """The same key for submissions that get the same verdict."""
        return self.task.key, self.sha256


def match_tasks(
    submissions: Iterable[Read], tasks: Mapping[str, Listed], defaults: Labels
) -> Iterator[Entry | Broken]:
    """Match each submission with its task.

    Args:
        submissions: as a reader yields them.
        tasks: of the suite, by bare name.
        defaults: labels for submissions without their own.
    """
    by_entry = _by_entry(tasks)
    for item in submissions:
        if isinstance(item, Broken):
            yield item
            continue
        try:
            task = task_named(item.name, tasks) or by_entry.get(item.name)
            task = task or called(item.name, tasks)
        except UserError as error:
            yield Broken(origin=item.origin, reason=str(error))
            continue
        if task is None and item.name in _NO_KERNELS:
            reason = f"{item.name!r} is no kernel, but {_NO_KERNELS[item.name]}"
            yield Broken(origin=item.origin, reason=reason)
            continue
        task = _as_defined(task, item, tasks) if task else _task_of_source(item, by_entry)
        task = task or _only(item, tasks)
        if task is None:
            near = get_close_matches(item.name, tasks, n=3, cutoff=0.5)
            hint = f"; nearest: {', '.join(near)}" if near else ""
            yield Broken(origin=item.origin, reason=f"unknown task {item.name!r}{hint}")
            continue
        sha256 = hashlib.sha256(item.source.encode("utf-8", "surrogatepass")).hexdigest()
        yield Entry(
            key=f"{item.origin}@{sha256[:12]}",
            sha256=sha256,
            submission=item,
            task=task,
            labels=item.labels.over(defaults),
        )


def _by_entry(tasks: Mapping[str, Listed]) -> dict[str, Listed]:
    """Return the tasks by entry, except entries that any task may have."""
    return {t.entry: t for t in tasks.values() if t.entry not in GENERIC_ENTRIES}


def task_named(name: str, tasks: Mapping[str, Listed]) -> Listed | None:
    """Return the task of that name, or the one of that name in another benchmark."""
    for known in (name, FUSED + name, name.removeprefix(FUSED), _OTHER_NAMES.get(name, "")):
        if known in tasks:
            return tasks[known]
    return None


def _as_defined(task: Listed, item: Submission, tasks: Mapping[str, Listed]) -> Listed:
    """Return the task, or another benchmark's task of that name if the source has its entry.

    One benchmark's optimizer entry is a function for one step, the other's makes an optimizer.
    """
    others = [t for t in tasks.values() if t.name == task.name and t.key != task.key]
    return next((t for t in (task, *others) if others and _defines(item, t.entry)), task)


def _defines(item: Submission, entry: str) -> bool:
    try:
        found = read_candidate(item.source, item.origin, task_names=(entry,), task=entry)
    except UserError:
        return False
    return found.entry == entry


def _task_of_source(item: Submission, by_entry: Mapping[str, Listed]) -> Listed | None:
    """Return the task that the source has an entry for, if there is exactly one."""
    try:
        candidate = read_candidate(item.source, item.origin, task_names=tuple(by_entry))
    except UserError:
        return None
    return by_entry[candidate.entry]


def _only(item: Submission, tasks: Mapping[str, Listed]) -> Listed | None:
    """Return the only task of a suite for a source with its entry that names no other problem."""
    found = list({t.key: t for t in tasks.values()}.values())
    if len(found) != 1 or "/" in item.name:
        return None
    return found[0] if _is_own(found[0]) or _defines(item, found[0].entry) else None


def _is_own(task: Listed) -> bool:
    return takes_any_name(task.key.partition("/")[0])


def candidate_of(entry: Entry) -> Candidate:
    """Return the submission as a candidate for its task.

    Raises:
        UserError: it is not Python, or has no entry, or several; that is the candidate's verdict.
    """
    task, given = entry.task, entry.submission
    if _is_own(task):
        return for_own(given.source, f"{given.name}.py", task.entry, given.entry)
    names = [task.entry, task.name, given.name]
    if given.entry == "":
        names += only_function(given.source)
    elif given.entry is not None:
        names.append(given.entry)
    refusal: UserError | None = None
    for wanted in dict.fromkeys(names):
        try:
            return read_candidate(
                given.source, f"{task.name}.py", task_names=(wanted,), task=wanted
            )
        except UserError as error:
            refusal = refusal or error
    assert refusal is not None
    raise refusal
