"""A candidate's launches, compiled for targets whose GPU is not here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kerneltruth.documents.verdict import CompileError
from kerneltruth.oracle.arguments import Layouts, poison_of
from kerneltruth.oracle.expectation import Expectation
from kerneltruth.runner.candidate import Candidate
from kerneltruth.runner.host import Runner
from kerneltruth.runner.observation import Binary, Launch
from kerneltruth.runner.session import Session
from kerneltruth.tasks.spec import Task

# The least that a call which compiles for all targets may take.
COMPILING_S = 60.0


class TargetCompiler:
    """Compiles each new launch of a candidate once for every target, in a child of its own.

    Attributes:
        binaries: what the compiler made, or refused to.
    """

    def __init__(self, task: Task, candidate: Candidate, runner: Runner, layouts: Layouts) -> None:
        """A compiler; no child is started yet."""
        self._task, self._candidate, self._runner = task, candidate, runner
        self._layouts = layouts
        self.binaries: list[Binary] = []
        self._session: Session | None = None
        self._compiled: set[tuple[Any, ...]] = set()
        self._refused: dict[tuple[Any, ...], CompileError] = {}

    def close(self, *, wait: bool) -> None:
        """End the child; without `wait`, only request it."""
        if self._session is not None:
            self._session.close(wait=wait)
        self._session = None

    def compile(
        self,
        expectation: Expectation,
        launches: Sequence[Launch],
        config: int,
        *,
        deadline_s: Callable[[], float],
    ) -> CompileError | None:
        """Compile a call's new launches for every target; return the first refusal.

        A refused launch is refused again: the first refusal may have been outside the core.
        """
        every = {_specialization(launch): launch.kernel for launch in launches}
        known = next((self._refused[k] for k in every if k in self._refused), None)
        keys = every.keys() - self._compiled
        if known is not None or not keys:
            return known
        self._compiled |= keys
        if self._session is None:
            self._session = self._runner.open(self._candidate, mode="compile")
        laid = self._layouts.of(self._task, expectation.case, expectation.inputs)
        observation = self._session.call(
            laid.arguments,
            poison=poison_of(expectation.case, 0),
            config=config,
            deadline_s=deadline_s(),
        )
        self.binaries.extend(observation.binaries)
        for binary in observation.binaries:
            if not binary.ok:
                detail = f"{binary.kernel}: {binary.error}"
                refused = CompileError(detail=detail, target=binary.target)
                self._refused |= {k: refused for k in keys if every[k] == binary.kernel}
                return refused
        return None


def _specialization(launch: Launch) -> tuple[Any, ...]:
    constants = tuple(sorted((k, repr(v)) for k, v in launch.constants.items()))
    return launch.kernel, constants, tuple(sorted(launch.signature.items()))
