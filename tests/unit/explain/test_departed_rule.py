"""Which rule of quantization is named: the one whose changes explain every result."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from kerneltruth.explain.diagnosis import DiagnosisEffort, diagnose
from kerneltruth.oracle.attempt import AttemptEnded, CaseJudged, judge_cases
from kerneltruth.oracle.plan import Plan
from kerneltruth.tasks.changed_rules import ChangedRule
from kerneltruth.tasks.spec import Output

sys.path.insert(0, str(Path(__file__).parents[1] / "oracle"))

import torch
from scripted import declare, session_of


def codes(x, rounding=torch.round, low=-8):
    return rounding(4 * x).clamp(low, 7)


DOWN = ChangedRule(
    rule="rounding", words="codes are rounded down", reference=lambda x: codes(x, torch.floor)
)
TO_ZERO = ChangedRule(
    rule="rounding",
    words="codes are rounded toward zero",
    reference=lambda x: codes(x, torch.trunc),
)
FROM_ZERO = ChangedRule(
    rule="saturation", words="codes saturate at 0", reference=lambda x: codes(x, low=0)
)
IN_FLOATS = ChangedRule(
    rule="fake_quantization",
    words="nothing is rounded",
    reference=lambda x: 4 * x,
    outputs=(Output(dtype="float32"),),
)
CODES = replace(
    declare(
        "codes(x[M, N])",
        codes,
        outputs=(Output(dtype="int8", compare="exact"),),
        dtypes=("float32",),
        benchmark={"M": 9, "N": 16},
    ),
    changed_rules=(DOWN, TO_ZERO, FROM_ZERO, IN_FLOATS),
)


def diagnosed(answer, task=CODES):
    session = session_of(task, lambda call: answer(call.tensors["x"]))
    plan = Plan(cases=24, strategies=("default", "boundary", "structured"))
    *events, ended = judge_cases(session, plan)
    assert isinstance(ended, AttemptEnded)
    failure = ended.attempt.failure
    judged = [e.judgement for e in events if isinstance(e, CaseJudged)]
    others = [j for j in judged if j is not failure]
    return diagnose(session, failure, others, DiagnosisEffort(evaluations=5))


def test_the_rule_is_named_under_which_all_results_are_right():
    found = diagnosed(lambda x: codes(x, torch.floor).char())
    assert (found.quantization.rule, found.quantization.words) == (
        "rounding",
        "codes are rounded down",
    )
    assert found.quantization.cases >= 3
    assert "(rounding)" in found.explanation
    assert "if codes are rounded down." in found.explanation


def test_floats_in_place_of_codes_are_judged_as_floats():
    assert diagnosed(lambda x: 4 * x).quantization.rule == "fake_quantization"


def test_changes_of_one_rule_are_named_together():
    alike = replace(DOWN, words="codes are truncated")
    task = replace(CODES, changed_rules=(DOWN, alike))
    found = diagnosed(lambda x: codes(x, torch.floor).char(), task)
    assert found.quantization.words == "codes are rounded down or codes are truncated"


def test_nothing_is_named_where_changes_of_two_rules_explain_the_results():
    task = replace(CODES, changed_rules=(DOWN, replace(DOWN, rule="scale")))
    assert diagnosed(lambda x: codes(x, torch.floor).char(), task).quantization is None


@pytest.mark.parametrize(
    "wrong",
    [
        lambda x: codes(x, torch.floor).char().roll(1, -1),
        lambda x: (codes(x) + 1).char(),
        # Right under a change on most inputs, and under none on all.
        lambda x: codes(x, torch.floor if x.shape[-1] % 2 else torch.ceil).char(),
        lambda x: codes(x, torch.floor).char().masked_fill(x > 1.5, 0),
    ],
    ids=["off by one", "one too large", "by size", "by value"],
)
def test_nothing_is_named_where_no_change_explains_every_result(wrong):
    found = diagnosed(wrong)
    assert found.quantization is None
    assert "quantization" not in found.explanation


def test_a_failure_without_a_result_has_no_rule():
    found = diagnosed(lambda x: codes(x, torch.floor).char()[:, 1:])
    assert found.quantization is None


def test_a_task_without_changed_rules_has_none():
    task = replace(CODES, changed_rules=())
    assert diagnosed(lambda x: codes(x, torch.floor).char(), task).quantization is None
