"""Derive a problem's schema: a search for constants, then runs that show its properties."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from kerneltruth.cases.philox import derive as seed_of
from kerneltruth.clock.schedule.timed_cases import MOST_ELEMENTS
from kerneltruth.suites.kernelbench import search as searching
from kerneltruth.suites.kernelbench.child_session import ProblemSession
from kerneltruth.suites.kernelbench.constants import Constants
from kerneltruth.suites.kernelbench.extremes import long, smallest
from kerneltruth.suites.kernelbench.facts_of_runs import (
    CONSTANT,
    FACTS_S,
    INEXACT,
    shown_by_runs,
    with_extents,
    with_ranges,
)
from kerneltruth.suites.kernelbench.labels import label, told_apart
from kerneltruth.suites.kernelbench.messages import (
    ExampleAnswer,
    ExampleRequest,
    IgnoredAnswer,
    IgnoresRequest,
)
from kerneltruth.suites.kernelbench.prober import TRY_S, Prober, changed
from kerneltruth.suites.kernelbench.problem import Problem
from kerneltruth.suites.kernelbench.schema import ConstantChoice, Outline, Schema
from kerneltruth.suites.remote import Rejected

# The most operations of a timed call: those of a product of two 4096 x 4096 matrices.
MOST_FLOPS = 2**37
# Limits the first case on a CPU, where an interpreter runs each program of a launch.
FIRST = searching.SearchBudget(elements=2**16, weights=2**18, flops=2**26)
# Limits it on a GPU, where float64 takes little time: what the judge has memory for, most first.
# The last one also works on a CPU.
WHOLE = (
    searching.SearchBudget(elements=2**28, weights=2**27, flops=2**40),
    searching.SearchBudget(elements=2**26, weights=2**26, flops=2**40),
    searching.SearchBudget(elements=2**24, weights=2**24, flops=2**36),
)
# Inputs this many times larger are tried if smaller ones give inexact results.
_TIMES_AS_LARGE = (8, 64)
# Numbers that a function takes one by one are few.
_MANY = 64
# The most elements of an example that is called as it is.
_HUGE = 2**27


def derive_schema(problem: Problem, session: ProblemSession) -> Schema:
    """Return the schema of a problem, by calls in its session."""
    if problem.trouble is not None:
        return Schema(trouble=problem.trouble)
    huge = problem.function is not None and _is_huge(problem, session)
    if problem.function is not None and not huge:
        trouble = _trouble_with_example(session, "{}")
        if trouble is not None:
            return Schema(trouble=trouble)
        problem = _without_ignored(problem, session)
    seed = seed_of(0, "kernelbench", problem.sha256)
    refusal: str | None = None
    for device in ("meta", "cpu"):
        prober = Prober(problem, session, device)
        search = searching.Search(
            problem.constants, prober.attempt, seed=seed, sketch=prober.sketch
        )
        found = search.run()
        if found and huge:
            trouble = _trouble_with_example(session, changed(problem, found[0].constants))
            if trouble is not None:
                return Schema(trouble=trouble)
        if found:
            schema = shown_by_runs(session, _choices(problem, found))
            for purpose, differs in _others(schema, problem, found):
                others = _elsewhere(problem, prober, purpose, differs)
                if schema.trouble is not None and (found := others.run()):
                    search = others
                    schema = shown_by_runs(session, _choices(problem, found))
            schema = told_apart(_with_whole(problem, session, prober, search, schema))
            return schema if problem.doubt is None else replace(schema, trouble=problem.doubt)
        if prober.smallest is not None and device == "meta":
            return _too_large(problem, prober, seed)
        refusal = refusal or prober.refusal
    return Schema(trouble=refusal or "no set of constants is accepted")


def _without_ignored(problem: Problem, session: ProblemSession) -> Problem:
    """Return the problem without numbers that are no sizes: what more they add is never read.

    The 3 of `torch.randn(3)` is one if the function takes these elements one by one.
    """

    def is_ignored(name: str, value: Any) -> bool:
        request = IgnoresRequest(constants=repr({name: 2 * value + 3}))
        try:
            return session.ask(request, IgnoredAnswer, deadline_s=TRY_S).ignored
        except Rejected:
            return False

    sizes = {n: v for n, v in problem.constants.items() if type(v) is int and v < _MANY}
    ignored = {n for n, v in sizes.items() if is_ignored(n, v)}
    return replace(
        problem, constants={n: v for n, v in problem.constants.items() if n not in ignored}
    )


def _is_huge(problem: Problem, session: ProblemSession) -> bool:
    """Return whether calls of the example take minutes on a CPU: a smaller one is tried."""
    try:
        own = Prober(problem, session, "meta").outline("{}", device="meta", forward=False)
    except Rejected:
        return False
    return _taken(own) > _HUGE


def _trouble_with_example(session: ProblemSession, constants: str) -> str | None:
    """Return why a plain function is no reference, as calls on its example show."""
    try:
        request = ExampleRequest(constants=constants)
        return session.ask(request, ExampleAnswer, deadline_s=FACTS_S).trouble
    except Rejected as refusal:
        return str(refusal)


def _others(
    schema: Schema, problem: Problem, found: list[searching.Found]
) -> Iterator[tuple[str, Callable[[Constants, Outline], bool]]]:
    """Where to search if no known set can be judged: names, and the values to try."""
    if schema.trouble == CONSTANT:
        common = _common(problem, found).items()
        yield "elsewhere", lambda constants, _: all(constants[n] != v for n, v in common)
    elif (schema.trouble or "").endswith(INEXACT):
        # A normalization over a handful of nearly equal elements may give anything.
        most = max(_taken(f.outline) for f in found)
        for times in _TIMES_AS_LARGE:
            yield f"larger {times}", partial(_takes, times * most)


def _common(problem: Problem, found: list[searching.Found]) -> Constants:
    """Return the sizes that all sets share and the file does not.

    An example is as many channels as groups, each normalized to a constant; twice as many channels
    are not.
    """
    first, *rest = (f.constants for f in found)
    return {
        name: value
        for name, value in first.items()
        if value != problem.constants[name] and all(o[name] == value for o in rest)
    }


def _takes(least: int, _: Constants, outline: Outline) -> bool:
    return _taken(outline) >= least


def _taken(outline: Outline) -> int:
    return sum(i.elements for i in outline.inputs)


def _elsewhere(
    problem: Problem,
    prober: Prober,
    purpose: str,
    differs: Callable[[Constants, Outline], bool],
) -> searching.Search:
    """Search among the sets for one on which `differs` holds."""

    def attempt(constants: Constants) -> Outline | None:
        outline = prober.attempt(constants)
        return outline if outline is not None and differs(constants, outline) else None

    seed = seed_of(0, "kernelbench", problem.sha256, purpose)
    return searching.Search(problem.constants, attempt, seed=seed, sketch=prober.sketch)


def _choices(problem: Problem, found: list[searching.Found]) -> list[ConstantChoice]:
    return [
        ConstantChoice(
            label=label(f.constants, f.outline),
            constants=changed(problem, f.constants),
            outline=f.outline,
            core=f.core,
        )
        for f in found
    ]


def _too_large(problem: Problem, prober: Prober, seed: int) -> Schema:
    """Return the schema if no accepted constants are small: its sets, never computed."""
    search = searching.Search(
        problem.constants, prober.attempt, seed=seed, most=searching.ANY, sketch=prober.sketch
    )
    choices = _choices(problem, search.run())
    small = choices[0].outline
    return Schema(
        choices=tuple(choices),
        trouble=f"too large for a float64 reference on a CPU: in its smallest form it has "
        f"{small.weights:,} weights, {small.elements:,} elements in and out, and needs "
        f"{small.flops:,} operations",
    )


def _with_whole(
    problem: Problem,
    session: ProblemSession,
    prober: Prober,
    search: searching.Search,
    schema: Schema,
) -> Schema:
    """Add the sets with the file's own constants, as large as each use affords."""
    if schema.trouble is not None:
        return schema
    schema = replace(schema, smaller=_that_run(session, problem, smallest(search)))
    try:
        own = prober.whole()
    except Rejected:
        return schema
    least = schema.choices[0].outline

    def holds(outline: Outline) -> bool:
        return FIRST.holds(outline) or searching.cost(outline) <= 2 * searching.cost(least)

    first = _cut(problem, search, own, holds)
    kept = None if first is None else with_extents(session, first)
    # A random result is drawn many times for one judgement.
    budgets = () if schema.random else WHOLE
    whole = (_cut(problem, search, own, budget.holds) for budget in budgets)
    ranged = (with_ranges(session, c) for c in whole if c is not None)
    timed = _cut(problem, search, own, can_be_timed)
    # Only a run shows how large an index may be in a timed call.
    integers = any(i.holds_integers for i in own.inputs)
    known = {c.label: c for c in ranged if c is not None}
    if integers and timed is not None:
        timed = None if problem.function is None else with_ranges(session, timed)
    # The long sets come last, since the tries of a problem are limited.
    return replace(
        schema,
        first=kept,
        whole=tuple(known.values()),
        timed=timed,
        long=_that_run(session, problem, long(search)),
    )


def _that_run(
    session: ProblemSession, problem: Problem, found: list[searching.Found]
) -> tuple[ConstantChoice, ...]:
    choices = (with_extents(session, c) for c in _choices(problem, found))
    return tuple(c for c in choices if c is not None)


def _cut(
    problem: Problem, search: searching.Search, own: Outline, holds: Callable[[Outline], bool]
) -> ConstantChoice | None:
    """Return the file's own constants, cut down to what is affordable; the label says so."""
    found = search.to_time(own, holds)
    if found is None:
        return None
    (choice,) = _choices(problem, [found])
    cut = {n: v for n, v in problem.constants.items() if v != found.constants[n]}
    if not cut:
        return choice
    return replace(choice, label=f"{choice.label}, cut down from {label(cut, own)}")


def can_be_timed(outline: Outline) -> bool:
    """Return whether a call is small enough to prepare, and to compute in float64 on a CPU."""
    return (
        sum(i.elements for i in outline.inputs) + outline.weights <= MOST_ELEMENTS
        and sum(o.elements for o in outline.outputs) <= MOST_ELEMENTS
        and outline.flops <= MOST_FLOPS
    )
