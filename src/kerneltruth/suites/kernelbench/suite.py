"""KernelBench as a suite: tasks by name, each derived at the first lookup."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from kerneltruth.runner.candidate import Candidate
from kerneltruth.runner.host import Runner
from kerneltruth.runs.files import cache_folder
from kerneltruth.suites.kernelbench.child_session import FewChildren, ProblemSession
from kerneltruth.suites.kernelbench.problem import Problem
from kerneltruth.suites.kernelbench.schema import Schema
from kerneltruth.suites.kernelbench.schema_cache import schema_of
from kerneltruth.suites.kernelbench.tasks import SUITE, category_of, entry_of, task_of
from kerneltruth.tasks.registry import Listed
from kerneltruth.tasks.spec import Task


class Problems(Mapping[str, Task]):
    """Tasks by key, made on demand.

    A schema and a reference need a child each, so a task costs a second or more. A process forked
    from this one uses the runner's zygotes, and starts its own children.
    """

    def __init__(
        self,
        problems: Mapping[str, Problem],
        runner: Runner,
        cache: Path | None,
        *,
        on_device: Runner | None = None,
        room: int | None = None,
        judges: int = 1,
        suite: str = SUITE,
    ) -> None:
        """Start no child yet.

        Args:
            problems: by name.
            runner: for references, on the CPU.
            cache: a folder for schemas.
            on_device: for large references, where a GPU judges.
            room: see `task_of`.
            judges: how many share the machine's cores.
            suite: the name of the suite.
        """
        self.problems = problems
        self._suite = suite
        self._schemas: dict[str, Schema] = {}
        self._judges = judges
        self._most_waiting = 3
        self._on_device = on_device
        self._waiting = FewChildren()
        self._room = room
        self._runner = runner
        self._cache = cache
        self._made: dict[str, tuple[Task, ProblemSession]] = {}
        self._recent: list[str] = []

    def __getitem__(self, key: str) -> Task:
        suite, _, name = key.partition("/")
        if suite != self._suite or name not in self.problems:
            raise KeyError(key)
        if name not in self._made:
            problem = self.problems[name]
            session = ProblemSession(
                problem, self._runner, self._on_device, self._waiting, judges=self._judges
            )
            task = task_of(problem, self.schema(name), session, room=self._room)
            self._made[name] = (task, session)
        self._recent = [*(n for n in self._recent if n != name), name]
        for old in self._recent[: -self._most_waiting]:
            self.let_go(old)
        self._recent = self._recent[-self._most_waiting :]
        return self._made[name][0]

    def __iter__(self) -> Iterator[str]:
        return (f"{self._suite}/{name}" for name in self.problems)

    def __len__(self) -> int:
        return len(self.problems)

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and key.removeprefix(f"{self._suite}/") in self.problems

    def ask_side_by_side(self, count: int) -> None:
        """Keep the references' children of that many problems, also on a device.

        A judge takes problem after problem. Problems that take turns would otherwise restart each
        time, which takes seconds.
        """
        self._most_waiting = self._waiting.most = count

    def schema(self, name: str) -> Schema:
        """Return the schema of a problem."""
        if name not in self._schemas:
            self._schemas[name] = schema_of(self.problems[name], self._runner, self._cache)
        return self._schemas[name]

    def derive(self, keys: Iterable[str]) -> None:
        """Derive the schemas of these problems into the cache: side by side, one child a core."""
        if self._cache is not None:
            names = [key.removeprefix(f"{self._suite}/") for key in keys]
            with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
                # The last problems are whole networks, which take longest.
                list(pool.map(self.schema, reversed(names)))

    def listed(self) -> dict[str, Listed]:
        """Return what is known of each problem without running it, by name."""
        return {
            p.name: Listed(
                name=p.name,
                key=f"{self._suite}/{p.name}",
                category=category_of(p),
                entry=entry_of(p),
                description=f"{p.title.replace('_', ' ').strip()}. {p.says}".strip(),
                trouble=p.trouble or p.doubt,
                signature=f"{entry_of(p)}(*get_init_inputs())(*get_inputs())",
                sha256=p.sha256,
                aliases=(
                    str(p.number),
                    f"{p.number}_{p.title}",
                    f"level{p.level}/{p.number}_{p.title}",
                ),
            )
            for p in self.problems.values()
        }

    def own_model(self, name: str) -> Candidate:
        """Return the problem's own model or function as a candidate."""
        problem = self.problems[name]
        return Candidate(
            source=problem.source,
            path=f"{name.replace('/', '_')}.py",
            sha256=problem.sha256,
            language="torch",
            entry="Model" if problem.function is None else problem.function.name,
        )

    def let_go(self, name: str) -> None:
        """End the reference's child; it restarts when needed."""
        if name in self._made:
            self._made[name][1].close()


def schema_cache() -> Path:
    """Return where schemas are kept between runs."""
    return cache_folder("schemas")
