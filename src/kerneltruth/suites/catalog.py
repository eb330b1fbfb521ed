"""Find suites by name: this package's own ones and those of installed packages, all by entry point.

A suite's module is imported when the suite is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from kerneltruth.errors import UserError
from kerneltruth.suites.suite import Opening, Suite
from kerneltruth.tasks.registry import Listed
from kerneltruth.tasks.spec import Task

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
    found = entry_points(group=GROUP, name=name)
    if not found:
        known = sorted({*BUILT_IN, *entry_points(group=GROUP).names})
        raise UserError(f"--suite {name!r}: must be one of {', '.join(known)}")
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


def open_suite(opening: Opening) -> SuiteTasks:
    """Return the suite that an option names.

    Raises:
        UserError: there is no such suite, or it names a task twice.
    """
    name, _, path = opening.option.partition(":")
    found = suite_class(name)
    if bool(path) != bool(found.place):
        form = f"{name}:{found.place}" if found.place else name
        raise UserError(f"--suite {opening.option}: say where it is: {form}")
    return SuiteTasks(found.open(Path(path), opening))


class SuiteTasks(Mapping[str, Task]):
    """The tasks of a suite by key, each made once."""

    def __init__(self, suite: Suite) -> None:
        """List the tasks and make none.

        Raises:
            UserError: two of them have one name.
        """
        self.suite = suite
        self._made: dict[str, Task] = {}
        self._listed: dict[str, Listed] = {}
        for item in suite.listed():
            if item.name in self._listed:
                raise UserError(
                    f"--suite {suite.name}: it names a task twice: {item.name!r}; rename one of "
                    "them"
                )
            self._listed[item.name] = item

    def __getitem__(self, key: str) -> Task:
        name = key.removeprefix(f"{self.suite.name}/")
        if key == name or name not in self._listed:
            raise KeyError(key)
        if name not in self._made:
            self._made[name] = self.suite.task(name)
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return (f"{self.suite.name}/{name}" for name in self._listed)

    def __len__(self) -> int:
        return len(self._listed)

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and key.removeprefix(f"{self.suite.name}/") in self._listed

    def listed(self) -> dict[str, Listed]:
        """Return what is known of each task, by name."""
        return dict(self._listed)
