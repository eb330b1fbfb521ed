"""Derive a problem's schema: a search for constants, then runs that show its properties."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from kerneltruth.cases.philox import derive as seed_of
from kerneltruth.clock.schedule.timed_cases import MOST_ELEMENTS
from kerneltruth.documents.model import parse
from kerneltruth.suites.kernelbench import search as searching
from kerneltruth.suites.kernelbench.child_session import ProblemSession, Rejected
from kerneltruth.suites.kernelbench.constants import Constants, label
from kerneltruth.suites.kernelbench.problem import Problem
from kerneltruth.suites.kernelbench.schema import (
    ConstantChoice,
    InputFacts,
    Outline,
    Schema,
    WeightFacts,
    outline_of,
)

DTYPES = ("float32", "float16", "bfloat16")
_TRY_S = 20.0
_ORIGINAL_S = 30.0
_FACTS_S = 120.0
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
# Time for all tries of one problem; the same on every machine that is not hopelessly slow.
_MOST_TRIES = 600
# Inputs this many times larger are tried if smaller ones give inexact results.
_TIMES_AS_LARGE = (8, 64)
# Numbers that a function takes one by one are few.
_MANY = 64
INEXACT = "no bound tells right from wrong"
CONSTANT = "the output does not depend on the inputs: a constant is right"


class _Prober:
    """Requests outlines of the problem, each set of constants once."""

    def __init__(self, problem: Problem, session: ProblemSession, device: str) -> None:
        self._problem = problem
        self._session = session
        self._device = device
        self._known: dict[str, Outline | None] = {}
        self._sketched: dict[str, Outline | None] = {}
        self.refusal: str | None = None
        self.smallest: Outline | None = None

    def attempt(self, constants: Constants) -> Outline | None:
        """Return the outline, or None if the problem rejects the constants."""
        text = changed(self._problem, constants)
        if text not in self._known:
            if len(self._known) >= _MOST_TRIES:
                return None
            made = self._known[text] = self._ask(text)
            if made and (not self.smallest or made.weights < self.smallest.weights):
                self.smallest = made
        return self._known[text]

    def sketch(self, constants: Constants) -> Outline | None:
        """As `attempt`, without a call of the model: shapes of inputs and weights alone."""
        text = changed(self._problem, constants)
        if text not in self._sketched:
            try:
                made = self._size(text)
            except Rejected:
                made = None
            self._sketched[text] = made
        return self._sketched[text]

    def _ask(self, text: str) -> Outline | None:
        try:
            if self._device == "cpu":
                # First without a call, whose size is still unknown.
                size = self._size(text)
                if not searching.PREFERRED.holds(size):
                    return None
            return self.outline(text, device=self._device, forward=True)
        except Rejected as refusal:
            self.refusal = self.refusal or str(refusal)
            return None

    def whole(self) -> Outline:
        """Return the outline of the file's own constants.

        Raises:
            Rejected: it cannot be had without computing, and computing takes long.
        """
        try:
            return self.outline("{}", device="meta", forward=True, deadline_s=_ORIGINAL_S)
        except Rejected:
            if self._problem.function is None:
                raise
            return self.outline("{}", device="cpu", forward=True, deadline_s=_ORIGINAL_S)

    def _size(self, text: str) -> Outline:
        """Return the outline without a call; a plain function's inputs may need a real device."""
        try:
            return self.outline(text, device="meta", forward=False)
        except Rejected:
            if self._problem.function is None:
                raise
            return self.outline(text, device="cpu", forward=False)

    def outline(
        self, text: str, *, device: str, forward: bool, deadline_s: float = _TRY_S
    ) -> Outline:
        """Return the outline of one set.

        Raises:
            Rejected: the problem rejects it.
        """
        asked = {"constants": text, "device": device, "forward": forward}
        return outline_of(self._session.ask("outline", deadline_s=deadline_s, **asked))


def changed(problem: Problem, constants: Constants) -> str:
    """Return the constants that differ from the file's own, as the text of a dict."""
    return repr({n: v for n, v in constants.items() if v != problem.constants[n]})


def derive_schema(problem: Problem, session: ProblemSession) -> Schema:
    """Return the schema of a problem, by calls in its session."""
    if problem.trouble is not None:
        return Schema(trouble=problem.trouble)
    if problem.function is not None:
        trouble = _trouble_with_example(session)
        if trouble is not None:
            return Schema(trouble=trouble)
        problem = _without_ignored(problem, session)
    seed = seed_of(0, "kernelbench", problem.sha256)
    refusal: str | None = None
    for device in ("meta", "cpu"):
        prober = _Prober(problem, session, device)
        search = searching.Search(
            problem.constants, prober.attempt, seed=seed, sketch=prober.sketch
        )
        found = search.run()
        if found:
            schema = _with_facts(session, _choices(problem, found))
            for purpose, differs in _others(schema, problem, found):
                others = _elsewhere(problem, prober, purpose, differs)
                if schema.trouble is not None and (found := others.run()):
                    search = others
                    schema = _with_facts(session, _choices(problem, found))
            schema = _with_whole(problem, session, prober, search, schema)
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
        asked = {"constants": repr({name: 2 * value + 3})}
        try:
            return bool(session.ask("ignores", deadline_s=_TRY_S, **asked)["ignored"])
        except Rejected:
            return False

    sizes = {n: v for n, v in problem.constants.items() if type(v) is int and v < _MANY}
    ignored = {n for n, v in sizes.items() if is_ignored(n, v)}
    return replace(
        problem, constants={n: v for n, v in problem.constants.items() if n not in ignored}
    )


def _trouble_with_example(session: ProblemSession) -> str | None:
    """Return why a plain function is no reference, as calls on its example show."""
    try:
        found: str | None = session.ask("example", deadline_s=_FACTS_S).get("trouble")
    except Rejected as refusal:
        return str(refusal)
    return found


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
    prober: _Prober,
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
            label=label(f.constants) or "as in the file",
            constants=changed(problem, f.constants),
            outline=f.outline,
            core=f.core,
        )
        for f in found
    ]


def _too_large(problem: Problem, prober: _Prober, seed: int) -> Schema:
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
    prober: _Prober,
    search: searching.Search,
    schema: Schema,
) -> Schema:
    """Add the sets with the file's own constants, as large as each use affords."""
    if schema.trouble is not None:
        return schema
    smaller = [_kept(session, c) for c in _choices(problem, search.smallest())]
    schema = replace(schema, smaller=tuple(c for c in smaller if c is not None))
    try:
        own = prober.whole()
    except Rejected:
        return schema
    least = schema.choices[0].outline

    def holds(outline: Outline) -> bool:
        return FIRST.holds(outline) or searching.cost(outline) <= 2 * searching.cost(least)

    first = _cut(problem, search, own, holds)
    kept = None if first is None else _kept(session, first)
    # A random result is drawn many times for one judgement.
    budgets = () if schema.random else WHOLE
    whole = (_cut(problem, search, own, budget.holds) for budget in budgets)
    ranged = (_ranged(session, c) for c in whole if c is not None)
    timed = _cut(problem, search, own, can_be_timed)
    # Only a run shows how large an index may be in a timed call.
    integers = any(i.holds_integers for i in own.inputs)
    known = {c.label: c for c in ranged if c is not None}
    if integers and timed is not None:
        timed = None if problem.function is None else _ranged(session, timed)
    return replace(schema, first=kept, whole=tuple(known.values()), timed=timed)


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
    return replace(choice, label=f"{choice.label}, cut down from {label(cut)}")


def _kept(
    session: ProblemSession, choice: ConstantChoice, question: str = "runs"
) -> ConstantChoice | None:
    """Return the choice with the range of its indices, if it runs."""
    try:
        facts = session.ask(question, deadline_s=_FACTS_S, constants=choice.constants)
    except Rejected:
        return None
    return replace(choice, extents=_extents(facts))


def _ranged(session: ProblemSession, choice: ConstantChoice) -> ConstantChoice | None:
    """Return the same without a run, which would take long."""
    if any(i.holds_integers for i in choice.outline.inputs):
        return _kept(session, choice, "ranges")
    return replace(choice, extents=tuple(None for _ in choice.outline.inputs))


def _extents(facts: dict[str, Any]) -> tuple[int | None, ...]:
    return tuple(
        int(i["high"]) if "form" not in i and "high" in i else None for i in facts["inputs"]
    )


def can_be_timed(outline: Outline) -> bool:
    """Return whether a call is small enough to prepare, and to compute in float64 on a CPU."""
    return (
        sum(i.elements for i in outline.inputs) + outline.weights <= MOST_ELEMENTS
        and sum(o.elements for o in outline.outputs) <= MOST_ELEMENTS
        and outline.flops <= MOST_FLOPS
    )


def _with_facts(session: ProblemSession, choices: list[ConstantChoice]) -> Schema:
    """Return the schema of the choices that run, and what their runs show.

    If calls are costly, only one choice is examined closely: the smallest that runs.
    """
    kept: list[ConstantChoice] = []
    seen: list[dict[str, Any]] = []
    refusal = "no set of constants runs"
    costly = not all(searching.PREFERRED.holds(c.outline) for c in choices)
    for choice in choices if costly else reversed(choices):
        closely = not (costly and seen)
        asked = {"constants": choice.constants, "dtypes": () if seen else DTYPES}
        try:
            facts = session.ask("facts" if closely else "runs", deadline_s=_FACTS_S, **asked)
        except Rejected as rejected:
            refusal = str(rejected)
            continue
        if closely:
            seen.append(facts)
        kept.append(replace(choice, extents=_extents(facts)))
    if not seen:
        return Schema(trouble=refusal)
    first = seen[0]
    outputs = tuple(o.get("dtype", "") for o in first["outputs"])
    dtypes_of = {first["working"]: outputs} | {
        n: tuple(d) for n, d in first["dtypes"].items() if d is not None
    }
    return Schema(
        choices=tuple(kept if costly else reversed(kept)),
        inputs=parse(tuple[InputFacts, ...], first["inputs"]),
        state=parse(dict[str, WeightFacts], first["state"]),
        dtypes=dtypes_of,
        working=first["working"],
        numbers=first["numbers"],
        positive=first["positive"],
        training=first["training"],
        modes=first["modes"],
        random=first["random"],
        random_otherwise=first["random_otherwise"],
        updated=tuple(first["updated"]),
        trouble=_nature(seen, kept[0]),
    )


def _nature(seen: list[dict[str, Any]], choice: ConstantChoice) -> str | None:
    """Return why no candidate can be told right from wrong, if so."""
    if all(facts["constant"] for facts in seen):
        return CONSTANT
    inexact = [facts["inexact"] for facts in seen if facts["inexact"] is not None]
    if 2 * len(inexact) > len(seen):
        return (
            f"float32 is off by {max(inexact):.2g} of the output's size, against float64: {INEXACT}"
        )
    if not choice.outline.plain:
        return "get_init_inputs returns more than plain values, which cannot be passed on"
    if any("dtype" not in o for facts in seen for o in facts["outputs"]):
        return "the model returns something that is neither tensor nor number"
    return None
