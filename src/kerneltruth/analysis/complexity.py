"""Complexity of references against failure, by rank correlation. Pure.

A proxy is a number of each task's reference: its lines, operators, parameters and flops.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kerneltruth.analysis.groups import by_task
from kerneltruth.analysis.ranks import rank_correlation
from kerneltruth.analysis.results import Result
from kerneltruth.documents.effects import ComplexityRecord

PROXIES = ("lines", "operators", "parameters", "flops")


def complexity(
    answers: Sequence[Result], facts: Mapping[str, Mapping[str, float]]
) -> tuple[ComplexityRecord, ...]:
    """Correlate proxies with failure over tasks; no row where no task has facts."""
    failures = {}
    for task, own in by_task(r for r in answers if r.judged).items():
        count = len(own)
        failures[task] = (
            sum(not r.called for r in own) / count,
            sum(not r.correct for r in own) / count,
        )
    rows = []
    for proxy in PROXIES:
        known = [t for t in sorted(failures) if proxy in facts.get(t, {})]
        if not known:
            continue
        values = [facts[t][proxy] for t in known]
        call, exe = (
            rank_correlation(values, [failures[t][stage] for t in known]) for stage in (0, 1)
        )
        rows.append(ComplexityRecord(proxy=proxy, call=call, exe=exe))
    return tuple(rows)
