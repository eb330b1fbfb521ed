"""The protocol of a suite: a named source of tasks and submissions, with its contract.

A suite of one's own is a class that inherits from `Suite` and is named by an entry point of the
group `kerneltruth.suites`: see `docs/guides/suites.md` and `examples/suite`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol, Self

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
    """With what a suite is opened.

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


class Suite(Protocol):
    """A named source of tasks and submissions.

    A class that inherits from it defines `open` and `tasks`. If making a task takes long, it
    defines `listed` and `task` in place of `tasks`.

    Attributes:
        place: what follows the suite's name and a colon on a command line: `PATH`, `FILE`, or ""
            for nothing. The name is that of the entry point; the keys of the tasks begin with it.

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
        return map(Listed.of, self.tasks())

    def task(self, name: str) -> Task:
        """Make the task of that name, which may take seconds."""
        return next(t for t in self.tasks() if t.name == name)

    def control(self, name: str) -> Candidate | None:
        """Return what its author holds for right: plain PyTorch, or another known program.

        None stands for the task's reference. `audit` proves the task with it, and `time` times it
        as the eager baseline.
        """
        return None

    def submission(self, file: Path, source: str) -> Submission | None:
        """Return the submission in a file of the suite's own form; None if it is none."""
        return None

    def submissions(self, path: Path) -> Iterator[Read]:
        """Return all submissions at a path: a file, or a folder of them."""
        from kerneltruth.suites.reading import read_submissions

        return read_submissions(path)
