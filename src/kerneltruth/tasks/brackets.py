"""Take texts apart at brackets and commas."""

from __future__ import annotations

from kerneltruth.errors import DeclarationError


def closing(text: str, start: int) -> int:
    """Return where the bracket that opens at `start` closes.

    Raises:
        DeclarationError: it does not.
    """
    depth = 0
    for i in range(start, len(text)):
        depth += (text[i] in "([") - (text[i] in ")]")
        if depth == 0:
            return i
    raise DeclarationError(f"{text!r} does not close the bracket at {start}; close it")


def split(text: str) -> list[str]:
    """Split at the commas outside of brackets."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "([") - (c in ")]")
        if c == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    last = text[start:].strip()
    return [*parts, last] if last else parts
