"""Open a data set as a suite: its definitions as tasks, and what could not be read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from kerneltruth.errors import UserError
from kerneltruth.runner.candidate import Candidate
from kerneltruth.runner.host import Runner
from kerneltruth.suites.flashinfer.definition import FOLDER, Definition, read_definitions
from kerneltruth.suites.flashinfer.task import SUITE, task_of
from kerneltruth.suites.flashinfer.workload import Workload, read_workloads
from kerneltruth.suites.submission import Broken
from kerneltruth.tasks.registry import Listed
from kerneltruth.tasks.spec import Task


class DataSet(Mapping[str, Task]):
    """The tasks by key; each is made, and its reference run, at the first lookup.

    Attributes:
        definitions: by name.
        broken: files and lines without a definition or workload, with reasons.
    """

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
        self._made: dict[str, Task] = {}

    def __getitem__(self, key: str) -> Task:
        name = key.removeprefix(f"{SUITE}/")
        if key == name or name not in self.definitions:
            raise KeyError(key)
        if name not in self._made:
            self._made[name] = task_of(
                self.definitions[name], self._workloads.get(name, ()), self._runner
            )
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return (f"{SUITE}/{name}" for name in self.definitions)

    def __len__(self) -> int:
        return len(self.definitions)

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and key.removeprefix(f"{SUITE}/") in self.definitions

    def own_reference(self, key: str) -> Candidate:
        """Return a definition's reference as a candidate: the peer's speedups compare with it."""
        definition = self.definitions[key.removeprefix(f"{SUITE}/")]
        return Candidate(
            source=f"{definition.reference.rstrip()}\n\n\n{definition.entry} = run\n",
            path=f"{definition.name}.py",
            sha256=definition.sha256,
            language="torch",
            entry=definition.entry,
        )

    def listed(self) -> dict[str, Listed]:
        """Return what is known of each definition without running its reference, by name."""
        return {
            d.name: Listed(
                name=d.name,
                key=f"{SUITE}/{d.name}",
                category=d.op_type,
                entry=d.entry,
                description=d.says,
                sha256=d.sha256,
                signature=f"{d.entry}({', '.join(t.name for t in d.inputs)})",
            )
            for d in self.definitions.values()
        }


def open_data_set(path: Path, runner: Runner) -> DataSet:
    """Return the tasks of a data set; `runner`, on the CPU, runs their references.

    Raises:
        UserError: there is none at the path.
    """
    if not (path / FOLDER).is_dir():
        raise UserError(
            f"--suite {SUITE}:{path}: no folder {FOLDER!r} there; name a FlashInfer-Bench data set"
        )
    definitions, broken = read_definitions(path)
    if not definitions:
        first = f"; {broken[0].origin}: {broken[0].reason}" if broken else ""
        raise UserError(f"--suite {SUITE}:{path}: no definition in {FOLDER!r}{first}")
    workloads, more = read_workloads(path, definitions)
    return DataSet(definitions, workloads, (*broken, *more), runner)
