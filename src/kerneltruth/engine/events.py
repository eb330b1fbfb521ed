"""What a request comes to: steps, and then a document."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

D = TypeVar("D")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """How far a command has come.

    `notable` steps are worth a line of their own where there is no progress bar.
    """

    done: int
    total: int
    text: str
    notable: bool = False


# A stream of steps that ends in a document, which the generator returns.
Events: TypeAlias = Generator[Step, None, D]
