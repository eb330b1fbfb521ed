"""What the interpreter says instead of a wrong answer."""

from __future__ import annotations


class UnsupportedHere(Exception):
    """A kernel needs what Triton's interpreter cannot do faithfully.

    Never the kernel's fault: whoever runs the kernel reports `unsupported_here`.
    """
