"""Find suites by name: this package's own ones and those of installed packages, all by entry point.

A suite's module is imported when the suite is asked for.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from traceback import extract_tb

from kerneltruth.errors import DeclarationError, EnvironmentFault, InternalError, UserError
from kerneltruth.runner.candidate import Candidate
from kerneltruth.runner.host import Runner
from kerneltruth.suites.declared import as_candidate
from kerneltruth.suites.suite import Opening, Suite
from kerneltruth.tasks.registry import Listed
from kerneltruth.tasks.spec import Task

_PACKAGE = Path(__file__).parents[1]
GROUP = "kerneltruth.suites"
_OWN = {
    "gpuemu": "kerneltruth.suites.gpuemu.suite:Gpuemu",
}
BUILT_IN: Mapping[str, EntryPoint] = {
    name: EntryPoint(name=name, value=value, group=GROUP) for name, value in _OWN.items()
}


def is_known(name: str) -> bool:
    """Return whether there is a suite of that name, loaded or not."""
    return name in BUILT_IN or name in entry_points(group=GROUP).names


def suite_class(name: str) -> type[Suite]:
    """Return the class of a suite.

    Raises:
        UserError: there is no suite of that name, there are several, or it does not load.
    """
    point = BUILT_IN.get(name) or _installed(name)
    try:
        found: type[Suite] = point.load()
    except Exception as error:
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


def _installed(name: str) -> EntryPoint:
    found = tuple(entry_points(group=GROUP, name=name))
    if not found:
        known = sorted({*BUILT_IN, *entry_points(group=GROUP).names})
        raise UserError(f"--suite {name!r}: must be one of {', '.join(known)}")
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


def forms() -> tuple[str, ...]:
    """Return how a command line names each suite that can be opened, such as `gpuemu:PATH`."""
    return tuple(map(_form, sorted({*BUILT_IN, *entry_points(group=GROUP).names})))


def _form(name: str) -> str:
    try:
        place = suite_class(name).place
    except UserError:
        return name
    return f"{name}:{place}" if place else name


def open_suite(opening: Opening) -> SuiteTasks:
    """Return the suite that an option names.

    Raises:
        UserError: there is no such suite, it does not open, or it names a task twice.
    """
    name, _, path = opening.option.partition(":")
    found = suite_class(name)
    if path and not found.place:
        raise UserError(f"--suite {opening.option}: it takes no path; pass --suite {name}")
    if found.place and not path:
        raise UserError(f"--suite {opening.option}: say where it is: {name}:{found.place}")
    with _said_in_one_line(name):
        return SuiteTasks(name, found.open(Path(path), opening), path)


@contextmanager
def _said_in_one_line(suite: str) -> Iterator[None]:
    """Turn whatever a suite raises into one line that says where.

    Raises:
        UserError: it raised something else than that.
    """
    try:
        yield
    except Exception as error:
        own = isinstance(error, UserError | EnvironmentFault | InternalError)
        if own and not isinstance(error, DeclarationError):
            raise
        frames = extract_tb(error.__traceback__)
        # A declaration is wrong where the suite makes it, not where this package finds that out.
        theirs = [f for f in frames if not Path(f.filename).is_relative_to(_PACKAGE)]
        last = (theirs or frames)[-1]
        raise UserError(
            f"--suite {suite}: {type(error).__name__}: {error} ({last.filename}:{last.lineno}); "
            "correct the suite"
        ) from error


class SuiteTasks(Mapping[str, Task]):
    """The tasks of a suite by key, each made once."""

    def __init__(self, name: str, suite: Suite, path: str = "") -> None:
        """List the tasks.

        Raises:
            UserError: two of them have one name.
        """
        self.suite = suite
        self._name = name
        self._option = f"{name}:{Path(path).absolute()}" if path else name
        self._made: dict[str, Task] = {}
        self._listed: dict[str, Listed] = {}
        for item in suite.listed():
            if item.name in self._listed:
                raise UserError(
                    f"--suite {name}: it names a task twice: {item.name!r}; rename one of them"
                )
            made = None if item.made is None else self._own(item.made)
            self._listed[item.name] = replace(item, key=f"{name}/{item.name}", made=made)

    def _own(self, task: Task) -> Task:
        """Return a task as one of this suite: `kt.task` does not know where it is called."""
        if task.suite == self._name:
            return task
        return replace(task, suite=self._name, admitted=task.tolerance)

    def __getitem__(self, key: str) -> Task:
        name = key.removeprefix(f"{self._name}/")
        if key == name or name not in self._listed:
            raise KeyError(key)
        if name not in self._made:
            with _said_in_one_line(self._name):
                self._made[name] = self._listed[name].made or self._own(self.suite.task(name))
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return (f"{self._name}/{name}" for name in self._listed)

    def __len__(self) -> int:
        return len(self._listed)

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and key.removeprefix(f"{self._name}/") in self._listed

    def listed(self) -> dict[str, Listed]:
        """Return what is known of each task, by name."""
        return dict(self._listed)

    def control(self, task: Task) -> Candidate:
        """Return what the suite holds for right; the task's reference where it names nothing."""
        given = self.suite.control(task.name)
        if given is not None:
            return given
        source = (
            f"from {__name__} import eager\n\n"
            f"{task.entry} = eager({self._option!r}, {task.name!r})\n"
        )
        return Candidate(
            source=source,
            path=f"{task.name}.py",
            sha256=self._listed[task.name].sha256 or hashlib.sha256(source.encode()).hexdigest(),
            language="torch",
            entry=task.entry,
        )


def eager(option: str, name: str) -> Callable[..., object]:
    """Return the reference of a suite's task as a function with the parameters of a candidate."""
    suite = open_suite(Opening(option=option, runner=Runner(device="cpu")))
    return as_candidate(suite[f"{option.partition(':')[0]}/{name}"])
