"""How many kinds within its obligations a task's cases leave untried, by the number of cases.

    python benchmarks/untried_kinds.py [--device auto] [--suite core] [--cases 16 32 48]

A kind is a layout, a recipe of values or special values, or the largest size of a dim. Beside them
stand the obligations that no case tries at all. Every case is taken to hold.
"""

from __future__ import annotations

import sys
from collections import Counter

import machine
from dealt_pairs import dealt

from kerneltruth.oracle.kinds import Kind, Kinds
from kerneltruth.oracle.obligations import departures, obligations_of
from kerneltruth.tasks.registry import tasks_of
from kerneltruth.tasks.spec import Task

OF_ANY_CASE = {"published", "interface", "memory", "repeatable"}
OBLIGATIONS = "whole obligations"
SORTS = ("layouts", "specials", "values", "shapes", OBLIGATIONS)


def untried(task: Task, cases: int, device: str) -> tuple[Counter[str], Counter[str]]:
    """What these cases leave untried, and all that there is, by obligation."""
    published, *others = dealt(task, cases, device)
    kinds = Kinds(task, published, device)
    known = [d for d in obligations_of(task) if d.obligation != "gradients" or d.promised]
    met: set[Kind] = set()
    reached = set(OF_ANY_CASE)
    for case in others:
        departing = departures(task, case, published)
        met |= {*kinds.tried(case, departing)}
        reached |= {d.key for d in departing}
    every = [Kind(d.key, name) for d in known for name in kinds.within(d.key)]
    left = Counter(kind.key.partition(".")[0] for kind in every if kind not in met)
    left[OBLIGATIONS] = sum(d.key not in reached for d in known)
    there = Counter(kind.key.partition(".")[0] for kind in every)
    there[OBLIGATIONS] = len(known)
    return left, there


def main() -> int:
    parser = machine.parser(__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, nargs="+", default=[16, 32, 48])
    parser.add_argument("--suite", default="core")
    options = parser.parse_args()
    device = machine.device_of(options)
    tasks = list(tasks_of(options.suite).values())
    rows = []
    there: Counter[str] = Counter()
    for cases in options.cases:
        left: Counter[str] = Counter()
        most = 0
        for task in tasks:
            own, there_ = untried(task, cases, device)
            left += own
            most = max(most, own.total())
            there += there_ if cases == options.cases[0] else Counter()
        mean = left.total() / len(tasks)
        rows.append((f"{cases} cases", *(left[sort] for sort in SORTS), mean, most))
    rows.append(("of", *(there[sort] for sort in SORTS), there.total() / len(tasks), None))
    lines = [
        f"{len(tasks)} tasks of the suite {options.suite}.",
        "",
        *machine.table(("", *SORTS, "mean of a task", "most of a task"), rows),
    ]
    title = "Kinds that a task's cases leave untried"
    machine.publish("untried_kinds", title, machine.facts(device), lines, folder=options.results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
