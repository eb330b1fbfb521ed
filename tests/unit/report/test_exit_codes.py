"""What exit codes say."""

import pytest

from blank_documents import document
from kerneltruth.documents.checks import (
    CheckCounts,
    ChecksDocument,
    ReplayDocument,
    ReplayResult,
)
from kerneltruth.documents.runs import (
    AuditDocument,
    AuditKernel,
    AuditSummary,
    CompareDocument,
    DifferingKernel,
    MissingKernel,
    RunCandidate,
    RunDocument,
)
from kerneltruth.documents.timing import TimeDocument
from kerneltruth.report import exit_codes


@pytest.mark.parametrize(
    ("verdict", "code"),
    [
        ("pass", 0),
        ("fail", 1),
        ("compile_error", 1),
        ("runtime_error", 1),
        ("crash", 1),
        ("timeout", 1),
        ("unsupported_here", 3),
        ("unrefereeable", 3),
        ("infra", 3),
    ],
)
def test_a_check_is_good_bad_or_not_judged(verdict, code):
    assert exit_codes.of_check(verdict) == code


@pytest.mark.parametrize(
    ("counts", "code"),
    [
        ({"passed": 2}, 0),
        ({"passed": 2, "not_judged": 1}, 3),
        ({"passed": 2, "not_judged": 1, "failed": 1}, 1),
        ({"passed": 2, "not_judged": 1, "failed": 1, "refused": 1}, 2),
    ],
)
def test_several_files_are_as_good_as_the_worst(counts, code):
    several = document(ChecksDocument, counts=document(CheckCounts, **counts))
    assert exit_codes.of_checks(several) == code


def audit(*kernels):
    right = {("control", "pass"), ("bug", "fail")}
    judged = [
        document(
            AuditKernel,
            role=role,
            verdict=verdict,
            passed=verdict == "pass",
            caught=verdict == "fail",
        )
        for role, verdict in kernels
    ]
    good = all(k in right for k in kernels)
    return document(AuditDocument, summary=document(AuditSummary, good=good), kernels=judged)


def test_an_audit_is_good_if_every_kernel_is_judged_as_what_it_is():
    assert exit_codes.of_audit(audit(("control", "pass"), ("bug", "fail"))) == 0


@pytest.mark.parametrize("kernel", [("control", "fail"), ("bug", "pass")])
def test_one_misjudged_kernel_makes_an_audit_bad(kernel):
    assert exit_codes.of_audit(audit(kernel, ("control", "infra"))) == 1


def test_an_audit_that_only_the_machine_spoiled_says_so():
    assert exit_codes.of_audit(audit(("control", "pass"), ("bug", "infra"))) == 3


@pytest.mark.parametrize(
    ("results", "code"),
    [
        ([(True, "fail")], 0),
        ([(True, "fail"), (False, "pass")], 1),
        ([(False, None)], 1),
        ([(True, "fail"), (False, "unsupported_here")], 3),
    ],
)
def test_a_replay_is_good_if_all_is_reproduced(results, code):
    replayed = [document(ReplayResult, reproduced=r, verdict=v) for r, v in results]
    assert exit_codes.of_replay(document(ReplayDocument, results=replayed)) == code


def test_a_comparison_is_bad_if_anything_differs_or_is_missing():
    differing, missing = document(DifferingKernel), document(MissingKernel)
    assert exit_codes.of_compare(document(CompareDocument)) == 0
    assert exit_codes.of_compare(document(CompareDocument, differing=[differing])) == 1
    assert exit_codes.of_compare(document(CompareDocument, missing=[missing])) == 1


@pytest.mark.parametrize(
    ("outcome", "code"), [("timed", 0), ("wrong", 1), ("failed", 1), ("timing_suspect", 1)]
)
def test_a_time_is_good_only_if_it_holds(outcome, code):
    assert exit_codes.of_time(document(TimeDocument, outcome=outcome)) == code


def ran(*verdicts, **more):
    candidates = [document(RunCandidate, verdict=verdict) for verdict in verdicts]
    return document(RunDocument, candidates=candidates, **more)


def test_a_run_is_bad_by_its_candidates_on_request():
    mixed = ran("pass", "fail", "infra", infra=1)
    assert exit_codes.of_run(mixed) == 3
    assert exit_codes.of_run(mixed, by_candidates=True) == 1
    spoilt = ran("pass", "infra", infra=1)
    assert exit_codes.of_run(spoilt, by_candidates=True) == 3
    skipped = ran("unsupported_here")
    assert exit_codes.of_run(skipped, by_candidates=True) == 0
