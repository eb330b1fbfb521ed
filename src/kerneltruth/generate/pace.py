"""How often requests may leave: so many a minute, and not while the endpoint wants peace."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class Pace:
    """Gives each request its moment; shared by all threads.

    Requests leave evenly, one every 60 / `per_minute` seconds, so that no burst meets a limit.
    """

    def __init__(
        self, per_minute: float | None = None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._gap = 60 / per_minute if per_minute else 0.0
        self._clock = clock
        self._lock = threading.Lock()
        self._next = clock()

    def turn(self) -> float:
        """Take the next moment; returns the seconds until it."""
        with self._lock:
            at = max(self._next, self._clock())
            self._next = at + self._gap
            return at - self._clock()

    def hold(self, seconds: float) -> None:
        """Let nothing leave for a while: the endpoint has asked for it."""
        with self._lock:
            self._next = max(self._next, self._clock() + seconds)
