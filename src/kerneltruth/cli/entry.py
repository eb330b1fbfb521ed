"""Entry point: runs one command, answers Ctrl-C, turns errors into exit codes."""

from __future__ import annotations

import math
import os
import signal
import sys
import time
from collections.abc import Sequence
from types import FrameType

import typer

# Each adds its commands to the application, in the order in which `--help` lists them.
# isort: off
import kerneltruth.cli.audit
import kerneltruth.cli.check
import kerneltruth.cli.run
import kerneltruth.cli.time
import kerneltruth.cli.findings
import kerneltruth.cli.tasks
import kerneltruth.cli.doctor
import kerneltruth.cli.generate
import kerneltruth.cli.analyze
import kerneltruth.cli.report  # noqa: F401

# isort: on
from kerneltruth.cli.application import app
from kerneltruth.errors import Interrupted, KernelTruthError

CLEANING_UP_S = 3.0


def invoke(arguments: Sequence[str]) -> int:
    """Run one command; returns its exit code, and never raises for what a user may do."""
    try:
        # Without standalone mode, what a command raises reaches us, and Exit comes as its code.
        code = app(list(arguments), prog_name="kerneltruth", standalone_mode=False)
        if code == Interrupted.exit_code:
            # typer's word for a KeyboardInterrupt that no command has answered.
            code = _complain(KeyboardInterrupt())
    except typer.Exit as leave:
        code = leave.exit_code
    except (Exception, KeyboardInterrupt) as error:
        code = _complain(KeyboardInterrupt() if _INTERRUPTS.made(error) else error)
    return code if isinstance(code, int) else 0


def _complain(error: BaseException) -> int:
    from kerneltruth.report.complaints import complain

    return complain(error)


class _Interrupts:
    """Answers Ctrl-C: one interrupt at a time, so that a second cannot cut short the cleaning up.

    After a while another one counts again: the first may have struck where Python drops exceptions.
    """

    def __init__(self) -> None:
        self._last = -math.inf

    def __call__(self, signum: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if now - self._last > CLEANING_UP_S:
            self._last = now
            raise KeyboardInterrupt

    def made(self, error: BaseException) -> bool:
        """Whether an error is what became of an interrupt.

        Libraries that were being imported drop it, or turn it into errors of theirs.
        """
        ours = isinstance(error, KernelTruthError | KeyboardInterrupt | OSError)
        return not ours and self._last > -math.inf


_INTERRUPTS = _Interrupts()


def main() -> None:
    """Entry point of the `kerneltruth` command."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _INTERRUPTS)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            # Closed by the caller (`>&-`): what we would say goes nowhere.
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
        else:
            # A file's name may hold what the terminal's encoding has no letters for.
            stream.reconfigure(errors="backslashreplace")
    code = invoke(sys.argv[1:])
    # All is said and ended; Python's own end must not be taken for an interrupted command.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Else Python ends itself by that signal where the interrupt passed through an `exec` of text.
    exec("")
    sys.exit(code)
