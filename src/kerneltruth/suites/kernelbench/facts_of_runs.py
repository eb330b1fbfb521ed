"""What runs of a problem show, as its child answers: a schema, and why none can be judged."""

from __future__ import annotations

from dataclasses import replace

from kerneltruth.suites.kernelbench import search as searching
from kerneltruth.suites.kernelbench.child_session import ProblemSession
from kerneltruth.suites.kernelbench.messages import (
    ExtentsAnswer,
    FactsAnswer,
    FactsRequest,
    RangesRequest,
    RunsRequest,
)
from kerneltruth.suites.kernelbench.schema import ConstantChoice, Schema
from kerneltruth.suites.remote import Rejected

DTYPES = ("float32", "float16", "bfloat16")
FACTS_S = 120.0
INEXACT = "no bound tells right from wrong"
CONSTANT = "the output does not depend on the inputs: a constant is right"


def shown_by_runs(session: ProblemSession, choices: list[ConstantChoice]) -> Schema:
    """Return the schema of the choices that run, and what their runs show.

    If calls are costly, only one choice is examined closely: the smallest that runs.
    """
    kept: list[ConstantChoice] = []
    seen: list[FactsAnswer] = []
    refusal = "no set of constants runs"
    costly = not all(searching.PREFERRED.holds(c.outline) for c in choices)
    for choice in choices if costly else reversed(choices):
        try:
            if costly and seen:
                runs = RunsRequest(constants=choice.constants)
                extents = session.ask(runs, ExtentsAnswer, deadline_s=FACTS_S).extents
            else:
                request = FactsRequest(constants=choice.constants, dtypes=() if seen else DTYPES)
                facts = session.ask(request, FactsAnswer, deadline_s=FACTS_S)
                seen.append(facts)
                extents = facts.extents
        except Rejected as rejected:
            refusal = str(rejected)
            continue
        kept.append(replace(choice, extents=extents))
    if not seen:
        return Schema(trouble=refusal)
    first = seen[0]
    own = {first.working: tuple(o.dtype or "" for o in first.outputs)}
    return Schema(
        choices=tuple(kept if costly else reversed(kept)),
        inputs=first.inputs,
        state=first.state,
        dtypes=own | {n: d for n, d in first.dtypes.items() if d is not None},
        working=first.working,
        numbers=first.numbers,
        positive=first.positive,
        training=first.training,
        modes=first.modes,
        random=first.random,
        random_otherwise=first.random_otherwise,
        updated=first.updated,
        trouble=_nature(seen, kept[0]),
    )


def _nature(seen: list[FactsAnswer], choice: ConstantChoice) -> str | None:
    """Return why no candidate can be told right from wrong, if so."""
    if all(facts.constant for facts in seen):
        return CONSTANT
    inexact = [facts.inexact for facts in seen if facts.inexact is not None]
    if 2 * len(inexact) > len(seen):
        return (
            f"float32 is off by {max(inexact):.2g} of the output's size, against float64: {INEXACT}"
        )
    if not choice.outline.plain:
        return "get_init_inputs returns more than plain values, which cannot be passed on"
    if any(o.dtype is None for facts in seen for o in facts.outputs):
        return "the model returns something that is neither tensor nor number"
    return None


def with_extents(session: ProblemSession, choice: ConstantChoice) -> ConstantChoice | None:
    """Return the choice with the range of its indices, if it runs."""
    return _ask_extents(session, choice, RunsRequest(constants=choice.constants))


def _ask_extents(
    session: ProblemSession, choice: ConstantChoice, request: RunsRequest | RangesRequest
) -> ConstantChoice | None:
    try:
        found = session.ask(request, ExtentsAnswer, deadline_s=FACTS_S)
    except Rejected:
        return None
    return replace(choice, extents=found.extents)


def with_ranges(session: ProblemSession, choice: ConstantChoice) -> ConstantChoice | None:
    """Return the choice with the range of its indices, without a run, which would take long."""
    if any(i.holds_integers for i in choice.outline.inputs):
        return _ask_extents(session, choice, RangesRequest(constants=choice.constants))
    return replace(choice, extents=tuple(None for _ in choice.outline.inputs))
