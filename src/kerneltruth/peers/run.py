"""Run the peers' checks on one candidate and return what each concludes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from kerneltruth.documents.lines import DtypeVerdict, PeerVerdict
from kerneltruth.peers.answers import Answer, NoAnswer
from kerneltruth.peers.draws import CannotRun, Draw, DrawCache, Setting
from kerneltruth.peers.protocols import CHECKS, Check
from kerneltruth.tasks.spec import Task

Says = Literal["pass", "fail", "error"]
Execute = Callable[[Draw], Answer]

# Otherwise a kernel that never ends would wait for the deadline in every check and dtype.
MAX_TIMEOUTS = 2


def run_check(
    check: Check,
    task: Task,
    dtype: str,
    seed: int,
    execute: Execute,
    *,
    cache: DrawCache | None = None,
) -> DtypeVerdict:
    """Run one check in one dtype.

    All draws derive from the seed; other candidates of the task may share the cache.
    """
    setting = Setting(task=task, dtype=dtype, seed=seed, cache=cache or DrawCache())
    protocol = check.protocol(setting)
    runs = 0
    try:
        draw = next(protocol)
        while True:
            runs += 1
            draw = protocol.send(execute(draw))
    except StopIteration as end:
        return DtypeVerdict(verdict="fail" if end.value else "pass", why=end.value, runs=runs)
    except CannotRun as reason:
        return DtypeVerdict(verdict="error", why=str(reason), runs=runs)


def run_all(
    task: Task,
    execute: Execute,
    seed: int,
    *,
    checks: Sequence[Check] = CHECKS,
    dtypes: Sequence[str] | None = None,
    cache: DrawCache | None = None,
) -> dict[str, PeerVerdict]:
    """Run the checks on one candidate; a draw that several checks share is executed once.

    After two timeouts the candidate is not run again: every further draw gets that answer.
    """
    answers: dict[str, Answer] = {}
    shared = cache or DrawCache()

    timeouts: list[NoAnswer] = []

    def once(draw: Draw) -> Answer:
        if draw.key not in answers:
            if len(timeouts) >= MAX_TIMEOUTS:
                return timeouts[-1]
            answers[draw.key] = found = execute(draw)
            if isinstance(found, NoAnswer) and found.ended == "timeout":
                timeouts.append(found)
        return answers[draw.key]

    results: dict[str, PeerVerdict] = {}
    for check in checks:
        wanted = [d for d in check.dtypes_for(task) if dtypes is None or d in dtypes]
        by_dtype: dict[str, DtypeVerdict] = {}
        for dtype in wanted:
            by_dtype[dtype] = run_check(check, task, dtype, seed, once, cache=shared)
            decided = "fail" if check.every else "pass"
            if by_dtype[dtype].verdict == decided:
                break
        results[check.name] = _concluded(check, task, by_dtype)
    return results


def _concluded(check: Check, task: Task, by_dtype: dict[str, DtypeVerdict]) -> PeerVerdict:
    verdicts = [found.verdict for found in by_dtype.values()]
    order: tuple[Says, ...] = (
        ("fail", "error", "pass") if check.every else ("pass", "fail", "error")
    )
    verdict: Says = next((v for v in order if v in verdicts), "error")
    why = next((o.why for o in by_dtype.values() if o.verdict == verdict), None)
    if not by_dtype:
        known = ", ".join(check.supported_dtypes(task)) or "no dtype of it"
        why = f"it supports {known}, and {task.name} is tried in {', '.join(task.dtypes)}"
    return PeerVerdict(name=check.name, verdict=verdict, why=why, by_dtype=by_dtype)
