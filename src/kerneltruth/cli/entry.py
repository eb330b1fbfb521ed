"""Run one command, handle Ctrl-C, and turn errors into exit codes."""

from __future__ import annotations

import math
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

import typer
from typer.core import TyperCommand

# Each module adds its commands to the application, in the order in which `--help` lists them.
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
import kerneltruth.cli.report
import kerneltruth.cli.baselines  # noqa: F401

# isort: on
from kerneltruth.cli.application import app
from kerneltruth.cli.settings import defaults, settings_of
from kerneltruth.errors import Interrupted, KernelTruthError

CLEANING_UP_S = 3.0


def invoke(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code; never raise for a user's mistake."""
    try:
        # Without standalone mode, a command's errors reach us, and Exit arrives as its code.
        code = app(
            list(arguments),
            prog_name="kerneltruth",
            standalone_mode=False,
            default_map=_defaults(Path.cwd()),
        )
        if code == Interrupted.exit_code:
            # typer raises this for a KeyboardInterrupt that no command handled.
            code = _complain(KeyboardInterrupt())
    except typer.Exit as leave:
        code = leave.exit_code
    except (Exception, KeyboardInterrupt) as error:
        code = _complain(KeyboardInterrupt() if _INTERRUPTS.made(error) else error)
    return code if isinstance(code, int) else 0


def _defaults(folder: Path) -> dict[str, dict[str, object]]:
    """Return what the project around a folder sets for each command's parameters."""
    found = settings_of(folder)
    if found is None:
        return {}
    commands: dict[str, TyperCommand] = vars(typer.main.get_command(app))["commands"]
    options = {
        name: {flag.removeprefix("--"): p.name for p in command.params for flag in p.opts}
        for name, command in commands.items()
    }
    return defaults(*found, options)


def _complain(error: BaseException) -> int:
    from kerneltruth.report.complaints import complain

    return complain(error)


class _Interrupts:
    """Handles Ctrl-C: one interrupt at a time, so that a second cannot cut short the clean-up.

    After a while another one counts again: Python may have dropped the first as an exception.
    """

    def __init__(self) -> None:
        self._last = -math.inf

    def __call__(self, signum: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if now - self._last > CLEANING_UP_S:
            self._last = now
            raise KeyboardInterrupt

    def made(self, error: BaseException) -> bool:
        """Return whether an error was caused by an interrupt.

        Libraries that were being imported may drop it or turn it into their own errors.
        """
        ours = isinstance(error, KernelTruthError | KeyboardInterrupt | OSError)
        return not ours and self._last > -math.inf


_INTERRUPTS = _Interrupts()


def main() -> None:
    """Run the `kerneltruth` command and exit."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _INTERRUPTS)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            # The caller closed the stream (`>&-`): messages go nowhere.
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
        else:
            # A file's name may hold characters that the terminal's encoding lacks.
            stream.reconfigure(errors="backslashreplace")
    code = invoke(sys.argv[1:])
    # The command is finished; an interrupt while Python exits must not look like an interrupted
    # command.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Otherwise Python kills itself with that signal if the interrupt passed through `exec`.
    exec("")
    sys.exit(code)
