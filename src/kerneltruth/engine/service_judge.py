"""What a judge of a service does with a request; this imports torch."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from pathlib import Path

from kerneltruth.clock.device.lock import device_for_checks
from kerneltruth.documents.model import content_hash
from kerneltruth.documents.records import Attempt, CandidateRef
from kerneltruth.documents.timing import TimeDocument
from kerneltruth.documents.verdict import CompileError, Infra, Verdict
from kerneltruth.engine.devices import cuda_devices
from kerneltruth.engine.evaluator import Evaluator
from kerneltruth.engine.one_file import check_document, judge
from kerneltruth.engine.policy import choose_policy
from kerneltruth.engine.requests import (
    CheckRequest,
    Judged,
    NumberedRequest,
    Step,
    TimeRequest,
    result_of,
)
from kerneltruth.errors import CandidateError, EnvironmentFault
from kerneltruth.oracle.bounds import Policy
from kerneltruth.runner.host import Runner
from kerneltruth.suites.catalog import is_at_hand, opened
from kerneltruth.tasks.registry import find, opened_tasks

# What tasks are made of.
READ = (".py", ".json", ".jsonl", ".yml", ".yaml")


class ServiceJudge:
    """Judges and times in a process of its own; what is warm before the fork is shared."""

    def __init__(
        self,
        runner: Runner,
        judges: int,
        *,
        judge: Callable[..., Generator[Step, None, Judged]] = judge,
    ) -> None:
        """Answer nothing yet.

        Args:
            runner: of the device.
            judges: how many share the machine's memory.
            judge: called as `one_file.judge`.
        """
        self._runner = runner
        self._judge = judge
        self._evaluators: dict[tuple[Policy, str], Evaluator] = {}
        self._suite = OpenSuite(runner, judges)

    def __call__(
        self, job: NumberedRequest, tell: Callable[[object], None]
    ) -> Judged | TimeDocument:
        """Return the answer.

        Raises:
            UserError: an option is wrong.
            EnvironmentFault: this machine cannot do it.
        """
        del tell
        request = job.request
        if isinstance(request, TimeRequest):
            from kerneltruth.engine.benchmark.timed_file import time_file

            return result_of(time_file(request, self._runner, time.monotonic()))
        judged = self._judged(request)
        if judged.document.verdict == "infra":
            _require_present(self._runner.device)
            # As `run` does: what ended by chance, such as a killed process, goes well again.
            judged = judged if request.keep else self._judged(request)
        return judged

    def _judged(self, options: CheckRequest) -> Judged:
        start, device = time.monotonic(), self._runner.device
        try:
            # A GPU is left to what is timed on it.
            with contextlib.nullcontext() if device == "cpu" else device_for_checks(device):
                options = replace(options, suite=self._suite.open(options.suite))
                evaluator = self._evaluator(options)
                return result_of(self._judge(options, evaluator, start))
        except CandidateError as error:
            return not_judged(options, CompileError(detail=str(error)))
        except MemoryError as error:
            return not_judged(options, Infra(reason=f"the judge ran out of memory: {error}"))

    def _evaluator(self, options: CheckRequest) -> Evaluator:
        policy = choose_policy(options.bounds, tf32=options.tf32)
        about = (policy, self._suite.stamp)
        if about not in self._evaluators:
            # What is expected of an earlier state of a user's files must not be used again.
            kept = {k: v for k, v in self._evaluators.items() if not k[1]}
            made = Evaluator(policy=policy, runner=self._runner)
            self._evaluators = kept | {about: made}
        return self._evaluators[about]


class OpenSuite:
    """At most one suite of the user's own, which stays open between questions.

    Attributes:
        stamp: of the files of the open suite; empty where none is open.
    """

    def __init__(self, runner: Runner, judges: int) -> None:
        """Open nothing yet; arguments as in `suites.catalog.opened`."""
        self._runner = runner
        self._judges = judges
        self._stack = contextlib.ExitStack()
        self._name: str | None = None
        self.stamp = ""

    def open(self, suite: str | None) -> str | None:
        """Return the name of the suite that an option means, opened if it is not at hand.

        Raises:
            UserError: there is no such suite at the path.
        """
        stamp = _stamp(suite) if suite is not None and not is_at_hand(suite) else ""
        if stamp != self.stamp:
            self._stack.close()
            self.stamp, self._name = "", None
        if suite is None or not stamp:
            return suite
        if not self.stamp:
            entered = opened(suite, self._runner, judges=self._judges)
            self._name = self._stack.enter_context(entered)
            self.stamp = stamp
        return self._name


def _stamp(suite: str) -> str:
    """Return a hash of a suite's name and of the state of its files."""
    path = Path(suite.partition(":")[2])
    return content_hash([suite, [[str(p), *_state(p)] for p in sorted(_files(path))]])


def _files(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        yield path
        return
    for folder, _, names in os.walk(path):
        yield from (Path(folder, name) for name in names if name.endswith(READ))


def _state(path: Path) -> tuple[int, int]:
    with contextlib.suppress(OSError):
        found = path.stat()
        return found.st_mtime_ns, found.st_size
    return 0, 0


def _require_present(device: str) -> None:
    """Raise if the device is there no longer, so that no further candidate is tried on it.

    Raises:
        EnvironmentFault: it is gone.
    """
    if device == "cpu":
        return
    present = cuda_devices()
    if int(device.removeprefix("cuda:")) >= present:
        raise EnvironmentFault(
            f"device {device} is gone: this machine shows {present} CUDA devices now; make a new "
            "Judge on another device"
        )


def not_judged(options: CheckRequest, verdict: Verdict) -> Judged:
    """Return the result of a candidate that no case could be put to."""
    ref = CandidateRef(sha256="", path=str(options.file), language="unknown", entry="")
    attempt = Attempt(
        task=_known_task(options),
        candidate=ref,
        verdict=verdict,
        contract=options.contract,
        cases=0,
        failed=0,
        explanation=verdict.detail if isinstance(verdict, CompileError) else "",
        score=0.0,
    )
    return Judged(document=check_document(options, attempt, finding=None, run=None, seconds=0.0))


def _known_task(options: CheckRequest) -> str:
    """Return the task of a request: the one that it names, or the only one of its suite."""
    if options.task is not None:
        return find(options.task, options.suite).key
    known = opened_tasks(options.suite) or ()
    return next(iter(known)) if len(known) == 1 else ""
