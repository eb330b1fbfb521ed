"""Notices a program that waits for another one, which here would never run."""

from __future__ import annotations

from typing import Any

from kerneltruth.runner.interpreter.numbers import Array
from kerneltruth.runner.unsupported import UnsupportedError

# A program that sees one value at one address this often in a row waits for a program that has
# not begun: programs run one after another here. Waiting for an earlier one ends at once.
_POLLS_BEFORE_GIVING_UP = 4_000


class _Polls:
    """Counts how often one program has seen the same value at the same address, in a row."""

    def __init__(self) -> None:
        self.seen: tuple[Any, ...] = ()
        self.count = 0

    def note(self, program: Any, pointers: Array, old: Array) -> None:
        """Record that an atomic operation or a volatile load of `program` saw `old`."""
        if pointers.size != 1:
            self.count = 0
            return
        seen = (program, pointers.tobytes(), old.tobytes())
        self.count = self.count + 1 if seen == self.seen else 0
        self.seen = seen
        if self.count >= _POLLS_BEFORE_GIVING_UP:
            self.count = 0
            raise UnsupportedError(
                "a program waits for another one; the interpreter runs programs one after another"
            )


POLLS = _Polls()
