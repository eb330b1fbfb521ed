"""How often the judge flags a correct kernel: every control, on cases of every kind.

    python benchmarks/control_cases.py [--device auto] [--cases 160] [--seeds 2] [--only NAME]

The exit code is 1 if any case of any control is flagged. Cases that a control declines, that
cannot be refereed or that cannot run here are counted apart, with their reasons.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import machine
from evaluations import Evaluation, Kind, chosen, evaluate_all, job_of

from kerneltruth.oracle.plan import Plan

COLUMNS = ("pass", "flagged", "declined", "unrefereeable", "unsupported_here", "infra")


def by(kinds: Counter[Kind], key: Callable[[Kind], str], name: str) -> list[str]:
    rows: dict[str, Counter[str]] = {}
    for kind, count in kinds.items():
        rows.setdefault(key(kind), Counter())[kind.verdict] += count
    used = [c for c in COLUMNS if c in ("pass", "flagged") or any(row[c] for row in rows.values())]
    body = [(value, *(row[c] for c in used)) for value, row in sorted(rows.items())]
    return machine.table((name, *used), body)


def reasons(title: str, counts: Counter[str]) -> list[str]:
    if not counts:
        return []
    listed = [f"- {count:,}: {reason[:160]}" for reason, count in counts.most_common(12)]
    rest = sum(counts.values()) - sum(n for _, n in counts.most_common(12))
    return ["", f"{title}:", "", *listed, *([f"- {rest:,}: other reasons"] if rest else [])]


def report(
    evaluation: dict[str, list[Evaluation]], seconds: float
) -> tuple[list[str], dict[str, Any]]:
    every = [one for several in evaluation.values() for one in several]
    kinds = sum((one.kinds for one in every), Counter())
    judged = sum(one.judged for one in every)
    flagged = [
        (name, f) for name, several in evaluation.items() for h in several for f in h.flagged
    ]
    lines = [
        f"**{judged:,} control cases judged, {len(flagged):,} flagged** "
        f"({len(evaluation)} controls, {seconds:.0f} s, {judged / seconds:.0f} cases/s).",
        "",
        *by(kinds, lambda k: k.strategy, "strategy"),
        "",
        *by(kinds, lambda k: k.dtype, "dtype"),
        "",
        *by(kinds, lambda k: k.layout, "layout"),
    ]
    totals = {
        "Declined": sum((h.declined for h in every), Counter()),
        "Unrefereeable, replaced": sum((h.unrefereeable for h in every), Counter()),
        "Not run": sum((h.skipped for h in every), Counter()),
    }
    for title, counts in totals.items():
        lines += reasons(title, counts)
    none = [name for name, several in evaluation.items() if not any(h.judged for h in several)]
    lines += ["", *(f"- NOTHING JUDGED: {name}" for name in none)] if none else []
    lines += [""] if flagged else []
    lines += [
        f"- FLAGGED {name}: {f['verdict']} on {f['case']}: {f['says']}" for name, f in flagged
    ]
    data = {
        "judged": judged,
        "flagged": [{"control": name, **f} for name, f in flagged],
        "seconds": seconds,
        "controls": {name: sum(h.judged for h in several) for name, several in evaluation.items()},
        "reasons": {title: dict(counts) for title, counts in totals.items()},
        "kinds": [
            [k.strategy, k.dtype, k.layout, k.verdict, n]
            for k, n in sorted(kinds.items(), key=lambda item: str(item[0]))
        ],
    }
    return lines, data


def main() -> int:
    parser = machine.parser(__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=160, help="cases per control, over all seeds")
    parser.add_argument("--seeds", type=int, default=2, help="how many master seeds share them")
    parser.add_argument("--first-seed", type=int, default=1, help="the first of the master seeds")
    parser.add_argument("--workers", type=int, help="judges; one per core if left out")
    parser.add_argument("--only", action="append", default=[], help="only this control")
    options = parser.parse_args()
    device = machine.device_of(options)
    each = -(-options.cases // options.seeds)
    plans = [
        Plan(seed=options.first_seed + i, cases=each, stop_at_first=False, compile=False)
        for i in range(options.seeds)
    ]
    jobs = [job_of(entry, plan) for entry in chosen("control", options.only) for plan in plans]
    evaluation: dict[str, list[Evaluation]] = {job.name: [] for job in jobs}
    start = time.monotonic()
    for job, result in evaluate_all(jobs, device=device, workers=options.workers):
        evaluation[job.name].append(result)
        for flag in result.flagged:
            print(f"flagged: {job.name} on {flag['case']}: {flag['says']}", file=sys.stderr)
    lines, data = report(evaluation, time.monotonic() - start)
    title = "Controls: correct kernels on cases of every kind"
    about = machine.facts(device)
    machine.publish("control_cases", title, about, lines, folder=options.results, data=data)
    return int(bool(data["flagged"]) or 0 in data["controls"].values())


if __name__ == "__main__":
    sys.exit(main())
