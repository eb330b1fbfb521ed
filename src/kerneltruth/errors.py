"""The error tree.

    KernelTruthError
    ├── UserError          the user must act: one line, exit code 2, no traceback
    │   ├── CandidateError the source is no candidate: no Python, or without an entry
    │   └── DeclarationError  a task is declared wrongly
    ├── EnvironmentFault   the machine cannot do it: exit code 3
    ├── Interrupted        Ctrl-C: exit code 130, what was judged is kept
    └── InternalError      our bug: exit code 4, traceback, where to report it

What a candidate does wrong when it is called is never an exception: it is a verdict.
"""

from __future__ import annotations

# How PyTorch, CUDA and its libraries call it.
OUT_OF_MEMORY = ("OutOfMemoryError", "out of memory", "OUT_OF_MEMORY", "ALLOC_FAILED")


def lacks_memory(said: str) -> bool:
    """Whether an error says that the device had no memory."""
    return any(words in said for words in OUT_OF_MEMORY)


class KernelTruthError(Exception):
    """Root of everything that kerneltruth raises on purpose.

    Attributes:
        exit_code: of a command that ends with it.

    Examples:
        >>> issubclass(kt.UserError, kt.KernelTruthError), kt.UserError.exit_code
        (True, 2)
    """

    exit_code = 4


class UserError(KernelTruthError):
    """A mistake of the user; the message names the value, the rule and the next step.

    Examples:
        >>> kt.check(relu, task="rleu", device="cpu")
        Traceback (most recent call last):
            ...
        kerneltruth.errors.UserError: unknown task 'rleu'; ...
    """

    exit_code = 2


class CandidateError(UserError):
    """A source that is no candidate for its task; where many are judged, it has a verdict."""


class DeclarationError(UserError):
    """A task's declaration breaks a rule; in a suite of this package that is our mistake.

    Examples:
        >>> kt.Dim(symbol="N", role="wide")
        Traceback (most recent call last):
            ...
        kerneltruth.errors.DeclarationError: dim 'N': 'wide' is not a role; use one of batch, ...
    """


class EnvironmentFault(KernelTruthError):
    """The machine failed: no device, no memory, no space, a lost worker.

    Examples:
        >>> kt.check(relu, task="relu", device="cuda:99")
        Traceback (most recent call last):
            ...
        kerneltruth.errors.EnvironmentFault: device cuda:99: this machine shows ...
    """

    exit_code = 3


class ReferenceLost(EnvironmentFault):
    """The process of a reference was lost twice: it costs one attempt, and no run."""


class Interrupted(KernelTruthError):
    """The user stopped a run; the message says how to go on with it."""

    exit_code = 130


class InternalError(KernelTruthError):
    """A broken promise inside kerneltruth: please report it.

    Examples:
        >>> kt.InternalError.exit_code
        4
    """

    exit_code = 4
