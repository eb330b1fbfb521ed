"""Count the seconds of named parts."""

from __future__ import annotations

import contextlib
import time
from collections import defaultdict
from collections.abc import Callable, Iterator


class Stopwatch(defaultdict[str, float]):
    """Seconds by named part, on the clock `now`."""

    def __init__(self, now: Callable[[], float] = time.perf_counter) -> None:
        super().__init__(float)
        self._now = now

    @contextlib.contextmanager
    def on(self, what: str) -> Iterator[None]:
        """Count the seconds of this block, however it ends."""
        began = self._now()
        try:
            yield
        finally:
            self[what] += self._now() - began
