"""The rate of requests: a number a minute, and none while the endpoint asks for a pause."""

from __future__ import annotations

import time
from collections.abc import Callable


class Pace:
    """Spaces requests: one every 60 / `per_minute` seconds, without bursts."""

    def __init__(
        self, per_minute: float | None = None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._gap = 60 / per_minute if per_minute else 0.0
        self._clock = clock
        self._next = clock()

    def turn(self) -> float:
        """Take the next moment; returns the seconds until it."""
        now = self._clock()
        at = max(self._next, now)
        self._next = at + self._gap
        return at - now

    def hold(self, seconds: float) -> None:
        """Send nothing for a while."""
        self._next = max(self._next, self._clock() + seconds)
