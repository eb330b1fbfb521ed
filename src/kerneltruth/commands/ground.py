"""What the contests on one case share: inputs, baselines, and contents whose results are known."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kerneltruth.cases.case import Case
from kerneltruth.cases.pools import Choice
from kerneltruth.clock.contest import Contest
from kerneltruth.clock.contestants import Contestant, Inputs
from kerneltruth.oracle.expectation import Expectation
from kerneltruth.oracle.grading import due, grade
from kerneltruth.oracle.verdict import Passed, word
from kerneltruth.tasks.spec import Task

# Contents whose results the judge knows, for each case.
KNOWN = 2


@dataclass(slots=True, kw_only=True)
class Ground:
    """The ground of contests on one case.

    Attributes:
        device: where references are computed.
        drawn: contents whose results the judge finds out.
        sides: the baselines.
        failed: why baselines take no part any more, by name.
        expected: what calls on drawn contents must give, or why that cannot be had.
    """

    task: Task
    case: Case
    inputs: Inputs
    device: str
    drawn: list[dict[str, Choice]]
    sides: list[Contestant] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    expected: list[Expectation | str] = field(default_factory=list)

    def known(self) -> list[dict[str, Choice]]:
        """Contents whose results the judge knows; it finds out when it is first asked."""
        if not self.expected:
            self.expected = [self._expectation(choices) for choices in self.drawn]
        return [
            choices
            for choices, due_there in zip(self.drawn, self.expected, strict=True)
            if isinstance(due_there, Expectation)
        ]

    def _expectation(self, choices: dict[str, Choice]) -> Expectation | str:
        inputs = self.inputs.at(self.task, self.case, choices)
        try:
            return due(self.task, self.case, inputs, device=self.device)
        except Exception as error:
            return f"{type(error).__name__}: {error}".splitlines()[0]

    def graded(self, contest: Contest) -> dict[str, Any]:
        """The shown results of a contest against what was due."""
        wrong = []
        for shown in contest.shown:
            expectation = self.expected[self.drawn.index(shown.at)]
            assert isinstance(expectation, Expectation)
            verdict = grade(self.task, expectation, shown.seen, device=self.device)
            if not isinstance(verdict, Passed):
                said = getattr(verdict, "detail", "") or getattr(verdict, "error", "")
                wrong.append(f"{word(verdict)}: {said}"[:300])
        unknown = [e for e in self.expected if isinstance(e, str)]
        return {
            "calls": len(contest.shown),
            "wrong": wrong,
            "not_graded": unknown[0] if unknown and not contest.shown else None,
        }
