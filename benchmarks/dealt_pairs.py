"""How many pairs of promised things a task's cases try together, with and without pairing.

    python benchmarks/dealt_pairs.py [--device auto] [--cases 16]

A pair is a promised value of an attribute with a recipe that the prompt promises, or with one order
of a tensor's last two dims. Those that some case of a much larger number tries are all there are.
Beside them stand the hazards that the same cases try: what lies beyond the contract comes later.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from typing import Any

import machine

from kerneltruth.cases.pairs import Pair, Pairs
from kerneltruth.cases.published import published_case
from kerneltruth.documents.case import Case
from kerneltruth.oracle import dealing
from kerneltruth.oracle.obligations import departures
from kerneltruth.oracle.plan import Plan
from kerneltruth.tasks.registry import suites, tasks_of
from kerneltruth.tasks.spec import Task

PAIRED = dealing.paired
MANY = 128
STATES = ("without", "with")
RECIPE, ORDER = "values with a promised recipe", "values with an order of dims"
KINDS = (RECIPE, ORDER, "tasks with all pairs", "hazards")


def unpaired(
    _pairs: Pairs, _published: Case, firsts: list[Case], *_: Any, **__: Any
) -> tuple[list[Case], list[Case]]:
    """The cases that come first as they are, and no more."""
    return firsts, []


def dealt(task: Task, cases: int, device: str, *, pairing: bool = True) -> tuple[Case, ...]:
    """The cases that are judged."""
    setattr(dealing, "paired", PAIRED if pairing else unpaired)  # noqa: B010
    published = published_case(task, seed=0, device=device)
    plan = Plan(cases=cases, promises=True, whole=True)
    found = dealing.deal(task, plan, published, device=device)
    return (published, *found.firsts, *found.others)[: found.total]


def tried(pairs: Pairs, cases: Iterable[Case]) -> frozenset[Pair]:
    return frozenset().union(*(pairs.tried(case) for case in cases))


def hazards(task: Task, cases: tuple[Case, ...]) -> set[tuple[str, str]]:
    """The layouts, special values and other things that cases try beyond the contract."""
    return {
        (d.key, {"layouts": case.layout, "specials": case.recipe}.get(d.obligation, ""))
        for case in cases
        for d in departures(task, case, cases[0])
        if not d.promised
    }


def counted(task: Task, cases: int, device: str) -> Counter[tuple[str, str]]:
    """Pairs and hazards of one task, by state and kind."""
    pairs = Pairs(task, device)
    shown = {state: dealt(task, cases, device, pairing=state == "with") for state in STATES}
    many = (*dealt(task, MANY, device), *shown["without"], *shown["with"])
    found: Counter[tuple[str, str]] = Counter()
    for name, some in {**shown, "of": many}.items():
        for pair in tried(pairs, some):
            is_recipe = pair.meets in task.promises.recipes
            found[name, RECIPE if is_recipe else ORDER] += 1
        found[name, "hazards"] += len(hazards(task, some))
        found[name, "tasks with all pairs"] += tried(pairs, some) == tried(pairs, many)
    return found


def main() -> int:
    parser = machine.parser(__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=16)
    options = parser.parse_args()
    device = machine.device_of(options)
    tasks = [task for suite in suites() for task in tasks_of(suite).values()]
    sums: Counter[tuple[str, str]] = Counter()
    for task in tasks:
        sums += counted(task, options.cases, device)
    rows = [(kind, *(sums[name, kind] for name in (*STATES, "of"))) for kind in KINDS]
    lines = [
        f"{len(tasks)} tasks, {options.cases} cases each.",
        "",
        *machine.table(("", *(f"{state} pairing" for state in STATES), "of"), rows),
    ]
    title = "Pairs of promised things that a task's cases try together"
    machine.publish("dealt_pairs", title, machine.facts(device), lines, folder=options.results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
