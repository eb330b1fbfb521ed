"""KernelBench as a suite, and files of a user's own that are read as its problems are."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Self

from kerneltruth.errors import UserError
from kerneltruth.runner.candidate import Candidate
from kerneltruth.runner.host import Runner
from kerneltruth.runs.files import cache_folder
from kerneltruth.suites.kernelbench.child_session import FewChildren, ProblemSession
from kerneltruth.suites.kernelbench.declaration import declaration_of, in_one_line
from kerneltruth.suites.kernelbench.facts_of_runs import CONSTANT, INEXACT
from kerneltruth.suites.kernelbench.own_reference import read_reference
from kerneltruth.suites.kernelbench.problem import Problem
from kerneltruth.suites.kernelbench.published_problems import read_problems
from kerneltruth.suites.kernelbench.schema import Schema
from kerneltruth.suites.kernelbench.schema_cache import schema_of
from kerneltruth.suites.kernelbench.tasks import category_of, entry_of, task_of
from kerneltruth.suites.suite import FILE, Opening, Suite, TaskSource
from kerneltruth.suites.terms import Terms
from kerneltruth.tasks.registry import Listed
from kerneltruth.tasks.spec import Task

# Bytes per element of a call: inputs and outputs, float64 references and bounds, temporaries of
# comparisons; in the judge and its children.
BYTES_PER_ELEMENT = 100


class KernelBench(Suite):
    """The problems of a checkout or a data file; each task is derived when it is needed.

    A schema and a reference need a child each, so a task costs a second or more. A process forked
    from this one uses the runner's zygotes, and starts its own children.
    """

    terms = Terms(
        check="five draws at the problem's own sizes, in float32: the reference's shape, and each "
        "element within 1e-4, absolute or relative",
        checked_by="src/kernelbench/eval.py of ScalingIntelligence/KernelBench",
        prompt="the problem's file, which is its prompt, and this project",
    )

    def __init__(
        self,
        problems: Mapping[str, Problem],
        runner: Runner,
        cache: Path | None,
        *,
        on_device: Runner | None = None,
        room: int | None = None,
        judges: int = 1,
        new_session: Callable[..., ProblemSession] = ProblemSession,
    ) -> None:
        """Start no child yet.

        Args:
            problems: by name.
            runner: for references, on the CPU.
            cache: a folder for schemas.
            on_device: for large references, where a GPU judges.
            room: see `task_of`.
            judges: how many share the machine's cores.
            new_session: makes what runs a problem, as `ProblemSession` does.
        """
        self._new_session = new_session
        self.problems = problems
        self._schemas: dict[str, Schema] = {}
        self._judges = judges
        self._most_waiting = 3
        self._on_device = on_device
        self._waiting = FewChildren()
        self._room = room
        self._runner = runner
        self._cache = cache
        self._sessions: dict[str, ProblemSession] = {}
        self._recent: list[str] = []

    @classmethod
    def open(cls, path: Path, opening: Opening) -> Self:
        """Return the problems at a path.

        Raises:
            UserError: there are none.
        """
        return cls._of(cls._read(path), opening)

    @classmethod
    def _read(cls, path: Path) -> Mapping[str, Problem]:
        return read_problems(path)

    @classmethod
    def _of(cls, problems: Mapping[str, Problem], opening: Opening) -> Self:
        room = None if opening.on_device is None else room_of(opening.judges)
        return cls(
            problems,
            opening.runner,
            cache_folder("schemas"),
            on_device=opening.on_device,
            room=room,
            judges=opening.judges,
        )

    def task(self, name: str) -> Task:
        """Derive the task of a problem."""
        session = self._sessions[name] = self._session(name)
        return task_of(self.problems[name], self.schema(name), session, room=self._room)

    def _session(self, name: str) -> ProblemSession:
        return self._new_session(
            self.problems[name], self._runner, self._on_device, self._waiting, judges=self._judges
        )

    def used(self, name: str) -> None:
        """End the children of all but the last few problems; they restart when needed."""
        self._recent = [*(n for n in self._recent if n != name), name]
        for old in self._recent[: -self._most_waiting]:
            self._sessions[old].close()
        self._recent = self._recent[-self._most_waiting :]

    def prepare(self, names: Iterable[str], side_by_side: int) -> None:
        """Derive the schemas of these problems into the cache: side by side, one child a core.

        A judge takes problem after problem. Problems that take turns would otherwise restart each
        time, which takes seconds.
        """
        self._most_waiting = self._waiting.most = side_by_side
        if self._cache is not None:
            with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
                # The last problems are whole networks, which take longest.
                list(pool.map(self.schema, reversed([*names])))

    def schema(self, name: str) -> Schema:
        """Return the schema of a problem."""
        if name not in self._schemas:
            self._schemas[name] = schema_of(self.problems[name], self._runner, self._cache)
        return self._schemas[name]

    def listed(self) -> Iterator[Listed]:
        """Return the known facts of each problem without running it."""
        for p in self.problems.values():
            yield Listed(
                name=p.name,
                key=p.name,
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
                # A budget that ends early has then covered some of each level.
                rank=p.number,
            )

    def own_function(self, name: str) -> Candidate:
        """Return the problem's own model or function as a candidate."""
        problem = self.problems[name]
        return Candidate(
            source=problem.source,
            path=f"{name.replace('/', '_')}.py",
            sha256=problem.sha256,
            language="torch",
            trusted=True,
            entry="Model" if problem.function is None else problem.function.name,
            pretrained=problem.pretrained,
        )

    def statement(self, name: str) -> TaskSource:
        """Return the problem's source, its only statement."""
        return TaskSource(source=self.problems[name].source, alone=True, whole=True)


# What to do about a function that returns, and yet tells no kernel right from wrong.
_RULES = {
    CONSTANT: "let inputs() give values that change it",
    INEXACT: "let inputs() give values at which both agree, and draw nothing inside",
}


class Reference(KernelBench):
    """One file of the user's own: a plain function, or KernelBench's form: `--reference FILE`."""

    place = FILE
    any_name = True
    terms = Terms()

    @classmethod
    def _read(cls, path: Path) -> Mapping[str, Problem]:
        own = read_reference(path)
        return {own.name: own}

    @classmethod
    def open(cls, path: Path, opening: Opening) -> Self:
        """Return the task of a file.

        Raises:
            UserError: the file is no reference, or fails on what its own `inputs()` gives.
        """
        found = super().open(path, opening)
        for name in found.problems:
            trouble = found.schema(name).trouble
            if trouble is not None:
                rule = next(
                    (r for known, r in _RULES.items() if known in trouble),
                    "correct it, so that it returns on what its own inputs() gives",
                )
                said = trouble if "; " in trouble else f"{trouble}; {rule}"
                raise UserError(f"{path}: {said}")
        return found

    def declaration(self, name: str, *, short: bool = False) -> str | None:
        """Return the facts learned of a plain function; None for KernelBench's form."""
        problem = self.problems[name]
        if problem.function is None:
            return None
        write = in_one_line if short else declaration_of
        schema = self.schema(name)
        return write(problem, schema, task_of(problem, schema, self._session(name)))


def room_of(judges: int) -> int:
    """Return how many elements of a call fit each judge's share of this machine's memory."""
    return _memory() // judges // BYTES_PER_ELEMENT


def _memory() -> int:
    """Return the bytes of memory that this process and others like it may use."""
    limit = Path("/sys/fs/cgroup/memory.max")
    with contextlib.suppress(OSError, ValueError):
        return min(int(limit.read_text()), _physical())
    return _physical()


def _physical() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
