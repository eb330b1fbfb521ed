"""A data set of FlashInfer-Bench as a suite: its definitions as tasks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Self

from kerneltruth.errors import UserError
from kerneltruth.runner.candidate import Candidate
from kerneltruth.runner.host import Runner
from kerneltruth.suites.flashinfer.definition import FOLDER, Definition, read_definitions
from kerneltruth.suites.flashinfer.task import SUITE, task_of
from kerneltruth.suites.flashinfer.workload import Workload, read_workloads
from kerneltruth.suites.reading import read_submissions
from kerneltruth.suites.submission import Broken, Read
from kerneltruth.suites.suite import Opening, Suite, TaskSource
from kerneltruth.suites.terms import Terms
from kerneltruth.tasks.registry import Listed
from kerneltruth.tasks.spec import Task


class DataSet(Suite):
    """The definitions of a data set; the reference of each runs when its task is needed.

    Attributes:
        definitions: by name.
        broken: files and lines without a definition or workload, with reasons.
    """

    terms = Terms(
        check="each workload's own shapes, on normal draws: no NaN or infinity, and no element "
        "whose absolute and relative errors both exceed 1e-2",
        checked_by="flashinfer_bench/bench/evaluators/default.py of flashinfer-ai/flashinfer-bench",
        prompt="the axes, constraints and dtypes of the task's definition, and this project",
    )

    def __init__(
        self,
        definitions: Mapping[str, Definition],
        workloads: Mapping[str, list[Workload]],
        broken: tuple[Broken, ...],
        runner: Runner,
    ) -> None:
        self._runner = runner
        self.definitions = definitions
        self.broken = broken
        self._workloads = workloads

    @classmethod
    def open(cls, path: Path, opening: Opening) -> Self:
        """Return the tasks of a data set.

        Raises:
            UserError: there is none at the path.
        """
        where = f"--suite {SUITE}:{path}"
        if not (path / FOLDER).is_dir():
            raise UserError(
                f"{where}: no folder {FOLDER!r} there; name a FlashInfer-Bench data set"
            )
        definitions, broken = read_definitions(path)
        if not definitions:
            first = f"; {broken[0].origin}: {broken[0].reason}" if broken else ""
            raise UserError(f"{where}: no definition in {FOLDER!r}{first}")
        workloads, more = read_workloads(path, definitions)
        return cls(definitions, workloads, (*broken, *more), opening.runner)

    def listed(self) -> Iterator[Listed]:
        """Return the known facts of each definition without running its reference."""
        for d in self.definitions.values():
            yield Listed(
                name=d.name,
                key=d.name,
                category=d.op_type,
                entry=d.entry,
                description=d.says,
                sha256=d.sha256,
                signature=f"{d.entry}({', '.join(t.name for t in d.inputs)})",
            )

    def task(self, name: str) -> Task:
        """Make the task of a definition."""
        return task_of(self.definitions[name], self._workloads.get(name, ()), self._runner)

    def own_function(self, name: str) -> Candidate:
        """Return a definition's reference as a candidate: the peer's speedups compare with it."""
        definition = self.definitions[name]
        return Candidate(
            source=f"{definition.reference.rstrip()}\n\n\n{definition.entry} = run\n",
            path=f"{definition.name}.py",
            sha256=definition.sha256,
            language="torch",
            trusted=True,
            entry=definition.entry,
        )

    def statement(self, name: str) -> TaskSource:
        """Return the reference of a definition."""
        definition = self.definitions[name]
        return TaskSource(source=definition.reference, alone=not definition.says)

    def submissions(self, path: Path) -> Iterator[Read]:
        """Return the unreadable parts of the data set, and the submissions at a path."""
        yield from self.broken
        yield from read_submissions(path, definitions=self.definitions)
