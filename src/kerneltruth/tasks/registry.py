"""Find every task of every suite by key: `relu` in the suite `core`, else `kernelbenchx/relu`.

A suite is imported at the first lookup of one of its tasks, so that judging `relu` does
not wait for the declarations of 176 others. Other suites are found as long as they are open: each
of their tasks is made at its first lookup.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from importlib.metadata import entry_points
from types import MappingProxyType

from kerneltruth.errors import UserError
from kerneltruth.tasks.collection import Folder
from kerneltruth.tasks.model import CORE, PUBLISHED, Task

_MODULES = {
    CORE: "kerneltruth.tasks.core",
    "kernelbenchx": "kerneltruth.tasks.kernelbenchx",
    "tritonbench": "kerneltruth.tasks.tritonbench",
    "earlier": "kerneltruth.tasks.earlier",
}
# Benchmarks that share tasks: a submission to one may be for a task of the other.
_SHARING = PUBLISHED
# A prefix that only KernelBenchX puts before some tasks' names.
FUSED = "fused_"

# The entry points that name suites.
GROUP = "kerneltruth.suites"


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """What is known of a task before it is made.

    Attributes:
        trouble: why no candidate can be judged on it, if known.
        sha256: of the problem that it comes from, in a suite that reads problems.
        aliases: its other names; several tasks may share one.
        signature: as its suite writes it.
        made: the task, where it is made already.
        rank: tasks of a lower one are timed first.
    """

    name: str
    key: str
    category: str
    entry: str
    description: str = ""
    trouble: str | None = None
    sha256: str | None = None
    aliases: tuple[str, ...] = ()
    signature: str = ""
    made: Task | None = None
    rank: int = 0

    @classmethod
    def of(cls, task: Task) -> Listed:
        """Return what a task that is made says of itself."""
        return cls(
            name=task.name,
            key=task.key,
            category=task.category,
            entry=task.entry,
            description=task.description,
            signature=task.signature,
            made=task,
        )


class OpenTasks(Mapping[str, Task]):
    """The tasks of an open suite, by key; a lookup may take seconds.

    Attributes:
        option: how a command line names the suite.
    """

    option: str

    def __contains__(self, key: object) -> bool:
        return any(task.key == key for task in self.listed().values())

    @abstractmethod
    def listed(self) -> dict[str, Listed]:
        """Return what is known of each task, by bare name."""


# Each thread and task of asyncio sees the suites that its own caller has opened.
_OPEN: ContextVar[Mapping[str, OpenTasks]] = ContextVar("open", default=MappingProxyType({}))


def stay_open(suite: str, tasks: OpenTasks) -> None:
    """Let the tasks of a suite be found from now on."""
    _OPEN.set({**_OPEN.get(), suite: tasks})


@contextmanager
def opening(suite: str, tasks: OpenTasks) -> Iterator[None]:
    """Let the tasks of a suite be found within the block."""
    stay_open(suite, tasks)
    try:
        yield
    finally:
        _OPEN.set({name: known for name, known in _OPEN.get().items() if known is not tasks})


def is_suite(name: str) -> bool:
    """Return whether a suite of that name is installed, open or not."""
    return name in entry_points(group=GROUP).names


def opened_tasks(suite: str | None) -> OpenTasks | None:
    """Return the tasks of a suite if it is open."""
    return _OPEN.get().get(suite or "")


def suites() -> tuple[str, ...]:
    """Return the names of the suites whose tasks are at hand, `core` first."""
    return tuple(_MODULES)


def listed_of(suite: str) -> dict[str, Listed]:
    """Return what is known of the tasks of a suite, by bare name, without making them.

    Raises:
        UserError: there is no such suite.
    """
    opened = opened_tasks(suite)
    if opened is not None:
        return opened.listed()
    return {t.name: Listed.of(t) for t in tasks_of(suite).values()}


def accepted_by(suite: str) -> dict[str, Listed]:
    """Return the tasks that submissions for a suite may be for: its own and shared ones.

    Its own go by bare name, and a shared task by its key if this suite has another of that name.

    Raises:
        UserError: there is no such suite.
    """
    accepted = listed_of(suite)
    for other in _SHARING if suite in _SHARING else ():
        if other != suite:
            theirs = listed_of(other)
            accepted |= {t.key if n in accepted else n: t for n, t in theirs.items()}
    return accepted


def eager_modules(suite: str) -> Mapping[str, str]:
    """Return the file of `corpus.eager` with a plain PyTorch function for each task, by key.

    Empty for a suite that is not this package's.
    """
    return _folder(suite).eager_modules if suite in _MODULES else {}


def tasks_of(suite: str) -> Mapping[str, Task]:
    """Return the tasks of a suite, by key.

    Raises:
        UserError: there is no such suite.
    """
    opened = opened_tasks(suite)
    if opened is not None:
        return opened
    if suite not in _MODULES:
        raise UserError(f"--suite {suite!r}: must be one of {', '.join(suites())}, or be opened")
    return _folder(suite).tasks


def _folder(suite: str) -> Folder:
    folder: Folder = import_module(_MODULES[suite]).FOLDER
    return folder


class _Everything(Mapping[str, Task]):
    """Return all tasks by key; a lookup imports only the key's own suite."""

    def __getitem__(self, key: str) -> Task:
        suite, slash, _ = key.partition("/")
        if slash and suite not in {*_MODULES, *_OPEN.get()}:
            raise KeyError(key)
        return tasks_of(suite if slash else CORE)[key]

    def __iter__(self) -> Iterator[str]:
        for suite in suites():
            yield from tasks_of(suite)

    def __len__(self) -> int:
        return sum(len(tasks_of(suite)) for suite in suites())


TASKS: Mapping[str, Task] = _Everything()


def named(name: str) -> tuple[Task, ...]:
    """Return the tasks of that bare name in every suite, that of `core` first."""
    return tuple(t for suite in suites() for t in tasks_of(suite).values() if t.name == name)


def by_entry(suite: str) -> dict[str, Task]:
    """Return the tasks of a suite by the names of their entries."""
    tasks = tasks_of(suite).values()
    return {t.name: t for t in tasks} | {t.entry: t for t in tasks}


def elsewhere(task: Task) -> tuple[str, ...]:
    """Return the keys of tasks of the same name in other suites."""
    return tuple(t.key for t in named(task.name) if t.suite != task.suite)


def _shared(name: str, suites: Iterable[str]) -> Task | None:
    """Return the first task of these published suites that matches another's name for it."""
    plain = name.removeprefix(FUSED)
    for suite in suites:
        known = tasks_of(suite)
        for spelled in (name, FUSED + plain if suite == "kernelbenchx" else plain):
            if f"{suite}/{spelled}" in known:
                return known[f"{suite}/{spelled}"]
    return None


def find(key: str, suite: str | None = None) -> Task:
    """Return the task of that key; a bare name means that of `core`, else the suite that has it.

    A published benchmark's name for another's task also finds that task.

    Raises:
        UserError: no such task (in that suite, if one is named), with the nearest names.
    """
    if suite in _SHARING:
        shared = _shared(key.removeprefix(f"{suite}/"), (suite, *_SHARING))
        if shared is not None:
            return shared
    if suite is not None:
        return tasks_of(suite)[key_of(key, suite)]
    prefix, slash, _ = key.partition("/")
    if slash and prefix in {*_MODULES, *_OPEN.get()}:
        return find(key, prefix)
    if slash and is_suite(prefix):
        raise UserError(f"task {key!r} belongs to a suite of yours: pass --suite {prefix}:PATH")
    core = tasks_of(CORE)
    if key in core:
        return core[key]
    found = named(key)
    if len(found) == 1:
        return found[0]
    if found:
        raise UserError(f"several suites have a task {key!r}: {', '.join(t.key for t in found)}")
    shared = _shared(key, _SHARING)
    if shared is not None:
        return shared
    names = {t.name: t.key for t in reversed(list(TASKS.values()))}
    raise _unknown(key, key.rpartition("/")[2], names)


def key_of(name: str, suite: str) -> str:
    """Return the key of a suite's task without making it, which may take seconds.

    Raises:
        UserError: no such task in that suite, with the nearest names.
    """
    short = name.removeprefix(f"{suite}/")
    full = short if suite == CORE else f"{suite}/{short}"
    if full in tasks_of(suite):
        return full
    listed = listed_of(suite)
    meant = called(short, listed)
    if meant is None:
        names = {n: t.key for t in reversed([*listed.values()]) for n in t.aliases}
        names |= {n: t.key for n, t in listed.items()}
        raise _unknown(name, short, names, suite)
    return meant.key


def called(name: str, listed: Mapping[str, Listed]) -> Listed | None:
    """Return the task with this alias among those of a suite; None if there is none.

    Raises:
        UserError: several have it.
    """
    alias = name.removesuffix(".py")
    found = [task for task in listed.values() if alias in task.aliases]
    if len(found) > 1:
        keys = ", ".join(task.key for task in found)
        raise UserError(f"several tasks are called {name!r}: {keys}; name one of them")
    return found[0] if found else None


def _unknown(key: str, name: str, names: Mapping[str, str], suite: str | None = None) -> UserError:
    """Return the message for an unknown key, with the keys of the names nearest to `name`."""
    opened = opened_tasks(suite)
    where = "" if opened is None else f" --suite {opened.option}"
    wanted = get_close_matches(name, names, n=3, cutoff=0.5)
    hint = f"nearest: {', '.join(names[n] for n in wanted)}; " if wanted else ""
    return UserError(f"unknown task {key!r}; {hint}see `kerneltruth tasks{where}`")
