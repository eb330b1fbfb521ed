"""Turn errors into the lines that a user sees on standard error, and an exit code."""

from __future__ import annotations

import errno
import sys
import traceback
from typing import Protocol, runtime_checkable

from kerneltruth.errors import (
    EnvironmentFault,
    InternalError,
    Interrupted,
    KernelTruthError,
    UserError,
)
from kerneltruth.report.harmless import harmless

# System errors for which the machine is at fault.
_MACHINE_ERRORS = (
    *(errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS),
    *(errno.ENOMEM, errno.EAGAIN, errno.EMFILE, errno.ENFILE),
)
# System errors for which a path from the user is at fault.
_PATH_ERRORS = (errno.ENAMETOOLONG, errno.EACCES, errno.ELOOP)
_LONGEST_NAME = 80


@runtime_checkable
class _UsageError(Protocol):
    def format_message(self) -> str: ...


def complain(error: BaseException) -> int:
    """Print what the error means to a user; return the exit code.

    Prints one line if someone can act on it, and a traceback only for our own bugs.
    """
    if isinstance(error, UserError | EnvironmentFault | Interrupted):
        return _line(str(error), error.exit_code)
    if isinstance(error, KeyboardInterrupt):
        return _line("interrupted", Interrupted.exit_code)
    if isinstance(error, MemoryError):
        return _line("out of memory; try fewer --workers", EnvironmentFault.exit_code)
    if isinstance(error, BrokenPipeError):
        from kerneltruth.report.terminal import drop_output

        # The reader of our pipe has gone, as with `| head`: no error.
        drop_output()
        return 0
    if isinstance(error, OSError) and error.errno in _PATH_ERRORS and error.filename:
        name = ascii(error.filename)[1:-1]
        short = name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}..."
        return _line(
            f"cannot use {short!r}: {error.strerror}; name another path", UserError.exit_code
        )
    if isinstance(error, OSError) and error.errno in _MACHINE_ERRORS:
        where = f": {error.filename}" if error.filename else ""
        return _line(f"{error.strerror}{where}", EnvironmentFault.exit_code)
    # Usage errors are click's; typer imports click or bundles it, depending on its version.
    return _misused(error) if isinstance(error, _UsageError) else _our_bug(error)


def _misused(error: _UsageError) -> int:
    message = error.format_message()
    if message.startswith("Usage:"):
        sys.stdout.write(f"{message}\n")
        return UserError.exit_code
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "kerneltruth"
    parameter = getattr(error, "param", None)
    source = context and parameter and context.get_parameter_source(parameter.name)
    if source and source.name == "DEFAULT_MAP":
        message = f"[tool.kerneltruth] of pyproject.toml: {message}"
    return _line(f"{message.rstrip('.')}{_given(error)}; see `{path} --help`", UserError.exit_code)


def _given(error: _UsageError) -> str:
    """Return words for the value at fault where typer, which asks pydantic, leaves it out."""
    listed = getattr(getattr(error, "__cause__", None), "errors", None)
    faults = listed() if callable(listed) else ()
    return "".join(f", got {fault['input']!r}" for fault in tuple(faults)[:1])


def _line(text: str, code: int) -> int:
    sys.stderr.write(harmless(f"kerneltruth: {' '.join(text.split())}\n"))
    return code


def _our_bug(error: BaseException) -> int:
    traceback.print_exception(error, file=sys.stderr)
    kind = "internal error" if isinstance(error, KernelTruthError) else "bug"
    sys.stderr.write(
        f"kerneltruth: this is our {kind}, not yours; please report it with the lines above, "
        "the command and `kerneltruth doctor --json` on the project's issue page\n"
    )
    return InternalError.exit_code
