"""How long a call takes, by the judge's own clock: the slope over a number of calls in a row.

A candidate's clock is its own claim, so the judge times whole exchanges of one call and of many;
their difference is the work alone. This is one shape and no interval: it ranks nothing.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

from kerneltruth.cases.case import Case
from kerneltruth.cases.materialize import benchmark_case, materialize
from kerneltruth.errors import InternalError
from kerneltruth.oracle.arguments import lay_out, poison_of
from kerneltruth.runner.candidate import Candidate
from kerneltruth.runner.host import Runner, Session
from kerneltruth.tasks.spec import Task

MOST_ELEMENTS = 2**24
# A stretch of calls this long stands out from the exchange around it.
STRETCH_S = 0.05
MOST_REPEATS = 4096
SLOPES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """Seconds of one call of the candidate, and of eager PyTorch where there is such a function."""

    case: str
    candidate_s: float
    eager_s: float | None

    def document(self) -> dict[str, Any]:
        """The perf stage of a result line."""
        ratio = None if self.eager_s is None else self.eager_s / self.candidate_s
        return {
            "outcome": "timed",
            "case": self.case,
            "candidate_us": self.candidate_s * 1e6,
            "eager_us": None if self.eager_s is None else self.eager_s * 1e6,
            "times_eager": ratio,
        }


class NotTimedError(Exception):
    """A call failed while it was timed."""


def timed_case(task: Task) -> Case:
    """The largest shape to be timed whose inputs are still quick to make."""
    base = benchmark_case(task, 0, task.dtypes[0])
    settings = base.settings
    chosen = base
    for shape in task.perf:
        # A task without dims names its shapes by an attribute.
        forms = settings | {n: v for n, v in shape.items() if n in settings}
        fits = _elements(task, shape, forms) <= MOST_ELEMENTS
        if fits and task.allows(shape, forms, to_time=True):
            chosen = replace(
                base,
                dims=tuple((d.symbol, shape[d.symbol]) for d in task.dims),
                attributes=tuple(forms.items()),
            )
    return chosen


def _elements(task: Task, dims: Any, settings: Any) -> int:
    total = 0
    for spec in task.tensors:
        count = 1
        for size in task.shape(spec, dims, settings):
            count *= size
        total += count
    return total


def time_against_eager(
    task: Task, session: Session, eager: Candidate | None, runner: Runner, *, deadline_s: float
) -> Timed:
    """Time a candidate in its warm child, and eager PyTorch in one of its own.

    Raises:
        NotTimedError: a call did not return.
    """
    case = timed_case(task)
    inputs = materialize(task, case)
    arguments = lay_out(task, case, inputs).arguments

    def calls_of(of: Session) -> Callable[[int], float]:
        def exchange(repeats: int) -> float:
            began = time.perf_counter()
            seen = of.call(
                arguments, poison=poison_of(case, 0), repeats=repeats, deadline_s=deadline_s
            )
            taken = time.perf_counter() - began
            if seen.ended != "returned":
                raise NotTimedError(f"{seen.ended}: {seen.message or ''}"[:300])
            return taken

        return exchange

    with one_at_a_time(runner.device):
        candidate_s = seconds_per_call(calls_of(session))
        eager_s = None
        if eager is not None:
            with runner.open(eager) as other:
                eager_s = seconds_per_call(calls_of(other))
    return Timed(case=case.summary(), candidate_s=candidate_s, eager_s=eager_s)


def seconds_per_call(exchange: Callable[[int], float]) -> float:
    """The slope of the time of an exchange over the calls in it.

    Args:
        exchange: makes so many calls in a row and gives the seconds that it took in all.
    """
    for _ in range(2):
        exchange(1)
    single = min(exchange(1) for _ in range(3))
    repeats = 4
    while (stretch := exchange(repeats) - single) < STRETCH_S and repeats < MOST_REPEATS:
        grow = STRETCH_S / max(stretch, STRETCH_S / 64)
        repeats = min(MOST_REPEATS, max(2 * repeats, int(repeats * grow)))
    slopes = [(exchange(repeats) - exchange(1)) / (repeats - 1) for _ in range(SLOPES)]
    found = median(slopes)
    if found <= 0:
        raise NotTimedError("the calls are too short to be told from the exchange around them")
    return found


@contextlib.contextmanager
def one_at_a_time(device: str) -> Iterator[None]:
    """One timed job per GPU of this machine, whoever runs it; others go on beside it."""
    if device == "cpu":
        raise InternalError("interpreted kernels are not timed")
    # Where several GPUs are dealt out, each process sees its own as the first.
    visible = re.sub(r"\W+", "-", f"{os.environ.get('CUDA_VISIBLE_DEVICES', '')}-{device}")
    path = Path(tempfile.gettempdir()) / f"kerneltruth-timing-{os.getuid()}-{visible}.lock"
    with path.open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
