"""Read traces: the peer's own evaluation of each solution."""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from kerneltruth.documents.lines import PublishedVerdict
from kerneltruth.suites.flashinfer.documents import lines_below
from kerneltruth.suites.submission import Broken

FOLDER = "traces"
STATUSES = (
    "PASSED",
    "INCORRECT_SHAPE",
    "INCORRECT_NUMERICAL",
    "INCORRECT_DTYPE",
    "RUNTIME_ERROR",
    "COMPILE_ERROR",
    "TIMEOUT",
)


@dataclass(slots=True)
class _Seen:
    statuses: Counter[str] = field(default_factory=Counter)
    latencies: list[float] = field(default_factory=list)
    speedups: list[float] = field(default_factory=list)

    def verdict(self) -> PublishedVerdict:
        """Return the verdict in the form common to all peers, and the count of each status.

        Times are medians over the timed workloads.
        """
        return PublishedVerdict(
            check="flashinfer-bench",
            compiled="COMPILE_ERROR" not in self.statuses,
            correct=set(self.statuses) == {"PASSED"},
            runtime_ms=median(self.latencies) if self.latencies else None,
            speedup=median(self.speedups) if self.speedups else None,
            statuses=dict(sorted(self.statuses.items())),
        )


def read_traces(root: Path) -> tuple[dict[tuple[str, str], PublishedVerdict], list[Broken]]:
    """Return the peer's verdicts by (definition, solution), and broken lines with reasons.

    Workloads stored as traces, without a solution, are skipped.
    """
    seen: dict[tuple[str, str], _Seen] = {}
    broken: list[Broken] = []
    for item in lines_below(root / FOLDER):
        if isinstance(item, Broken):
            broken.append(item)
            continue
        where, line = item
        if line.get("solution") is None and line.get("evaluation") is None:
            continue
        names, evaluation = (line.get("definition"), line.get("solution")), line.get("evaluation")
        status = evaluation.get("status") if isinstance(evaluation, dict) else None
        if not all(isinstance(n, str) for n in names):
            broken.append(Broken(origin=where, reason="needs `definition` and `solution`"))
        elif status not in STATUSES:
            reason = f"`evaluation.status` is {status!r}; must be one of {', '.join(STATUSES)}"
            broken.append(Broken(origin=where, reason=reason))
        else:
            _add(seen.setdefault(names, _Seen()), status, evaluation)  # type: ignore[arg-type]
    return {names: found.verdict() for names, found in seen.items()}, broken


def _add(found: _Seen, status: str, evaluation: Mapping[str, object]) -> None:
    found.statuses[status] += 1
    performance = evaluation.get("performance")
    if not isinstance(performance, dict):
        return
    for values, key in ((found.latencies, "latency_ms"), (found.speedups, "speedup_factor")):
        value = performance.get(key)
        if isinstance(value, int | float) and 0 < value < math.inf:
            with contextlib.suppress(OverflowError):
                values.append(float(value))
