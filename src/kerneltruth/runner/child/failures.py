"""Classify an exception in the child: the kernel, the compiler, or this machine is at fault."""

from __future__ import annotations

import os
import re

from kerneltruth.runner.observation import Observation
from kerneltruth.runner.unsupported import UnsupportedError

_MESSAGE = 2000
_LONGEST = 6000
_COMPILE_ERRORS = {"CompilationError", "OutOfResources", "PTXASError", "MLIRCompilationError"}
_COMPILE_WORDS = ("Error building extension", "ptxas fatal", "error: unsupported")

# Triton's compiler: a place, source lines with a caret below the last, then what is wrong.
_PLACED = re.compile(r"(\bat \d+:\d+:)\n(.*\n *\^)\n([^\n]+)", re.S)

# The private folder; known before the candidate can leave it.
_FOLDER = ""


def keep_folder() -> None:
    """Remember the working folder as the private one, whose name no message may contain."""
    global _FOLDER
    _FOLDER = os.getcwd()


def failure(error: BaseException) -> Observation:
    """Return the observation that an exception ends in."""
    cause = _deepest(error)
    try:
        message = str(cause)
    except Exception:
        message = "<str() of the exception raised>"
    ended = "raised"
    if isinstance(cause, UnsupportedError):
        ended = "unsupported"
    elif {k.__name__ for k in type(cause).__mro__} & _COMPILE_ERRORS or any(
        words in message for words in _COMPILE_WORDS
    ):
        ended = "compile_failed"
    return Observation(
        ended=ended,
        error=type(cause).__name__.lstrip("_"),
        message=_without_folder(reason_first(message))[:_MESSAGE],
        dirty=_broke_device(cause, message),
    )


def reason_first(message: str) -> str:
    """Put what a compiler finds wrong into the message's first line, before the source."""
    return _PLACED.sub(r"\1 \3\n\2", message[:_LONGEST], count=1)


def _without_folder(text: str) -> str:
    """Return the same words in each child, although private folders differ."""
    return text.replace(f"{_FOLDER}{os.sep}", "") if _FOLDER else text


def _deepest(error: BaseException) -> BaseException:
    """Unwrap the interpreter's wrappers, whose cause is the kernel's own exception."""
    while type(error).__name__ == "InterpreterError" and error.__cause__ is not None:
        error = error.__cause__
    return error


def _broke_device(error: BaseException, message: str) -> bool:
    """Return whether a CUDA context may be broken for good."""
    named = any(k.__name__ == "AcceleratorError" for k in type(error).__mro__)
    return named or "CUDA error" in message or "CUDA driver error" in message
