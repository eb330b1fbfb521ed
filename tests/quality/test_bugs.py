"""Every bug of the corpus is caught, within the cases that the audit grants it."""

import pytest

from kerneltruth.corpus import ENTRIES
from kerneltruth.oracle.verdict import is_bad

BUGS = [e.name for e in sorted(ENTRIES, key=lambda e: e.task) if e.role == "bug"]

CASES = 32


def test_the_corpus_has_at_least_34_bugs():
    assert len(set(BUGS)) >= 34


@pytest.mark.parametrize("name", BUGS)
def test_a_bug_is_caught(evaluate, name):
    attempt = evaluate(name, cases=CASES)
    assert is_bad(attempt.verdict), attempt
    assert attempt.failed == 1
    assert attempt.failure is not None
