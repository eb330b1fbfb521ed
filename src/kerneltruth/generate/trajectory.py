"""Define the methods: the next request of a chain, given its answers so far.

A method is a stateless value, so that a stopped generation continues from its transcript alone.
`one_shot` asks once; `best_of_n` asks n times independently; `refine` shows the model its best
answer so far with the judge's review, and asks for a better one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from kerneltruth.errors import InternalError, UserError
from kerneltruth.generate.chat import Message, Reply, Request
from kerneltruth.generate.prompts import Prompts
from kerneltruth.generate.review import Review

Name = Literal["one_shot", "best_of_n", "refine"]
NAMES: tuple[Name, ...] = ("one_shot", "best_of_n", "refine")

BEST_OF_N_TEMPERATURE = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One round of a chain: an answer, and its review if the judge was asked."""

    reply: Reply
    review: Review | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """How answers are obtained.

    Attributes:
        samples: independent chains per task.
    """

    name: Name
    samples: int = 1
    rounds: int = 1

    def __post_init__(self) -> None:
        if self.name not in NAMES:
            raise InternalError(f"no method {self.name!r}")
        if self.samples < 1 or self.rounds < 1 or (self.rounds > 1) != (self.name == "refine"):
            raise InternalError(f"{self.name}: {self.samples} samples, {self.rounds} rounds")

    @property
    def asks_the_judge(self) -> bool:
        """Return whether a next answer depends on what is wrong with the last."""
        return self.rounds > 1

    def next(
        self, task: str, sample: int, turns: Sequence[Turn], brief: str, prompts: Prompts
    ) -> Request | None:
        """Return the next request of a chain, or None at its end."""
        messages = [
            Message(role="system", content=prompts.system()),
            Message(role="user", content=brief),
        ]
        if turns:
            if len(turns) >= self.rounds or not _goes_on(turns):
                return None
            best = best_of(turns)
            review = turns[best].review
            assert review is not None
            last = turns[-1].review if best != len(turns) - 1 else None
            messages += [
                Message(role="assistant", content=turns[best].reply.text),
                Message(role="user", content=prompts.feedback(review, worse=last)),
            ]
        return Request(task=task, sample=sample, round=len(turns), messages=tuple(messages))


def method_of(name: str, *, samples: int | None, rounds: int | None) -> Method:
    """Return the method that the options ask for.

    Raises:
        UserError: there is no such method, or it has no such option.
    """
    if name not in NAMES:
        raise UserError(f"--method {name!r}: must be one of {', '.join(NAMES)}, import")
    if rounds is not None and name != "refine":
        raise UserError(
            f"--rounds {rounds}: only refine works in rounds, not {name}; leave out --rounds, or "
            "use --method refine"
        )
    if rounds is not None and rounds < 2:
        raise UserError(f"--rounds {rounds}: refine needs 2 or more; one answer alone is one_shot")
    if samples is not None and samples > 1 and name == "one_shot":
        raise UserError(f"--samples {samples}: one_shot asks once; use best_of_n for several")
    match name:
        case "one_shot":
            return Method(name="one_shot")
        case "best_of_n":
            return Method(name="best_of_n", samples=samples or 10)
        case _:
            return Method(name="refine", samples=samples or 1, rounds=rounds or 4)


def best_of(turns: Sequence[Turn]) -> int:
    """Return the best round; the last one among equals."""
    ranks = [(-1, 0, 0.0) if t.review is None else t.review.rank for t in turns]
    return max(range(len(turns)), key=lambda i: (ranks[i], i))


def _goes_on(turns: Sequence[Turn]) -> bool:
    """Return whether the best round has feedback and every round has a verdict."""
    best = turns[best_of(turns)].review
    return best is not None and best.says_something and all(t.review is not None for t in turns)
