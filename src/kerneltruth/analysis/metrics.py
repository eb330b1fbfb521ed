"""Shares of candidates that run, are right and timed; pass@k; unsolved tasks.

Denominators never shrink: attempts that this machine could not judge stay in them, and each row
gives their number. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import comb

from kerneltruth.analysis.dtype_rates import STAGES, DtypeRates
from kerneltruth.analysis.groups import DTYPE, METHOD, by_task, grouped, labels, methods_of
from kerneltruth.analysis.intervals import clustered_rate, mean_share, rate, unknown_rate
from kerneltruth.analysis.results import Result
from kerneltruth.documents.estimates import GroupLabels
from kerneltruth.documents.rates import PassAtK, StageRates, UnsolvedTasks
from kerneltruth.documents.verdict import NOT_JUDGED


def rates(
    results: Sequence[Result],
    by: Sequence[str] = (),
    dtypes: Mapping[str, Sequence[str]] | None = None,
) -> tuple[StageRates, ...]:
    """Return call, exe and perf rates by the dimensions; `()` gives the row of all.

    By dtype as `DtypeRates` has it, which serves several break-downs in one go; `dtypes` are those
    of each task, as far as they are known.
    """
    if DTYPE in by:
        return DtypeRates(results, by, dtypes).rows(by)
    groups = grouped(results, by).items()
    return tuple(_rate_row(labels(by, group), members) for group, members in groups)


def _rate_row(group: GroupLabels, members: Sequence[Result]) -> StageRates:
    missing = {stage: sum(not r.tried(stage) for r in members) for stage in STAGES}
    stages = {
        stage: unknown_rate(len(members))
        if members and missing[stage] == len(members)
        else clustered_rate((r.task, passed(r)) for r in members)
        for stage, passed in _PASSED.items()
    }
    return StageRates(
        **group,
        attempts=len(members),
        tasks=len({r.task for r in members}),
        load=clustered_rate((r.task, r.loaded) for r in members),
        compile=clustered_rate((r.task, r.compiled) for r in members),
        call=stages["call"],
        exe=stages["exe"],
        perf=stages["perf"],
        not_judged=sum(r.verdict in NOT_JUDGED for r in members),
        not_tried=missing,
        stopped_before=0,
        failed=None,
        call_most=None,
        exe_most=None,
    )


_PASSED: Mapping[str, Callable[[Result], bool]] = {
    "call": lambda r: r.called,
    "exe": lambda r: r.correct,
    "perf": lambda r: r.timed,
}


def pass_at_k(*, n: int, c: int, k: int) -> float:
    """Return the chance that k of n samples hold a correct one, if c of the n are."""
    if not (0 <= c <= n and 1 <= k <= n):
        raise ValueError(f"need 0 <= c <= n and 1 <= k <= n, got {n=} {c=} {k=}")
    return 1 - comb(n - c, k) / comb(n, k)


def pass_rates(answers: Iterable[Result], ks: Sequence[int]) -> tuple[PassAtK, ...]:
    """Return pass@k for each method and k, over the tasks that have k samples."""
    rows = []
    for (method, model), members in grouped(answers, METHOD).items():
        counts = {
            task: (sum(r.judged for r in own), sum(r.correct for r in own))
            for task, own in by_task(members).items()
        }
        missing = sum(not r.judged for r in members)
        for k in ks:
            found = {t: pass_at_k(n=n, c=c, k=k) for t, (n, c) in counts.items() if n >= k}
            rows.append(
                PassAtK(
                    method=method,
                    model=model,
                    k=k,
                    value=mean_share(list(found.values())),
                    tasks=len(found),
                    short=len(counts) - len(found),
                    not_judged=missing,
                )
            )
    return tuple(rows)


def unsolved(answers: Sequence[Result], by: Sequence[str] = ()) -> tuple[UnsolvedTasks, ...]:
    """Return the tasks that all methods fail, by a dimension that is the task's own."""
    methods = methods_of(answers)
    rows = []
    for group, members in grouped(answers, by).items():
        failed: list[str] = []
        complete = partial = 0
        for task, own in by_task(members).items():
            if {(r.method, r.model) for r in own if r.judged} != set(methods):
                partial += 1
                continue
            complete += 1
            if not any(r.correct for r in own):
                failed.append(task)
        rows.append(
            UnsolvedTasks(
                **labels(by, group),
                unsolved=rate(len(failed), complete),
                partial=partial,
                tasks=tuple(sorted(failed)),
            )
        )
    return tuple(rows)
