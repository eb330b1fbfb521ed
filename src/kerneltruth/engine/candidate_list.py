"""What became of each candidate of a run, as `run --json` lists it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import cast

from kerneltruth.analysis.lines import result_of
from kerneltruth.documents.lines import StagesRecord, read_line
from kerneltruth.documents.model import Json
from kerneltruth.documents.records import VerdictWord
from kerneltruth.documents.runs import RightCount, RunCandidate

STAGES = ("call", "exe", "perf")


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedLine:
    """What of a result line is needed while the run lasts; memory must not grow with the rest.

    Attributes:
        verdict: as analysis has it: what was found wrong while it was timed has failed.
        reason: of the verdict, in one line.
        same_as: the line whose source it repeats; None of the others.
    """

    key: str
    task: str
    category: str
    stages: StagesRecord
    verdict: VerdictWord
    kind: str | None
    finding: str | None
    reason: str
    torch_only: bool
    same_as: str | None

    @classmethod
    def of(cls, data: dict[str, Json]) -> ListedLine:
        """What is needed of a line of a run.

        Raises:
            UserError: it is of another form.
        """
        line, result = read_line(data), result_of(data, 0)
        explanation = line.attempt.explanation if line.attempt else ""
        return cls(
            key=line.key,
            task=result.task,
            category=result.category or "",
            stages=line.stages or StagesRecord(),
            # What `run` writes has a verdict's own word.
            verdict=cast(VerdictWord, result.verdict),
            kind=result.kind,
            finding=result.finding,
            reason=(explanation or result.detail).partition("\n")[0],
            torch_only=bool(line.torch_only),
            same_as=line.same_as or None,
        )


def listed(lines: Iterable[ListedLine]) -> list[RunCandidate]:
    """The candidates of lines, each exactly once.

    One that repeats the source of another has its outcome, and says so in `same_as`.
    """
    lines = list(lines)
    by_key = {line.key: line for line in lines}
    return [_candidate(line, by_key.get(line.same_as or "", line)) for line in lines]


def _candidate(line: ListedLine, judged: ListedLine) -> RunCandidate:
    outcomes = {stage: line.stages.outcome(stage) for stage in STAGES}
    return RunCandidate(
        name=line.key,
        task=line.task,
        verdict=judged.verdict,
        kind=judged.kind,
        finding=judged.finding,
        reason=judged.reason,
        stages={stage: said for stage, said in outcomes.items() if said is not None},
        torch_only=line.torch_only,
        same_as=line.same_as,
    )


def right_of(candidates: Sequence[RunCandidate]) -> RightCount:
    """How many attempts there are, and how many of them are right in the exe stage and after."""
    right = (c.verdict == "pass" and c.stages.get("exe") == "pass" for c in candidates)
    return RightCount(attempts=len(candidates), right=sum(right))
