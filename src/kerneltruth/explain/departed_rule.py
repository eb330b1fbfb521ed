"""Name the rule of quantization that a wrong kernel departs from, if its results prove one.

The judge rules again on what the kernel returns, as if a rule of the task were changed. A change is
proven if, under it, results of several wrong cases are right and no result that was tried is wrong.
Where a bound under the change cannot tell right from wrong, a case says nothing about it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from msgspec import structs

from kerneltruth.documents.case import Case
from kerneltruth.documents.records import Judgement, QuantizationFault
from kerneltruth.documents.verdict import Failed, Passed
from kerneltruth.explain.inquiry import Called, Inquiry
from kerneltruth.oracle.expectation_builder import expect_on
from kerneltruth.oracle.judge import rule
from kerneltruth.oracle.probes import SYMPTOMS
from kerneltruth.tasks.changed_rules import ChangedRule

# The least wrong cases that prove a change, and the least elements of the largest of them.
LEAST_CASES = 3
LEAST_ELEMENTS = 64
# How often the failing case is drawn anew, and how many others of each verdict are tried.
REDRAWN = 2
OTHERS = 3


def departed_rule(inquiry: Inquiry, others: Sequence[Judgement]) -> QuantizationFault | None:
    """Return the one rule whose changes explain the failure; None if none or several do.

    `others` are judgements of other cases.
    """
    left = inquiry.session.task.changed_rules
    verdict = inquiry.failure.verdict
    if not left or not isinstance(verdict, Failed) or verdict.kind not in (*SYMPTOMS, "dtype"):
        return None
    explained: Counter[ChangedRule] = Counter()
    largest = 0
    for case in _cases(inquiry.failure.case, others):
        seen = None if not left or inquiry.late else inquiry.observe(case)
        if seen is None:
            continue
        found = {change: _is_right_under(change, inquiry, seen) for change in left}
        left = tuple(change for change in left if found[change] is not False)
        if isinstance(seen.ruling.with_form, Failed):
            explained.update(change for change in left if found[change])
            largest = max(largest, *(o.reference.numel() for o in seen.expectation.outputs))
    left = tuple(change for change in left if explained[change] >= LEAST_CASES)
    if len({change.rule for change in left}) != 1 or largest < LEAST_ELEMENTS:
        return None
    return QuantizationFault(
        rule=left[0].rule,
        words=" or ".join(dict.fromkeys(change.words for change in left)),
        cases=min(explained[change] for change in left),
    )


def _cases(failing: Case, others: Sequence[Judgement]) -> Iterator[Case]:
    """Yield the failing case, other draws of it, and others that the task promises."""
    yield failing
    for step in range(1, REDRAWN + 1 if not failing.literals else 1):
        yield structs.replace(failing, seed=failing.seed + step)
    core = [j for j in others if j.case.domain == "core" and j.case.layout == "contiguous"]
    for kind in (Failed, Passed):
        yield from [j.case for j in core if isinstance(j.verdict, kind)][:OTHERS]


def _is_right_under(change: ChangedRule, inquiry: Inquiry, seen: Called) -> bool | None:
    """Return whether a result is right under a change; None if that cannot be judged."""
    session, (expectation, _, observation, placed) = inquiry.session, seen
    task = session.task.under(change)
    # Within the error of TF32, quantized and other results may be the same.
    policy = replace(session.cache.policy, tf32=False)
    expected = expect_on(task, expectation.case, expectation.inputs, policy)
    if expected.invalid is not None or expected.unrefereeable is not None:
        return None
    ruling = rule(task, expected, placed, observation, deadline_s=session.deadline_s)
    return isinstance(ruling.with_form, Passed)
