"""The time that a candidate's calls may take, all together."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator


class OutOfTime(Exception):
    """The candidate's time is spent: a call was not made, or was cut short."""


class Allowance:
    """How long a candidate's calls may still take, with loading and compiling.

    What the judge takes for references and comparisons is no candidate's time.

    Attributes:
        left_s: without end unless it is set.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.left_s = math.inf

    def of(self, usual_s: float) -> float:
        """Return the seconds that a call may take.

        Raises:
            OutOfTime: none are left.
        """
        if self.left_s <= 0:
            raise OutOfTime
        return min(usual_s, self.left_s)

    @contextlib.contextmanager
    def spent(self) -> Iterator[None]:
        """Take the time within from what is left."""
        began = self._clock()
        try:
            yield
        finally:
            self.left_s -= self._clock() - began
