"""What became of each candidate of a run: its stages, and the list that `run --json` shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, cast

from msgspec import UNSET, UnsetType

from kerneltruth.documents.lines import ResultLine, StageRecord, StagesRecord, read_line
from kerneltruth.documents.model import Json, model_of
from kerneltruth.documents.records import Attempt, SecondRound, Status, Suspicion
from kerneltruth.documents.runs import ObligationCounts, RightCount, RunCandidate
from kerneltruth.documents.timing import CandidateTimes
from kerneltruth.documents.verdict import (
    CompileError,
    Crashed,
    Infra,
    RuntimeFault,
    TimedOut,
    UnsupportedHere,
    VerdictWord,
)
from kerneltruth.engine.requests import STAGES
from kerneltruth.oracle.case_status import line_of

NOT_RUN: Final = "not_run"
# Right when judged, and wrong while it was timed: such an attempt failed, with this kind.
WRONG = "wrong"
WHEN_TIMED = "when_timed"
# Characters of a reason in a list of many.
MOST_SAID = 300
WORST_FIRST: tuple[Status, ...] = ("broken", "refused", "held", "not_tried", "not_applicable")


def call_stage(attempt: Attempt) -> StageRecord:
    """Return whether the candidate loads, has its entry, and returns from one call.

    A call counts as made where a case was judged on what came back, right or wrong.
    """
    verdict = attempt.verdict
    never_returned = (
        isinstance(verdict, CompileError | RuntimeFault | Crashed | TimedOut)
        and attempt.failed >= attempt.cases
    )
    if never_returned or isinstance(verdict, Infra | UnsupportedHere):
        return StageRecord(outcome=verdict.word, detail=line_of(verdict))
    return StageRecord(outcome="pass")


def exe_stage(attempt: Attempt, call: StageRecord) -> StageRecord:
    """Return what the judge says, if the call was made."""
    if call.outcome != "pass":
        return StageRecord(outcome=NOT_RUN, detail=f"call: {call.outcome}")
    kind = getattr(attempt.verdict, "kind", None)
    return StageRecord(
        outcome=attempt.verdict.word,
        cases=attempt.cases,
        failed=attempt.failed,
        kind=UNSET if kind is None else kind,
        detail=UNSET if kind is None else line_of(attempt.verdict),
    )


def stages_of(
    attempt: Attempt, wanted: Collection[str], perf: CandidateTimes | None
) -> StagesRecord:
    """Return the stages of an attempt that a run wants."""
    call = call_stage(attempt)
    return StagesRecord(
        call=call if "call" in wanted else UNSET,
        exe=exe_stage(attempt, call) if "exe" in wanted else UNSET,
        perf=UNSET if perf is None else perf,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedLine:
    """The part of a result line that a run needs to the end; memory must not grow with the rest.

    Attributes:
        verdict: of the attempt; `fail` where a wrong result was seen while it was timed.
        reason: of the verdict, in one line.
        same_as: the line whose source it repeats; None for an original.
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
    profile: dict[str, Status] = field(default_factory=dict)
    score: float | None = None
    hazards: tuple[str, ...] = ()
    obligation: str | None = None
    second_round: SecondRound | None = None
    suspicions: tuple[Suspicion, ...] = ()

    @property
    def own_time(self) -> float | None:
        """The share of the device's time that its own kernels took, where it is known."""
        kernel = self.stages.perf and self.stages.perf.kernel
        return kernel.own if kernel else None

    @classmethod
    def of(cls, data: dict[str, Json]) -> ListedLine:
        """Return what a run needs of one of its lines.

        Raises:
            UserError: it is of another form.
        """
        line = read_line(data)
        stages = line.stages or StagesRecord()
        verdict, kind, detail = _conclusion(line, stages)
        attempt = line.attempt or None
        return cls(
            key=line.key,
            task=line.task or (attempt.task if attempt else ""),
            category=line.category or "",
            stages=stages,
            # What `run` writes has a verdict's own word.
            verdict=cast(VerdictWord, verdict),
            kind=kind,
            finding=line.finding.rpartition("/")[2] if line.finding else None,
            reason=((attempt.explanation if attempt else "") or detail).partition("\n")[0],
            torch_only=bool(line.torch_only),
            same_as=line.same_as or None,
            profile={k: e.status for k, e in attempt.profile.items()} if attempt else {},
            score=attempt.score if attempt else None,
            hazards=tuple(attempt.hazards.values()) if attempt else (),
            obligation=_lost_by(attempt) if attempt else None,
            second_round=attempt.second_round if attempt else None,
            suspicions=attempt.suspicions if attempt else (),
        )


def _lost_by(attempt: Attempt) -> str | None:
    """Return the first decisive obligation that is broken or refused."""
    lost = (
        key
        for key, entry in attempt.profile.items()
        if entry.decisive and entry.status in ("broken", "refused")
    )
    return next(lost, None)


def _conclusion(line: ResultLine, stages: StagesRecord) -> tuple[str, str | None, str]:
    """Return the verdict, its kind and its reason; those of the stages if a line has no attempt."""
    if stages.perf and was_wrong_when_timed(stages):
        return "fail", WHEN_TIMED, _of_stages(stages, stages.perf.detail or "")
    if line.attempt:
        kind = getattr(line.attempt.verdict, "kind", None)
        return line.attempt.verdict.word, kind, _of_stages(stages, line_of(line.attempt.verdict))
    outcome = stages.outcome("exe")
    word = stages.outcome("call") if outcome in (None, NOT_RUN) else outcome
    return word or NOT_RUN, None, _of_stages(stages, "")


def was_wrong_when_timed(stages: StagesRecord | UnsetType) -> bool:
    """Return whether a result that was right when judged was wrong while it was timed."""
    if not stages or stages.outcome("exe") != "pass":
        return False
    return stages.outcome("perf") == WRONG


def _of_stages(stages: StagesRecord, detail: str) -> str:
    """Return the reason given, else that of a stage."""
    given = (stage.detail for stage in (stages.exe, stages.call) if stage and stage.detail)
    return (detail or next(given, "")).partition("\n")[0][:MOST_SAID]


def listed(lines: Iterable[ListedLine]) -> list[RunCandidate]:
    """Return the candidates of lines, each exactly once.

    A repeated source has the verdict of its original, named by `same_as`.
    """
    lines = list(lines)
    by_key = {line.key: line for line in lines}
    return [_candidate(line, by_key.get(line.same_as or "", line)) for line in lines]


def _candidate(line: ListedLine, judged: ListedLine) -> RunCandidate:
    outcomes = {stage: line.stages.outcome(stage) for stage in STAGES}
    return model_of(
        RunCandidate,
        judged,
        name=line.key,
        task=line.task,
        stages={stage: said for stage, said in outcomes.items() if said is not None},
        torch_only=line.torch_only,
        same_as=line.same_as,
    )


def by_obligation(candidates: Iterable[RunCandidate]) -> dict[str, ObligationCounts]:
    """Count how many candidates hold, break and refuse each obligation.

    An obligation with parts, such as dtypes, has the worst status of its parts.
    """
    counts: dict[str, Counter[str]] = {}
    for candidate in candidates:
        worst: dict[str, Status] = {}
        for key, status in candidate.profile.items():
            name = key.partition(".")[0]
            worst[name] = min(worst.get(name, status), status, key=WORST_FIRST.index)
        for name, status in worst.items():
            counts.setdefault(name, Counter())[status] += 1
    return {name: ObligationCounts(**own) for name, own in counts.items()}


def right_of(candidates: Sequence[RunCandidate]) -> RightCount:
    """Count the attempts, and those that are right in the exe stage and after."""
    right = (c.verdict == "pass" and c.stages.get("exe") == "pass" for c in candidates)
    return RightCount(attempts=len(candidates), right=sum(right))
