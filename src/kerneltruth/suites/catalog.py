"""Find suites by entry point, this package's own ones too, and open them.

A suite's module is imported when the suite is asked for.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from traceback import extract_tb

from kerneltruth.errors import DeclarationError, EnvironmentFault, InternalError, UserError
from kerneltruth.oracle.plan import Plan
from kerneltruth.runner.candidate import Candidate
from kerneltruth.runner.host import Runner
from kerneltruth.suites.declared import as_candidate
from kerneltruth.suites.reading import read_submissions
from kerneltruth.suites.submission import Read
from kerneltruth.suites.suite import Opening, Suite
from kerneltruth.suites.terms import Terms
from kerneltruth.suites.trial import try_reference
from kerneltruth.tasks.model import CORE
from kerneltruth.tasks.registry import (
    GROUP,
    Listed,
    OpenTasks,
    is_suite,
    opened_tasks,
    opening,
    suites,
)
from kerneltruth.tasks.spec import Task

_PACKAGE = Path(__file__).parents[1]


def suite_class(name: str) -> type[Suite]:
    """Return the class of a suite.

    Raises:
        UserError: there is no suite of that name, there are several, or it does not load.
    """
    point = _installed(name)
    try:
        found: type[Suite] = point.load()
    except Exception as error:
        if _is_own(point.module):
            raise
        raise UserError(
            f"--suite {name}: {_said_of(point)} does not load: {type(error).__name__}: {error}; "
            "correct or uninstall it"
        ) from error
    if Suite not in getattr(found, "__mro__", ()):
        raise UserError(
            f"--suite {name}: {_said_of(point)} is no suite; name a class that inherits from "
            "kerneltruth.suites.suite.Suite"
        )
    return found


def _is_own(module: str) -> bool:
    """Return whether a module is this package's: a fault there is no user's mistake."""
    return module.partition(".")[0] == __name__.partition(".")[0]


def _installed(name: str) -> EntryPoint:
    found = tuple(entry_points(group=GROUP, name=name))
    if not found and name in suites():
        raise UserError(f"--suite {name}: it takes no path; pass --suite {name}")
    if not found:
        raise UserError(f"--suite {name!r}: must be one of {', '.join((*suites(), *_forms()))}")
    # Metadata of one package may be on the path twice, such as beside a checkout.
    found = tuple({_said_of(point): point for point in found}.values())
    if len(found) > 1:
        raise UserError(
            f"--suite {name}: {' and '.join(sorted(map(_said_of, found)))} have that name; "
            "uninstall one of them"
        )
    (point,) = found
    return point


def _said_of(point: EntryPoint) -> str:
    source = f" of {point.dist.name}" if point.dist is not None else ""
    return f"the entry point {point.value!r}{source}"


def _forms() -> Iterator[str]:
    """Return how a command line names each suite that can be opened, such as `gpuemu:PATH`."""
    return map(_form, sorted({*entry_points(group=GROUP).names} - {*suites()}))


def _form(name: str) -> str:
    try:
        place = suite_class(name).place
    except UserError:
        return name
    return f"{name}:{place}" if place else name


def is_at_hand(option: str) -> bool:
    """Return whether the tasks of a suite are found without opening it."""
    return option in suites()


def absolute(option: str) -> str:
    """Return the option with an absolute path, as findings store it."""
    name, colon, path = option.partition(":")
    return f"{name}:{Path(path).absolute()}" if colon else option


@contextmanager
def opened(
    option: str | None, runner: Runner | None = None, *, judges: int = 1
) -> Iterator[str | None]:
    """Open the suite that an option means within the block; return its name.

    Args:
        option: as the command line names it.
        runner: runs reference children if it is on the CPU; otherwise they get their own runner,
            and this one computes large references.
        judges: how many share the machine's memory.

    Raises:
        UserError: there is no such suite at the path.
    """
    if option is None or is_at_hand(option):
        yield option
        return
    # Refuse a wrong name before anything is begun.
    suite_class(option.partition(":")[0])
    with contextlib.ExitStack() as stack:
        own = runner
        if own is None or own.device != "cpu":
            own = Runner(device="cpu")
            stack.callback(own.close)
            # Judges fork from this process and share everything that is warm by then.
            own.start()
        device = None if runner is own else runner
        found = open_suite(Opening(option=option, runner=own, on_device=device, judges=judges))
        stack.enter_context(opening(found.name, found))
        yield found.name


def open_suite(given: Opening) -> SuiteTasks:
    """Return the suite that an option names.

    Raises:
        UserError: there is no such suite, it does not open, or it names a task twice.
    """
    name, _, path = given.option.partition(":")
    found = suite_class(name)
    if path and not found.place:
        raise UserError(f"--suite {given.option}: it takes no path; pass --suite {name}")
    if found.place and not path:
        raise UserError(f"--suite {given.option}: say where it is: {name}:{found.place}")
    with _said_in_one_line(found, name):
        return SuiteTasks(found.open(Path(path), given), absolute(given.option), given)


def on_device(suite: str, runner: Runner) -> SuiteTasks | None:
    """Return an open suite with large references on this device; None if it has them there.

    Each device's judges ask their own: one device would not hold the references of all.
    """
    found = open_tasks(suite)
    given = None if found is None else found.opening
    if given is None or given.on_device is None or given.on_device is runner:
        return None
    return open_suite(replace(given, on_device=runner))


def open_tasks(suite: str | None) -> SuiteTasks | None:
    """Return an open suite with its tasks; None if it is not open."""
    found = opened_tasks(suite)
    return found if isinstance(found, SuiteTasks) else None


def submissions_at(path: Path, suite: str) -> Iterator[Read]:
    """Return all submissions at a path, as a suite reads them."""
    found = open_tasks(suite)
    return read_submissions(path) if found is None else found.suite.submissions(path)


def takes_any_name(suite: str | None) -> bool:
    """Return whether kernels for an open suite may have any name."""
    found = open_tasks(suite)
    return found is not None and found.suite.any_name


def terms_of(suite: str) -> Terms:
    """Return the promises and demands of a suite's benchmark."""
    found = open_tasks(suite)
    return _terms_at_hand(suite) if found is None else found.suite.terms


@cache
def _terms_at_hand(suite: str) -> Terms:
    # The suite `core` is no benchmark, and every kernel for it would wait for the entry points.
    return suite_class(suite).terms if suite != CORE and is_suite(suite) else Terms()


def under_rules(plan: Plan, task: str) -> Plan:
    """Return the plan with the demands of a task's benchmark; the task is given by key."""
    suite = task.rpartition("/")[0].partition("/")[0] or CORE
    demands = terms_of(suite).demanded(plan.contract)
    needed = plan.require_kernel or "kernel" in demands
    return replace(plan, demands=demands, require_kernel=needed)


@contextmanager
def _said_in_one_line(found: type[Suite], suite: str) -> Iterator[None]:
    """Turn whatever another package's suite raises into one line that says where.

    Raises:
        UserError: it raised something else than that.
    """
    try:
        yield
    except Exception as error:
        stated = isinstance(error, UserError | EnvironmentFault | InternalError)
        if _is_own(found.__module__) or (stated and not isinstance(error, DeclarationError)):
            raise
        frames = extract_tb(error.__traceback__)
        # A wrong declaration is located where the suite makes it, not where this package notices.
        theirs = [
            f
            for f in frames
            if not (f.filename.startswith("<") or Path(f.filename).is_relative_to(_PACKAGE))
        ]
        where = [f"{f.filename}:{f.lineno}" for f in theirs[-1:]] or [found.__module__]
        raise UserError(
            f"--suite {suite}: {type(error).__name__}: {error} ({where[0]}); correct the suite"
        ) from error


class SuiteTasks(OpenTasks):
    """The tasks of a suite by key, each made once.

    Attributes:
        suite: the suite itself.
        name: with which the keys begin.
        opening: how it was opened, where that can be done again.
    """

    def __init__(self, suite: Suite, option: str, opening: Opening | None = None) -> None:
        """List the tasks.

        Raises:
            UserError: two of them have one name.
        """
        self.suite = suite
        self.option = option
        self.opening = opening
        self.name = suite.called or option.partition(":")[0]
        self._made: dict[str, Task] = {}
        self._listed: dict[str, Listed] = {}
        for item in suite.listed():
            if item.name in self._listed:
                raise UserError(
                    f"--suite {self.name}: it names a task twice: {item.name!r}; rename one of them"
                )
            made = None if item.made is None else self._own(item.made)
            self._listed[item.name] = replace(item, key=f"{self.name}/{item.name}", made=made)

    def _own(self, task: Task) -> Task:
        """Return a task as one of this suite: `kt.task` does not know where it is called."""
        if task.suite == self.name:
            return task
        return replace(task, suite=self.name, admitted=task.tolerance)

    def __getitem__(self, key: str) -> Task:
        name = self.bare(key)
        if key == name or name not in self._listed:
            raise KeyError(key)
        if name not in self._made:
            self._made[name] = self._taken(name)
        with _said_in_one_line(type(self.suite), self.name):
            self.suite.used(name)
        return self._made[name]

    def _taken(self, name: str) -> Task:
        """Return a task that is asked for first; its reference is tried if others wrote it."""
        kind = type(self.suite)
        with _said_in_one_line(kind, self.name):
            task = self._listed[name].made or self._own(self.suite.task(name))
        if not _is_own(kind.__module__) and task.unrefereeable is None:
            with _said_in_one_line(kind, f"{self.name}, task {name!r}"):
                try_reference(task)
        return task

    def bare(self, key: str) -> str:
        """Return the suite's own name of a task."""
        return key.removeprefix(f"{self.name}/")

    def __iter__(self) -> Iterator[str]:
        return (f"{self.name}/{name}" for name in self._listed)

    def __len__(self) -> int:
        return len(self._listed)

    def listed(self) -> dict[str, Listed]:
        """Return the known facts of each task, by name."""
        return dict(self._listed)

    def own_function(self, task: Task) -> Candidate:
        """Return the suite's own right candidate, or else the task's reference."""
        given = self.suite.own_function(task.name)
        if given is not None:
            return replace(given, trusted=True)
        source = (
            f"from {__name__} import eager\n\n"
            f"{task.entry} = eager({self.option!r}, {task.name!r})\n"
        )
        return Candidate(
            source=source,
            path=f"{task.name}.py",
            sha256=self._listed[task.name].sha256 or hashlib.sha256(source.encode()).hexdigest(),
            language="torch",
            trusted=True,
            entry=task.entry,
        )


def eager(option: str, name: str) -> Callable[..., object]:
    """Return the reference of a suite's task as a function with the parameters of a candidate."""
    suite = open_suite(Opening(option=option, runner=Runner(device="cpu")))
    return as_candidate(suite[f"{suite.name}/{name}"])
