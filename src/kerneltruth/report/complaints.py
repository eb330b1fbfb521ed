"""What went wrong, as the lines that a user sees on standard error and an exit code."""

from __future__ import annotations

import errno
import sys
import traceback
from typing import Any

from kerneltruth.errors import (
    EnvironmentFault,
    InternalError,
    Interrupted,
    KernelTruthError,
    UserError,
)

# What the system says when the machine, and neither the user nor we, is at fault.
_MACHINE_ERRORS = (
    *(errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS),
    *(errno.ENOMEM, errno.EAGAIN, errno.EMFILE, errno.ENFILE),
)
# And where a path that the user gave leads nowhere.
_PATH_ERRORS = (errno.ENAMETOOLONG, errno.EACCES, errno.ELOOP)
_LONGEST_NAME = 80


def complain(error: BaseException) -> int:
    """Say what the error means to a user; returns the exit code.

    One line where someone can act on it, a traceback only for our own bugs.
    """
    if isinstance(error, UserError | EnvironmentFault | Interrupted):
        return _line(str(error), error.exit_code)
    if isinstance(error, KeyboardInterrupt):
        return _line("interrupted", Interrupted.exit_code)
    if isinstance(error, MemoryError):
        return _line("out of memory; try fewer --workers", EnvironmentFault.exit_code)
    if isinstance(error, BrokenPipeError):
        from kerneltruth.report.terminal import drop_output

        # The reader of our pipe has gone, as with `| head`: not an error of anyone's.
        drop_output()
        return 0
    if isinstance(error, OSError) and error.errno in _PATH_ERRORS and error.filename:
        name = ascii(error.filename)[1:-1]
        short = name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}..."
        return _line(f"cannot use {short!r}: {error.strerror}; name another", UserError.exit_code)
    if isinstance(error, OSError) and error.errno in _MACHINE_ERRORS:
        where = f": {error.filename}" if error.filename else ""
        return _line(f"{error.strerror}{where}", EnvironmentFault.exit_code)
    # Usage errors are click's, which typer imports or carries within itself, by version.
    return _misused(error) if hasattr(error, "format_message") else _our_bug(error)


def _misused(error: Any) -> int:
    message = error.format_message()
    if message.startswith("Usage:"):
        sys.stdout.write(f"{message}\n")
        return UserError.exit_code
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "kerneltruth"
    return _line(f"{message.rstrip('.')}; see `{path} --help`", UserError.exit_code)


def _line(text: str, code: int) -> int:
    sys.stderr.write(f"kerneltruth: {' '.join(text.split())}\n")
    return code


def _our_bug(error: BaseException) -> int:
    traceback.print_exception(error, file=sys.stderr)
    kind = "internal error" if isinstance(error, KernelTruthError) else "bug"
    sys.stderr.write(
        f"kerneltruth: this is our {kind}, not yours; please report it with the lines above, "
        "the command and `kerneltruth doctor --json` on the project's issue page\n"
    )
    return InternalError.exit_code
