"""Limit the rate of requests, and pause when the endpoint asks for it."""

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
        """Reserve the next slot; return the seconds until it."""
        now = self._clock()
        at = max(self._next, now)
        self._next = at + self._gap
        return at - now

    def hold(self, seconds: float) -> None:
        """Send nothing for `seconds`."""
        self._next = max(self._next, self._clock() + seconds)
