"""Say which configurations of an autotuned kernel a failure belongs to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kerneltruth.explain.inquiry import Inquiry
from kerneltruth.oracle.case_status import case_status
from kerneltruth.runner.observation import Launch

# Ask at most this many configurations; each may have to be compiled.
MOST_ASKED = 8
NAMED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """A configuration on the failing case, by its number from 0."""

    number: int
    constants: Mapping[str, Any]
    wrong: bool


def configurations(inquiry: Inquiry) -> str:
    """Return a sentence about the wrong configurations; empty where there is one, or all are."""
    session, failure = inquiry.session, inquiry.failure
    configs = session.launches.configs
    if configs < 2:
        return ""
    expectation = session.cache.get(session.task, failure.case)
    # The failure's own first: it must be among those asked.
    numbers = sorted(range(configs), key=lambda n: n != failure.config % configs)
    tried: list[Tried] = []
    for number in numbers[:MOST_ASKED]:
        if tried and inquiry.late:
            break
        ruling, observation, _ = session.call(expectation, config=number)
        constants = _tuned(observation.launches)
        wrong = case_status(ruling.verdict) in ("broken", "refused")
        tried.append(Tried(number=number, constants=constants, wrong=wrong))
    return sentence(tried, configs)


def sentence(tried: Sequence[Tried], configs: int) -> str:
    """Summarize the results of the tried configurations, of `configs` in all."""
    wrong = sorted((t for t in tried if t.wrong), key=lambda t: t.number)
    right = len(tried) - len(wrong)
    if not wrong or not right:
        return ""
    names = [_name(t, tried) for t in wrong[:NAMED]]
    more = f" and {len(wrong) - NAMED} more" if len(wrong) > NAMED else ""
    plural = "s" if len(wrong) > 1 else ""
    others = f"the other {'one is' if right == 1 else f'{right} that were tried are'} right"
    return f"Only under configuration{plural} {', '.join(names)}{more} of {configs}; {others}."


def _name(one: Tried, tried: Sequence[Tried]) -> str:
    telling = {
        n: v for n, v in one.constants.items() if any(t.constants.get(n) != v for t in tried)
    }
    named = ", ".join(f"{name}={value}" for name, value in telling.items())
    return f"{one.number + 1} ({named})" if named else str(one.number + 1)


def _tuned(launches: Sequence[Launch]) -> Mapping[str, Any]:
    """Return the constants of the autotuned kernel with the most configurations."""
    tuned = max(launches, key=lambda launch: launch.configs, default=None)
    return {} if tuned is None else tuned.constants
