"""Classify an exception in the child: the kernel, the compiler, or this machine is at fault.

A candidate's exception may be of any class: what its code says of itself is asked for in `_said`
alone, where it may fail.
"""

from __future__ import annotations

import os
import re
from collections.abc import Set

from kerneltruth.runner.observation import Observation
from kerneltruth.runner.unsupported import UnsupportedError

_MESSAGE = 2000
_LONGEST = 6000
_LONGEST_NAME = 200
# A chain of causes may have no end.
_MOST_CAUSES = 100
_COMPILE_ERRORS = {"CompilationError", "OutOfResources", "PTXASError", "MLIRCompilationError"}
_COMPILE_WORDS = ("Error building extension", "ptxas fatal", "error: unsupported")

# Triton's compiler: a place, source lines with a caret below the last, then what is wrong.
_PLACED = re.compile(r"(\bat \d+:\d+:)\n(.*\n *\^)\n([^\n]+)", re.S)

_mro, _name = (type.__dict__[n].__get__ for n in ("__mro__", "__name__"))
_cause = BaseException.__dict__["__cause__"].__get__

# The private folder; known before the candidate can leave it.
_FOLDER = ""


def keep_folder() -> None:
    """Remember the working folder as the private one, whose name no message may contain."""
    global _FOLDER
    _FOLDER = os.getcwd()


def failure(error: BaseException) -> Observation:
    """Return the observation that an exception ends in."""
    cause = _deepest(error)
    message, kinds = _said(cause), _mro(type(cause))
    names = {_name(kind) for kind in kinds}
    ended = "raised"
    if UnsupportedError in kinds:
        ended = "unsupported"
    elif names & _COMPILE_ERRORS or any(words in message for words in _COMPILE_WORDS):
        ended = "compile_failed"
    return Observation(
        ended=ended,
        error=_name(type(cause)).lstrip("_")[:_LONGEST_NAME],
        message=_without_folder(reason_first(message))[:_MESSAGE],
        dirty=_broke_device(names, message),
    )


def _said(error: BaseException) -> str:
    """Return an exception's text, as a str without methods of its own."""
    try:
        return str.__str__(str(error))
    except BaseException:
        return "<str() of the exception raised>"


def reason_first(message: str) -> str:
    """Put what a compiler finds wrong into the message's first line, before the source."""
    return _PLACED.sub(r"\1 \3\n\2", message[:_LONGEST], count=1)


def _without_folder(text: str) -> str:
    """Return the same words in each child, although private folders differ."""
    return text.replace(f"{_FOLDER}{os.sep}", "") if _FOLDER else text


def _deepest(error: BaseException) -> BaseException:
    """Unwrap the interpreter's wrappers, whose cause is the kernel's own exception."""
    for _ in range(_MOST_CAUSES):
        cause = _cause(error)
        if cause is None or _name(type(error)) != "InterpreterError":
            break
        error = cause
    return error


def _broke_device(names: Set[str], message: str) -> bool:
    """Return whether a CUDA context may be broken for good."""
    said = "CUDA error" in message or "CUDA driver error" in message
    return said or "AcceleratorError" in names
