"""What judging yields: an event per case, and one attempt per candidate."""

from __future__ import annotations

from dataclasses import dataclass

from kerneltruth.documents.records import Attempt, Judgement


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseJudged:
    """Event: a case was judged."""

    judgement: Judgement


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptEnded:
    """Event: the candidate has its verdict; always the last event of an attempt."""

    attempt: Attempt


Event = CaseJudged | AttemptEnded
