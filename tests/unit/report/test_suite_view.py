"""What `audit --suite` says: which tasks hold, and why others do not."""

import pytest

from blank_documents import document
from kerneltruth.documents.suites import FlaggedCase, ProofSummary, SuiteDocument, TaskProof
from kerneltruth.report.suite_view import suite_view
from kerneltruth.report.terminal import piped

FLAGGED = document(FlaggedCase, case="M=3 float16", verdict="fail", detail="inf out")


def proof(**more):
    return document(TaskProof, task="relu", category="Activation", **more)


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"tasks": [proof(holds=True, trouble="no bound")]}, "relu is not judged: no bound"),
        (
            {"tasks": [proof(flagged=[FLAGGED])]},
            "relu does not hold\n  M=3 float16: fail inf out\n",
        ),
        (
            {"tasks": [proof(cases={"float32": 2, "float16": 0})]},
            "relu does not hold\n  no case judged in float16\n",
        ),
        ({"not_judged": ["gelu", "silu"]}, "2 tasks were not started: the budget was spent"),
        (
            {"summary": document(ProofSummary, tasks=9, hold=8, cases=1200, flagged=1)},
            "8 of 9 tasks hold: PyTorch was flagged on 1 of 1,200 cases on cpu, 0 s",
        ),
    ],
)
def test_an_audit_of_a_suite_says_what_holds_and_why_not(more, says):
    assert says in piped(suite_view(document(SuiteDocument, suite="core", device="cpu", **more)))
