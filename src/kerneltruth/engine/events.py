"""The event that long commands yield."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """How far a command has come.

    `notable` steps are worth a line of their own where there is no progress bar.
    """

    done: int
    total: int
    text: str
    notable: bool = False
