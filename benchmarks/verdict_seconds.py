"""Where the seconds of a verdict go: published answers judged, with every wait counted.

    python benchmarks/verdict_seconds.py ANSWERS [--suite kernelbenchx] [--draw N] [--workers N]

ANSWERS is a file or folder of published predictions, which stay outside of this repository. Some
of its distinct answers are drawn at random and judged as `run --stage exe` does, in a compile cache
of their own. Each judge counts what it waits for and what it computes, by purpose: the cases,
PyTorch's own function before a conviction, probes of a wrong result, calls of right cases once
more, and the explanation. A call that adds to the candidate's compile cache has compiled.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import machine
import torch

from kerneltruth.documents.lines import Labels
from kerneltruth.engine import evaluator as evaluators
from kerneltruth.engine.evaluator import EvaluationRequest, Evaluator
from kerneltruth.engine.requests import CASES
from kerneltruth.engine.scheduling.local_pool import LocalPool
from kerneltruth.engine.scheduling.scheduler import Done
from kerneltruth.engine.submissions import EFFORT
from kerneltruth.errors import UserError
from kerneltruth.oracle import candidate_session, case_loop, expectation
from kerneltruth.oracle.bounds import Policy
from kerneltruth.oracle.plan import Plan
from kerneltruth.runner.host import Runner
from kerneltruth.runner.session import Session
from kerneltruth.suites.entries import candidate_of, match_tasks
from kerneltruth.suites.reading import read_submissions
from kerneltruth.suites.submission import Broken
from kerneltruth.tasks.registry import accepted_by

Key = tuple[str, str]


@dataclass
class Account:
    """Seconds by purpose and activity; what an activity contains is not counted for it."""

    seconds: Counter[Key] = field(default_factory=Counter)
    counts: Counter[Key] = field(default_factory=Counter)
    purposes: list[str] = field(default_factory=lambda: ["cases"])
    inner: list[float] = field(default_factory=list)

    @contextmanager
    def spending(self, name: Callable[[], str] | str) -> Iterator[None]:
        """Count the body under this activity, or the one that is known after it."""
        start = time.perf_counter()
        self.inner.append(0.0)
        try:
            yield
        finally:
            spent = time.perf_counter() - start
            key = self.purposes[-1], name if isinstance(name, str) else name()
            self.seconds[key] += spent - self.inner.pop()
            self.counts[key] += 1
            if self.inner:
                self.inner[-1] += spent

    @contextmanager
    def doing(self, purpose: str) -> Iterator[None]:
        """Count the body under this purpose."""
        self.purposes.append(purpose)
        try:
            with self.spending("the judge's own"):
                yield
        finally:
            self.purposes.pop()


ACCOUNT = Account()


def counted(owner: Any, name: str, activity: str) -> None:
    """Count the calls of a function under an activity."""
    function = getattr(owner, name)

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        with ACCOUNT.spending(activity):
            return function(*args, **kwargs)

    setattr(owner, name, wrapped)


def purposed(owner: Any, name: str, purpose: str) -> None:
    """Count what a function does under a purpose."""
    function = getattr(owner, name)

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        with ACCOUNT.doing(purpose):
            found = function(*args, **kwargs)
            return iter(list(found)) if name == "_call_again" else found

    setattr(owner, name, wrapped)


def count_calls() -> None:
    """Count calls of candidates, those that compile apart."""
    call = Session.call

    def wrapped(self: Session, *args: Any, **kwargs: Any) -> Any:
        root = self._runner._cache_root
        folder = None if root is None else root / self.candidate.sha256 / "triton"
        before = entries(folder)
        with ACCOUNT.spending(
            lambda: "calls that compile" if entries(folder) > before else "other calls"
        ):
            return call(self, *args, **kwargs)

    Session.call = wrapped  # type: ignore[method-assign]


def entries(folder: Path | None) -> int:
    return len(os.listdir(folder)) if folder is not None and folder.is_dir() else 0


def count_all() -> None:
    counted(Runner, "fork", "starts of a process")
    counted(Session, "_await_load", "contexts and loads")
    count_calls()
    counted(expectation, "expect", "references and bounds")
    counted(candidate_session, "rule", "rulings")
    counted(candidate_session, "thresholds", "numbers of the source")
    counted(case_loop, "deal", "choice of cases")
    purposed(case_loop, "probe", "probes")
    purposed(case_loop.CaseLoop, "_call_again", "once more")
    purposed(candidate_session.CandidateSession, "objection", "PyTorch's own function")
    purposed(evaluators, "diagnose", "explanation")


def jobs(options: Any) -> list[EvaluationRequest]:
    """Distinct answers at random, those of one task beside one another."""
    found: dict[Any, Any] = {}
    for entry in match_tasks(
        read_submissions(options.answers), accepted_by(options.suite), Labels()
    ):
        if not isinstance(entry, Broken):
            found.setdefault(entry.identity, entry)
    drawn = list(found.values())
    if options.draw < len(drawn):
        drawn = random.Random(options.seed).sample(drawn, options.draw)
    plan = Plan(seed=options.seed, cases=CASES, promises=True)
    made = []
    for entry in sorted(drawn, key=lambda e: e.task.key):
        try:
            candidate = candidate_of(entry)
        except UserError:
            continue
        made.append(
            EvaluationRequest(
                name=entry.key,
                task=entry.task.key,
                candidate=candidate,
                plan=plan,
                effort=EFFORT,
            )
        )
    return made


def judge(
    wanted: list[EvaluationRequest], device: str, workers: int, cache: Path
) -> tuple[list[str], float, Account]:
    """Words of all verdicts, the seconds from the first job to the last, and what they were for."""
    torch.set_num_threads(1)
    runner = Runner(device=device, targets=(), cache_root=cache)
    evaluator = Evaluator(policy=Policy(), device=device, runner=runner)

    def evaluate(job: EvaluationRequest, report: Callable[[int], None]) -> tuple[str, Account]:
        ACCOUNT.seconds.clear()
        ACCOUNT.counts.clear()
        with ACCOUNT.spending("the judge's own"):
            evaluation = evaluator.evaluate(job, report)
        return evaluation.attempt.verdict.word, ACCOUNT

    total, words = Account(), []
    try:
        evaluator.start()
        evaluator.warm()
        start = time.perf_counter()
        for event in LocalPool(work=evaluate, workers=workers).run(wanted):
            if isinstance(event, Done):
                words.append(event.result[0])
                total.seconds += event.result[1].seconds
                total.counts += event.result[1].counts
        seconds = time.perf_counter() - start
    finally:
        evaluator.close()
    return words, seconds, total


def report(words: list[str], seconds: float, account: Account, workers: int) -> list[str]:
    spent = account.seconds.total()
    rows = [
        (purpose, activity, account.counts[purpose, activity], round(s, 1), f"{s / spent:.1%}")
        for (purpose, activity), s in account.seconds.most_common()
        if s >= 0.001 * spent
    ]
    by_word = ", ".join(f"{name} {count}" for name, count in Counter(words).most_common())
    rate = 3600 * len(words) / seconds
    return [
        f"{len(words)} answers in {seconds:.1f} s by {workers} judges: {rate:,.0f} an hour, "
        f"{spent / len(words):.2f} s of a judge for each ({by_word}); "
        f"judges are busy for {spent / (workers * seconds):.0%} of the time.",
        "",
        *machine.table(("for", "what", "times", "seconds of judges", "share"), rows),
    ]


def main() -> int:
    parser = machine.parser(__doc__.splitlines()[0])
    parser.add_argument("answers", type=Path)
    parser.add_argument("--suite", default="kernelbenchx")
    parser.add_argument("--seed", type=int, default=20261122)
    parser.add_argument("--draw", type=int, default=400)
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--name", default="verdict_seconds")
    options = parser.parse_args()
    device = machine.device_of(options)
    count_all()
    with tempfile.TemporaryDirectory() as folder:
        found = judge(jobs(options), device, options.workers, Path(folder))
    machine.publish(
        options.name,
        "Where the seconds of a verdict go",
        machine.facts(device),
        report(*found, options.workers),
        folder=options.results,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
