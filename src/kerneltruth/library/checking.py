"""`check` and `assert_correct`: one candidate, judged by a server that the process shares."""

from __future__ import annotations

import os
import threading
from typing import Unpack

from kerneltruth.errors import EnvironmentFault
from kerneltruth.library.candidates import Judgeable
from kerneltruth.library.judge import Judge
from kerneltruth.library.options import CheckOptions
from kerneltruth.library.report import Report

# By process and device: a forked child makes its own.
_shared: dict[tuple[int, str], Judge] = {}
_locks: dict[int, threading.Lock] = {}


class KernelIncorrect(AssertionError):
    """A kernel does not hold what its contract asks.

    Attributes:
        report: of the judged kernel.

    Examples:
        >>> try:
        ...     kt.assert_correct(clipped, task="relu", device="cpu")
        ... except kt.KernelIncorrect as error:
        ...     error.report.kind
        'value'
    """

    # As pytest and tracebacks show it.
    __module__ = "kerneltruth"

    def __init__(self, report: Report) -> None:
        super().__init__(str(report))
        self.report = report


def check(candidate: Judgeable, *, device: str = "auto", **options: Unpack[CheckOptions]) -> Report:
    """Judge one kernel and wait for its report.

    The first call starts a server, which stays warm until the process ends.

    Args:
        candidate: a path, a source text, a function, a (name, source) pair, or a `NamedCandidate`.
        device: `auto` (the first GPU, else the CPU), `cpu` or `cuda:N`.
        **options: see `CheckOptions`.

    Raises:
        UserError: no such task, a file that cannot be read, or a wrong option.
        EnvironmentFault: the machine cannot do it.

    Examples:
        >>> report = kt.check(relu, task="relu", device="cpu", cases=8)
        >>> report.passed, report.verdict, report.cases
        (True, 'pass', 8)
    """
    return _shared_judge(str(device)).check(candidate, **options)


def assert_correct(
    candidate: Judgeable, *, device: str = "auto", **options: Unpack[CheckOptions]
) -> Report:
    """Judge one kernel, for tests: raise unless it holds all that its contract asks.

    Args:
        candidate: as for `check`.
        device: as for `check`.
        **options: see `CheckOptions`.

    Raises:
        KernelIncorrect: it does not; an AssertionError with the finding in a few lines.
        EnvironmentFault: no judgement was possible here.
        UserError: no such task, a file that cannot be read, or a wrong option.

    Examples:
        >>> kt.assert_correct(clipped, task="relu", device="cpu", seed=1)
        Traceback (most recent call last):
            ...
        kerneltruth.KernelIncorrect: <source>: fail (value) for relu, torch-only
          ...
          smallest: M=1 N=1 float32 zeros
          ...
    """
    __tracebackhide__ = True
    return require_correct(check(candidate, device=device, **options))


def require_correct(report: Report) -> Report:
    """Return the report of a right kernel; raises as `assert_correct` does."""
    __tracebackhide__ = True
    if not report.judged:
        raise EnvironmentFault(f"{report.name}: {report.verdict}: {report.detail}")
    if not report.passed:
        raise KernelIncorrect(report)
    return report


def _shared_judge(device: str) -> Judge:
    """Return this process's judge of a device; a dead server is replaced."""
    pid = os.getpid()
    # A lock of another process may have been held while it forked.
    with _locks.setdefault(pid, threading.Lock()):
        judge = _shared.get((pid, device))
        if judge is None or not judge.usable:
            judge = _shared[pid, device] = Judge(device=device)
        return judge
