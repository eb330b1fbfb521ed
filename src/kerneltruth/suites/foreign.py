"""Register suites that a user brings along: `--suite kernelbench:PATH`."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeGuard

from kerneltruth.documents.records import Finding
from kerneltruth.errors import UserError
from kerneltruth.runner.host import Runner
from kerneltruth.suites import catalog
from kerneltruth.suites.declared import DECLARED, DeclaredTasks, read_tasks, suite_of
from kerneltruth.suites.flashinfer.suite import DataSet, open_data_set
from kerneltruth.suites.flashinfer.task import SUITE as FLASHINFER
from kerneltruth.suites.kernelbench.problem import Problem, read_problems, read_reference
from kerneltruth.suites.kernelbench.schema import Schema
from kerneltruth.suites.kernelbench.suite import Problems, schema_cache
from kerneltruth.suites.kernelbench.tasks import REFERENCE
from kerneltruth.suites.suite import Opening, Suite
from kerneltruth.tasks.model import Task
from kerneltruth.tasks.registry import (
    FOREIGN,
    Listed,
    forget,
    listed_of,
    register,
    registered,
    suites,
    tasks_of,
)

# Keys of a finding's environment for a foreign task: its origin, and its problem's hash.
FROM_SUITE = "suite"
PROBLEM = "problem_sha256"
# The text of a user's own reference, with which a finding replays where the file is not.
SOURCE = "reference_source"

# Bytes per element of a call: inputs and outputs, float64 references and bounds, temporaries of
# comparisons; in the judge and its children.
BYTES_PER_ELEMENT = 100

_opened: dict[str, str] = {}


def is_foreign(suite: str | None) -> TypeGuard[str]:
    """Return whether the option names a suite that a user brings along."""
    if suite is None:
        return False
    name = suite.partition(":")[0]
    return name in (*FOREIGN, DECLARED) or (name not in suites() and catalog.is_known(name))


def is_declared(suite: str) -> bool:
    """Return whether the option names a file that declares tasks."""
    return suite.partition(":")[0] == DECLARED


def is_one_file(suite: str) -> bool:
    """Return whether the option names a file of the user's own, whose tasks are few."""
    return suite.partition(":")[0] in (DECLARED, REFERENCE)


def is_own(suite: str | None) -> bool:
    """Return whether the open suite is a file of the user's own: its kernels have any name."""
    found = None if suite is None else registered(suite)
    return suite == REFERENCE or isinstance(found, DeclaredTasks)


def name_of(suite: str) -> str:
    """Return the name under which the suite of an option is registered."""
    return suite_of(_path(suite)) if is_declared(suite) else suite.partition(":")[0]


@contextmanager
def opened(
    suite: str | None, runner: Runner | None = None, *, judges: int = 1
) -> Iterator[str | None]:
    """Return the name of the suite that an option means; register it if it is foreign.

    Args:
        suite: as the command line names it.
        runner: runs reference children if it is on the CPU; otherwise they get their own runner,
            and this one computes large references.
        judges: how many share the machine's memory.

    Raises:
        UserError: there is no such suite at the path.
    """
    if suite is None or not is_foreign(suite):
        if suite is not None and suite not in suites():
            known = ", ".join((*suites(), *FOREIGN.values(), *catalog.forms()))
            raise UserError(f"--suite {suite!r}: must be one of {known}")
        yield suite
        return
    own = None if runner is not None and runner.device == "cpu" else Runner(device="cpu")
    if own is not None:
        # Judges fork from this process and share what is warm by then.
        own.start()
    try:
        device = None if runner is None or runner.device == "cpu" else runner
        where = own or runner or Runner(device="cpu")
        yield register_at(suite, where, on_device=device, judges=judges)
    finally:
        _opened.pop(name_of(suite), None)
        forget(name_of(suite))
        if own is not None:
            own.close()


def register_at(
    suite: str, runner: Runner, *, on_device: Runner | None = None, judges: int = 1
) -> str:
    """Register the foreign suite that an option names; return its name.

    Args:
        suite: as the command line names it.
        runner: for reference children, on the CPU.
        on_device: for large references, where a GPU judges.
        judges: how many share the machine's memory.

    Raises:
        UserError: there is no such suite at the path.
    """
    name = name_of(suite)
    found = (
        read_tasks(_path(suite))
        if is_declared(suite)
        else data_set_at(suite, runner)
        if name == FLASHINFER
        else problems_at(suite, runner, on_device=on_device, judges=judges)
        if name in FOREIGN
        else catalog.open_suite(
            Opening(option=suite, runner=runner, on_device=on_device, judges=judges)
        )
    )
    register(name, found, found.listed())
    _opened[name] = absolute(suite)
    return name


def data_set_at(suite: str, runner: Runner) -> DataSet:
    """Return the data set of `flashinfer:PATH`.

    Raises:
        UserError: no path, or no definitions there.
    """
    return open_data_set(_path(suite), runner)


def own_reference(suite: str | None) -> tuple[Problem, Schema, Task] | None:
    """Return what is known of a user's own reference, if the registered suite is one."""
    found = tasks_of(suite) if suite == REFERENCE else None
    if not isinstance(found, Problems):
        return None
    ((name, problem),) = found.problems.items()
    return problem, found.schema(name), found[f"{REFERENCE}/{name}"]


def suite_named(name: str | None) -> Suite | None:
    """Return the open suite of that name."""
    found = registered(name) if name is not None else None
    return found.suite if isinstance(found, catalog.SuiteTasks) else None


def data_set_of(suite: str) -> DataSet | None:
    """Return the registered suite if it is a FlashInfer-Bench data set."""
    found = tasks_of(suite) if suite == FLASHINFER else None
    return found if isinstance(found, DataSet) else None


def problems_at(
    suite: str, runner: Runner, *, on_device: Runner | None = None, judges: int = 1
) -> Problems:
    """Return the problems of `kernelbench:PATH`; arguments are those of `register_at`.

    Raises:
        UserError: no path, or no problems there.
    """
    room = None if on_device is None else room_of(judges)
    found = Problems(
        _read(suite),
        runner,
        schema_cache(),
        on_device=on_device,
        room=room,
        judges=judges,
        suite=name_of(suite),
    )
    if name_of(suite) == REFERENCE:
        for name in found.problems:
            trouble = found.schema(name).trouble
            if trouble is not None:
                rule = "correct it, so that it returns on what its own inputs() gives"
                said = trouble if "; " in trouble else f"{trouble}; {rule}"
                raise UserError(f"{_path(suite)}: {said}")
    return found


def room_of(judges: int) -> int:
    """Return how many elements of a call fit each judge's share of this machine's memory."""
    return _memory() // judges // BYTES_PER_ELEMENT


def _memory() -> int:
    """Return the bytes of memory that this process and others like it may use."""
    limit = Path("/sys/fs/cgroup/memory.max")
    with contextlib.suppress(OSError, ValueError):
        return min(int(limit.read_text()), _physical())
    return _physical()


def _physical() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def listed_at(suite: str) -> dict[str, Listed]:
    """Return what is known of the tasks of a user's suite without running any."""
    runner = Runner(device="cpu")
    if name_of(suite) not in FOREIGN:
        return catalog.open_suite(Opening(option=suite, runner=runner)).listed()
    if suite.partition(":")[0] == FLASHINFER:
        return data_set_at(suite, runner).listed()
    return Problems(_read(suite), runner, None, suite=name_of(suite)).listed()


def _read(suite: str) -> dict[str, Problem]:
    if name_of(suite) == REFERENCE:
        own = read_reference(_path(suite))
        return {own.name: own}
    return read_problems(_path(suite))


def _path(suite: str) -> Path:
    name, _, path = suite.partition(":")
    if not path:
        where = FOREIGN.get(name, f"{DECLARED}:FILE")
        raise UserError(f"--suite {suite}: say where it is: {where}")
    return Path(path)


def absolute(suite: str) -> str:
    """Return the option with an absolute path, as findings store it."""
    name, colon, path = suite.partition(":")
    return f"{name}:{Path(path).absolute()}" if colon else suite


def origin_of(task: str) -> dict[str, str | None]:
    """Return what a finding must store about a task of a foreign suite; nothing for others."""
    suite, _, name = task.partition("/")
    if suite not in _opened:
        return {}
    found: dict[str, str | None] = {
        FROM_SUITE: _opened[suite],
        PROBLEM: listed_of(suite)[name].sha256,
    }
    own = own_reference(suite)
    return found if own is None else {**found, SOURCE: own[0].source}


@contextmanager
def for_findings(findings: Iterable[Finding], suite: str | None) -> Iterator[None]:
    """Register the foreign suite of findings: the given one, else the one they were made with.

    Raises:
        UserError: it is not there any more, or a problem in it has changed.
    """
    foreign = [f for f in findings if _is_of_user(f)]
    if not foreign:
        yield
        return
    said = suite or foreign[0].environment.get(FROM_SUITE)
    if said is None or not is_foreign(said):
        named = FOREIGN.get(foreign[0].task.partition("/")[0], f"{DECLARED}:FILE")
        raise UserError(
            f"task {foreign[0].task!r} belongs to a suite of yours: pass --suite {named}"
        )
    with _at_hand(said, foreign[0]) as said, opened(said):
        known = listed_of(name_of(said))
        for finding in foreign:
            name = finding.task.partition("/")[2]
            now = known[name].sha256 if name in known else None
            if finding.environment.get(PROBLEM) not in (None, now):
                raise UserError(_changed(finding, said))
        yield


@contextmanager
def _at_hand(suite: str, finding: Finding) -> Iterator[str]:
    """Return the suite; a reference that is no file here is written from its finding."""
    source = finding.environment.get(SOURCE)
    if source is None or suite.partition(":")[0] != REFERENCE or _path(suite).exists():
        yield suite
        return
    with TemporaryDirectory(prefix="kerneltruth-") as folder:
        path = Path(folder) / _path(suite).name
        path.write_text(source, "utf-8")
        yield f"{REFERENCE}:{path}"


def _changed(finding: Finding, suite: str) -> str:
    kind = suite.partition(":")[0]
    if is_one_file(suite):
        return (
            f"{_path(suite)} is not the file that {finding.task} was judged by; name that one "
            f"with --{kind}, or judge the kernel again"
        )
    return (
        f"{finding.task} in {suite} is not the problem that was judged; "
        "name its checkout with --suite, or judge the kernel again"
    )


def _is_of_user(finding: Finding) -> bool:
    origin = finding.environment.get(FROM_SUITE)
    return origin is not None or finding.task.partition("/")[0] in FOREIGN
