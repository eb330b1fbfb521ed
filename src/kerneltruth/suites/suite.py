"""The protocol of a suite: a named source of tasks and submissions, with its benchmark's terms.

A suite of one's own is a class that inherits from `Suite` and is named by an entry point of the
group `kerneltruth.suites`: see `docs/guides/suites.md` and `examples/suite`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol, Self

from kerneltruth.errors import DeclarationError
from kerneltruth.suites.terms import Terms
from kerneltruth.tasks.model import Task
from kerneltruth.tasks.registry import Listed

if TYPE_CHECKING:
    from kerneltruth.runner.candidate import Candidate
    from kerneltruth.runner.host import Runner
    from kerneltruth.suites.submission import Read, Submission

# What follows a suite's name on a command line, if anything.
PATH, FILE, NOTHING = "PATH", "FILE", ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """The arguments for opening a suite.

    Attributes:
        option: how the command line names the suite.
        runner: for references of other people, on the CPU.
        on_device: for large references, where a GPU judges.
        judges: how many share the machine's memory and cores.

    Examples:
        >>> from pathlib import Path
        >>> from kerneltruth.runner.host import Runner
        >>> kt.Opening(option="problems:data", runner=Runner(device="cpu")).option
        'problems:data'
    """

    option: str
    runner: Runner
    on_device: Runner | None = None
    judges: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSource:
    """A task as its author wrote it.

    Attributes:
        source: of the reference.
        alone: whether nothing else says what a kernel must compute.
        whole: whether the source says all, so that a prompt is the source.

    Examples:
        >>> kt.TaskSource(source="def run(x): return 2 * x").alone
        False
    """

    source: str
    alone: bool = False
    whole: bool = False


class Suite(Protocol):
    """A named source of tasks and submissions.

    A class that inherits from it defines `open` and `tasks`. If making a task takes long, it
    defines `listed` and `task` in place of `tasks`.

    Attributes:
        place: what follows the suite's name and a colon on a command line: `PATH`, `FILE`, or ""
            for nothing. The name is that of the entry point; the keys of the tasks begin with it.
        called: another name than that of the entry point.
        terms: what its benchmark promises and demands.
        any_name: whether a kernel's function may have any name.
        by_entry: whether a kernel's function, not its file, says by its name which task it is for.

    Examples:
        >>> class Doubles(kt.Suite):
        ...     place = ""
        ...     @classmethod
        ...     def open(cls, path, opening):
        ...         return cls()
        ...     def tasks(self):
        ...         yield kt.task("double(x[M])", dims={"M": "batch"}, reference=lambda x: x * 2)
        >>> [task.name for task in Doubles().tasks()]
        ['double']
    """

    place: ClassVar[str] = PATH
    called: str | None = None
    terms: ClassVar[Terms] = Terms()
    any_name: ClassVar[bool] = False
    by_entry: ClassVar[bool] = False

    @classmethod
    def open(cls, path: Path, opening: Opening) -> Self:
        """Return the suite at a path.

        Raises:
            UserError: there is none.
        """
        ...

    def tasks(self) -> Iterable[Task]:
        """Return the tasks; `perf` of each has the shapes to time."""
        raise NotImplementedError

    def listed(self) -> Iterable[Listed]:
        """Return what is known of each task before it is made."""
        for task in self.tasks():
            if not isinstance(task, Task):
                raise DeclarationError(f"tasks() gives {task!r}; give what kt.task(...) returns")
            yield Listed.of(task)

    def task(self, name: str) -> Task:
        """Make the task of that name, which may take seconds."""
        return next(t for t in self.tasks() if t.name == name)

    def own_function(self, name: str) -> Candidate | None:
        """Return what its author considers correct: plain PyTorch, or another known program.

        None stands for the task's reference. `audit` proves the task with it, and `time` times it
        as the eager baseline.
        """
        return None

    def statement(self, name: str) -> TaskSource | None:
        """Return what the author wrote; None stands for the reference that the task has."""
        return None

    def declaration(self, name: str, *, short: bool = False) -> str | None:
        """Return what was learned of a reference, as a file for `--tasks` or in one line."""
        return None

    def used(self, name: str) -> None:
        """Note that a task that is made is used now: others may give up what they hold."""
        return None

    def prepare(self, names: Iterable[str], side_by_side: int) -> None:
        """Prepare what these tasks need before they are made.

        `side_by_side` is how many of them hold processes at a time.
        """
        return None

    def submission(self, file: Path, source: str, task: str | None = None) -> Submission | None:
        """Return the submission in a file of the suite's own form; None if it is none.

        `task` is the one that a user says it is for.
        """
        return None

    def submissions(self, path: Path) -> Iterator[Read]:
        """Return all submissions at a path: a file, or a folder of them."""
        from kerneltruth.suites.reading import read_submissions

        return read_submissions(path)
