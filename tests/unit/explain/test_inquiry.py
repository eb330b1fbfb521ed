"""Known facts about a failing case are not computed again."""

import sys
from collections import Counter
from pathlib import Path

from kerneltruth.documents.verdict import CompileError
from kerneltruth.explain.diagnosis import FIRST_S, DiagnosisEffort, diagnose
from kerneltruth.oracle.attempt import judge_cases
from kerneltruth.oracle.plan import Plan
from kerneltruth.runner.observation import Binary, Launch, Observation

sys.path.insert(0, str(Path(__file__).parents[1] / "oracle"))

import torch
from scripted import RELU, returned, session_of


def diagnosed(answer, seconds=60.0, first_s=FIRST_S, **runner):
    """How often each call was made to judge the failing case, and then to explain it.

    Also the explanation, the failure, and how many calls there were before.
    """
    session = session_of(RELU, answer, **runner)
    *_, ended = judge_cases(session, Plan(cases=8, dtypes=("float32",), strategies=("boundary",)))
    failure = ended.attempt.failure
    before = len(session.runner.calls)
    effort = DiagnosisEffort(evaluations=200, seconds=seconds, first_s=first_s)
    found = diagnose(session, failure, (), effort)
    (judged, *_), explaining = session.runner.calls[:before], session.runner.calls[before:]
    return Counter(c.arguments for c in (judged, *explaining)), found, failure, before


def test_a_kind_that_most_wrong_elements_give_shrinks_though_others_show_something_else():
    def mixed(call):
        out = call.tensors["x"] + 100
        out.view(-1)[:1] = 1.5 if call.small_poison else torch.nan
        return out

    _, found, failure, _ = diagnosed(mixed)
    assert failure.verdict.kind == "value"
    # With two elements one would be of either kind.
    assert found.minimal.sizes["M"] * found.minimal.sizes["N"] == 3


def raises(call):
    return Observation(ended="raised", error="RuntimeError", message="no")


def test_no_case_is_called_twice():
    calls, found, failure, _ = diagnosed(raises)
    assert found.minimal.identity != failure.case.identity
    assert len(calls) > 1
    assert set(calls.values()) == {1}


def test_what_does_not_compile_when_it_is_called_shrinks_too():
    refusal = Observation(ended="compile_failed", error="CompilationError", message="no")
    _, found, failure, _ = diagnosed(lambda call: refusal)
    assert found.minimal.sizes == {"M": 1, "N": 1}
    assert found.minimal.identity != failure.case.identity


def test_what_runs_and_does_not_compile_for_a_gpu_shrinks_too():
    def launched(call):
        launch = Launch(kernel="k", grid=(1,), constants={}, signature={}, configs=1)
        return returned(call.tensors["x"].clamp(min=0), launches=(launch,))

    binary = Binary(kernel="k", target="sm_90", ok=False, error="no registers")
    refused = Observation(ended="returned", binaries=(binary,))
    _, found, failure, _ = diagnosed(launched, targets=("sm_90",), compiled=lambda call: refused)
    assert isinstance(failure.verdict, CompileError)
    assert found.minimal.sizes == {"M": 1, "N": 1}


def test_the_first_simpler_case_is_waited_for_beyond_the_seconds_of_all():
    def wrong_if_wide(call):
        x = call.tensors["x"]
        return x.clamp(min=0) + 100 * (x.numel() > 1)

    assert diagnosed(wrong_if_wide, seconds=0.0)[1].minimal.sizes == {"M": 3, "N": 1}
    _, found, failure, _ = diagnosed(wrong_if_wide, seconds=0.0, first_s=0.0)
    assert found.minimal == failure.case


def test_a_case_that_gets_no_smaller_is_not_called_again():
    seen = []

    def only_once(call):
        seen.append(call)
        return raises(call) if len(seen) == 1 else call.tensors["x"].clamp(min=0)

    calls, found, failure, _ = diagnosed(only_once)
    assert found.minimal.identity == failure.case.identity
    assert found.shown
    assert set(calls.values()) == {1}
