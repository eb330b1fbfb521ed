"""The error that the child raises instead of returning a wrong answer."""

from __future__ import annotations

# How its message begins where the device has too little memory left for a call.
MEMORY_LACKS = "too little memory of the device is free"


class UnsupportedError(Exception):
    """This machine, or Triton's interpreter, cannot do faithfully what a kernel needs.

    Never the kernel's fault: the judge reports `unsupported_here`.
    """
