"""GPU MODE's problems as a suite: `--suite gpumode:PATH`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Self

from kerneltruth.runner.candidate import read_source
from kerneltruth.suites.gpumode.problem import (
    COMPUTES,
    MAKES,
    META,
    GpuModeProblem,
    defines_kernel,
    read_problems,
)
from kerneltruth.suites.kernelbench.problem import Plain, Problem, problem_of_function
from kerneltruth.suites.kernelbench.suite import KernelBench
from kerneltruth.suites.reading import read_submissions
from kerneltruth.suites.submission import Read, Submission
from kerneltruth.suites.suite import Opening, TaskSource
from kerneltruth.suites.terms import Terms
from kerneltruth.tasks.registry import Listed
from kerneltruth.tasks.spec import Task

SUITE = "gpumode"
# The line by which GPU MODE's own command line learns which problem a file is for.
_POPCORN = re.compile(r"^#!POPCORN leaderboard (\S+)", re.MULTILINE)


# The messages if a user's own reference fails, or its inputs cannot be drawn.
_RETURNS = re.compile(r"inputs\(\) returns (a tensor of \w+) as argument \d+;")
_RAISES = re.compile(r"(\w+)\(\) raises (\w+)(?: at line \d+)?: (.*); correct it, so that")


class GpuMode(KernelBench):
    """The problems of a checkout of gpu-mode/reference-kernels."""

    terms = Terms(
        check="the tests of task.yml, each drawn by generate_input and compared with ref_kernel, "
        "within the tolerance of check_implementation",
        checked_by="check_implementation in the problem's reference.py, and the group's utils.py",
        prompt="the description in task.yml and its tests, and this project",
    )
    stated: Mapping[str, GpuModeProblem]

    @classmethod
    def open(cls, path: Path, opening: Opening) -> Self:
        """Return the problems at a path; each is learned when its task is needed.

        Raises:
            UserError: there are none.
        """
        stated = read_problems(path)
        found = cls._of({name: _as_problem(p) for name, p in stated.items()}, opening)
        found.stated = stated
        return found

    def listed(self) -> Iterator[Listed]:
        """Return what is known of each problem without running it."""
        for item in super().listed():
            stated = self.stated[item.name]
            yield replace(
                item,
                category=item.name.partition("/")[0],
                entry=stated.entry,
                description=stated.says,
                signature=f"{stated.entry}({', '.join(stated.takes)})",
                aliases=(item.name.partition("/")[2],),
                rank=0,
            )

    def task(self, name: str) -> Task:
        """Learn a problem's task by runs of its own files, in a child."""
        made, stated = super().task(name), self.stated[name]
        return replace(
            made,
            suite=SUITE,
            category=name.partition("/")[0],
            source=stated.statement,
            unrefereeable=made.unrefereeable and _in_its_words(made.unrefereeable),
        )

    def statement(self, name: str) -> TaskSource:
        """Return the problem's own reference, under its description."""
        stated = self.stated[name]
        return TaskSource(source=stated.statement, alone=not stated.says)

    def submission(self, file: Path, source: str, task: str | None = None) -> Submission | None:
        """Return a submission with a function that takes the problem's tensors one by one."""
        name = self._problem_of(file, source, task) if defines_kernel(source) else None
        stated = self.stated.get(name or "")
        if stated is None or not stated.data:
            return None
        return Submission(
            origin=file.name, name=stated.name, source=stated.submitted(source), entry=stated.entry
        )

    def _problem_of(self, file: Path, source: str, task: str | None) -> str | None:
        """Return the problem of a file: as given, by its folder, its header, or its name."""
        folders = (f for f in file.absolute().parents if (f / META).is_file())
        within = [f"{folder.parent.name}/{folder.name}" for folder in folders]
        said = [task, *within, *_POPCORN.findall(source), file.stem]
        for each in filter(None, said):
            short = each.removeprefix(f"{SUITE}/")
            known = [n for n in self.stated if short in (n, n.partition("/")[2])]
            if len(known) == 1:
                return known[0]
        return None

    def submissions(self, path: Path) -> Iterator[Read]:
        """Return the submissions below a folder; else all usual ones."""
        files = sorted(path.rglob("*.py")) if path.is_dir() else [path]
        read = ((file, self.submission(file, read_source(file))) for file in files)
        found = [
            replace(item, origin=str(file.relative_to(path)) if file != path else file.name)
            for file, item in read
            if item is not None
        ]
        yield from found or read_submissions(path)


def _in_its_words(trouble: str) -> str:
    """Return why a problem's files do not run, as a sentence about these files."""
    if strange := _RETURNS.match(trouble):
        return f"{MAKES} makes {strange[1]}, for which no values can be drawn"
    failed = _RAISES.match(trouble)
    if failed is None:
        return trouble
    return f"{MAKES if failed[1] == 'inputs' else COMPUTES} raises {failed[2]}: {failed[3]}"


def _as_problem(stated: GpuModeProblem) -> Problem:
    """Return a problem as one with a plain function."""
    function = Plain(name=stated.entry, makes="inputs", tolerance=stated.tolerance)
    source = stated.source()
    found = problem_of_function(stated.name, source, function)
    return replace(found, trouble=stated.trouble, says=stated.says)
