"""A correct kernel is never flagged."""

import pytest

from kerneltruth.corpus import ENTRIES
from kerneltruth.documents.verdict import Passed
from kerneltruth.tasks.core import TASKS

# In the order of their tasks, since kernels of one task share what is expected of them.
CONTROLS = [e.name for e in sorted(ENTRIES, key=lambda e: e.task) if e.role == "control"]
CATEGORIES = {e.name: TASKS[e.task].category for e in ENTRIES}

CASES = 10


def test_the_corpus_has_at_least_45_controls():
    assert len(set(CONTROLS)) >= 45


def kernel_is_own(attempt):
    """Whether a Triton kernel did the work; a control may also be plain PyTorch or NumPy."""
    fact = attempt.kernel
    if attempt.candidate.language != "triton":
        return fact.own_launches == 0
    return fact.probe == "needed" and attempt.profile["kernel"].status == "held"


@pytest.mark.slow
@pytest.mark.sampled(by=lambda name: [CATEGORIES[name]])
@pytest.mark.parametrize("name", CONTROLS)
def test_a_control_is_clean(evaluate, name):
    # Another seed than the audit's, so that the two do not judge the same cases.
    attempt = evaluate(name, cases=CASES, seed=20)
    assert attempt.verdict == Passed(), attempt.failure
    assert attempt.cases >= CASES
    assert attempt.suspicions == ()
    assert kernel_is_own(attempt)
    results = (e.status for key, e in attempt.profile.items() if key != "kernel")
    assert {*results} <= {"held", "not_tried", "not_applicable"}
    assert attempt.profile["published"].status == "held"
