"""Where seconds go, by a word for each part."""

from __future__ import annotations

import contextlib
import time
from collections import defaultdict
from collections.abc import Iterator


class Spent(defaultdict[str, float]):
    """Seconds by what they went into."""

    def __init__(self) -> None:
        super().__init__(float)

    @contextlib.contextmanager
    def on(self, what: str) -> Iterator[None]:
        """Count the seconds of this block, however it ends."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self[what] += time.perf_counter() - began
