"""A chain so far: its rounds, the best of them, and the conversation that every request begins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kerneltruth.generate.chat import Message, Reply
from kerneltruth.generate.prompts import Prompts
from kerneltruth.generate.review import Review


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One round of a chain.

    Attributes:
        review: of the judge, if it was asked.
        diagnosis: the model's own words on the review, if it was asked for them.
    """

    reply: Reply
    review: Review | None = None
    diagnosis: Reply | None = None


def best_of(turns: Sequence[Turn]) -> int:
    """Return the best round; the last one among equals."""
    ranks = [rank_of(turn) for turn in turns]
    return max(range(len(turns)), key=lambda i: (ranks[i], i))


def rank_of(turn: Turn) -> tuple[int, int, float]:
    """Return the sort key of a round; one without a review comes last."""
    return (-1, 0, 0.0) if turn.review is None else turn.review.rank


def opening(brief: str, prompts: Prompts) -> list[Message]:
    """Return the system's message and the brief, with which every conversation begins."""
    return [
        Message(role="system", content=prompts.system()),
        Message(role="user", content=brief),
    ]
