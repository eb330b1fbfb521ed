"""What became of each candidate of a run, as `run --json` lists it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kerneltruth.analysis.lines import result_of
from kerneltruth.documents.runs import RightCount, RunCandidate

STAGES = ("call", "exe", "perf")


def outcome_of(line: Mapping[str, Any]) -> dict[str, Any]:
    """The outcome that a result line holds: verdict, kind, finding, and why in one line.

    As analysis has it: what was found wrong while it was timed has failed.
    """
    result = result_of(line, 0)
    explanation = (line.get("attempt") or {}).get("explanation") or ""
    return {
        "verdict": result.verdict,
        "kind": result.kind,
        "finding": result.finding,
        "reason": (explanation or result.detail).partition("\n")[0],
    }


def listed(lines: Iterable[Mapping[str, Any]]) -> list[RunCandidate]:
    """The candidates of lines that were kept with their outcome, each exactly once.

    One that repeats the source of another has its outcome, and says so in `same_as`.
    """
    lines = list(lines)
    by_key = {line["key"]: line["outcome"] for line in lines}
    return [
        RunCandidate(
            name=line["key"],
            task=line["task"],
            **by_key.get(line.get("same_as"), line["outcome"]),
            stages={
                stage: said["outcome"]
                for stage in STAGES
                if (said := line["stages"].get(stage)) is not None
            },
            torch_only=bool(line.get("torch_only")),
            same_as=line.get("same_as"),
        )
        for line in lines
    ]


def right_of(candidates: Sequence[RunCandidate]) -> RightCount:
    """How many attempts there are, and how many of them are right in the exe stage and after."""
    right = (c.verdict == "pass" and c.stages.get("exe") == "pass" for c in candidates)
    return RightCount(attempts=len(candidates), right=sum(right))
