"""Define the methods: the next request of a chain, given its answers so far.

A method is a stateless value, so that a stopped generation continues from its transcript alone.
`one_shot` asks once; `best_of_n` asks n times independently; `refine` shows the model its best
answer so far with the judge's review, and asks for a better one; `geak` has the model diagnose the
review in words first (see `diagnosing`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from kerneltruth.errors import InternalError, UserError
from kerneltruth.generate.chat import Message, Request
from kerneltruth.generate.diagnosing import next_step
from kerneltruth.generate.prompts import Prompts
from kerneltruth.generate.turns import Turn, best_of, opening

Name = Literal["one_shot", "best_of_n", "refine", "geak"]
NAMES: tuple[Name, ...] = ("one_shot", "best_of_n", "refine", "geak")
# Methods whose next answer depends on the judge's verdict.
IN_ROUNDS: tuple[Name, ...] = ("refine", "geak")

BEST_OF_N_TEMPERATURE = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """How answers are obtained.

    Attributes:
        samples: independent chains per task.
        rounds: the most answers of a chain.
    """

    name: Name
    samples: int = 1
    rounds: int = 1

    def __post_init__(self) -> None:
        if self.name not in NAMES:
            raise InternalError(f"no method {self.name!r}")
        if self.samples < 1 or self.rounds < 1 or (self.rounds > 1) != (self.name in IN_ROUNDS):
            raise InternalError(f"{self.name}: {self.samples} samples, {self.rounds} rounds")

    @property
    def asks_the_judge(self) -> bool:
        """Return whether a next answer depends on what is wrong with the last."""
        return self.rounds > 1

    def next(
        self, task: str, sample: int, turns: Sequence[Turn], brief: str, prompts: Prompts
    ) -> Request | None:
        """Return the next request of a chain, or None at its end."""
        messages: Sequence[Message] = opening(brief, prompts)
        if not turns:
            return Request(task=task, sample=sample, round=0, messages=tuple(messages))
        if len(turns) >= self.rounds or any(turn.review is None for turn in turns):
            return None
        if self.name == "geak":
            return next_step(task, sample, turns, messages, prompts)
        review = turns[best := best_of(turns)].review
        assert review is not None
        if not review.says_something:
            return None
        last = turns[-1].review if best != len(turns) - 1 else None
        messages = [
            *messages,
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
    if rounds is not None and name not in IN_ROUNDS:
        words = " and ".join(IN_ROUNDS)
        raise UserError(
            f"--rounds {rounds}: only {words} work in rounds, not {name}; leave out --rounds"
        )
    if rounds is not None and rounds < 2:
        raise UserError(f"--rounds {rounds}: {name} needs 2 or more; one answer alone is one_shot")
    if samples is not None and samples > 1 and name == "one_shot":
        raise UserError(f"--samples {samples}: one_shot asks once; use best_of_n for several")
    match name:
        case "one_shot":
            return Method(name="one_shot")
        case "best_of_n":
            return Method(name="best_of_n", samples=samples or 10)
        case _:
            return Method(name=name, samples=samples or 1, rounds=rounds or 4)
