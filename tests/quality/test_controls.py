"""A correct kernel is never flagged."""

import pytest

from kerneltruth.corpus import ENTRIES
from kerneltruth.oracle.verdict import Passed

# In the order of their tasks, since kernels of one task share what is expected of them.
CONTROLS = [e.name for e in sorted(ENTRIES, key=lambda e: e.task) if e.role == "control"]

CASES = 10


def test_the_corpus_has_at_least_45_controls():
    assert len(set(CONTROLS)) >= 45


@pytest.mark.parametrize("name", CONTROLS)
def test_a_control_is_clean(evaluate, name):
    # Another seed than the audit's, so that the two do not judge the same cases.
    attempt = evaluate(name, cases=CASES, seed=20)
    assert attempt.verdict == Passed(), attempt.failure
    assert attempt.cases >= CASES
    assert {e.status for e in attempt.profile.values()} <= {"held", "not_tried", "not_applicable"}
    assert attempt.profile["published"].status == "held"
