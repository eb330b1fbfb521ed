"""Every bug of the corpus is caught, and in the obligation that it was planted against."""

import pytest

from kerneltruth.corpus import ENTRIES
from kerneltruth.documents.verdict import is_bad
from kerneltruth.engine.requests import AuditRequest
from kerneltruth.tasks.core import TASKS

BREAKS = {e.name: e.breaks for e in ENTRIES if e.role == "bug"}
TRAITS = {e.name: (e.breaks, TASKS[e.task].category) for e in ENTRIES}
BUGS = [e.name for e in sorted(ENTRIES, key=lambda e: e.task) if e.role == "bug"]

CASES = AuditRequest().cases


def test_the_corpus_has_at_least_34_bugs():
    assert len(set(BUGS)) >= 34


@pytest.mark.slow
@pytest.mark.sampled(by=lambda name: TRAITS[name])
@pytest.mark.parametrize("name", BUGS)
def test_a_bug_is_caught(evaluate, name):
    attempt = evaluate(name, cases=CASES)
    entry = attempt.profile[BREAKS[name]]
    assert entry.status == "broken", attempt
    # What the contract does not ask is a hazard beside a pass.
    assert is_bad(attempt.verdict) == (attempt.failure is not None)
    assert entry.decisive <= is_bad(attempt.verdict)
    assert (BREAKS[name] in attempt.hazards) == (not entry.decisive)
    assert attempt.profile["kernel"].status != "broken" or attempt.candidate.language != "triton"


def test_bugs_are_planted_against_obligations_of_many_kinds():
    assert {key.partition(".")[0] for key in BREAKS.values()} >= {
        "published",
        "shapes",
        "values",
        "attributes",
        "dtypes",
        "layouts",
        "specials",
        "memory",
    }
