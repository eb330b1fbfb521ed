"""PyTorch's own function under the same session: what it fails says nothing of a kernel."""

from dataclasses import replace

import pytest
from scripted import RELU, ScriptedRunner, case_of, declare, returned, session_of

from kerneltruth.documents.verdict import Failed, Passed, Void
from kerneltruth.oracle.attempt import judge_cases
from kerneltruth.oracle.eager_checks import EagerChecks
from kerneltruth.oracle.plan import Plan
from kerneltruth.runner.candidate import Candidate
from kerneltruth.runner.observation import Observation

TORCH = Candidate(source="", path="relu.py", sha256="1" * 64, language="torch", entry="relu")


def right(call):
    return call.tensors["x"].clamp(min=0)


def wrong(call):
    return call.tensors["x"] + 100


def strided(call):
    (argument,) = call.arguments
    return argument.strides != (argument.shape[1], 1)


def only(condition, instead):
    """Right, but where the condition holds."""
    return lambda call: instead(call) if condition(call) else right(call)


def refuses(call):
    return Observation(ended="raised", error="RuntimeError", message="no such stride")


def writes(call):
    (argument,) = call.arguments
    after = bytearray(argument.buffer)
    after[argument.offset * 4] ^= 0x55
    return returned(right(call), buffers={"x": bytes(after)})


def judge_scripted(answer, control, *, declared=RELU, cases=24, **plan):
    session = session_of(declared, answer)
    runner = ScriptedRunner(control)
    session.eager_checks = EagerChecks(runner, session.cache, lambda task: TORCH)
    *judged, ended = judge_cases(session, Plan(cases=cases, dtypes=("float32",), **plan))
    session.eager_checks.close()
    return ended.attempt, [event.judgement for event in judged], runner


@pytest.mark.parametrize(
    ("control", "said"),
    [
        (only(strided, refuses), "raises RuntimeError: no such stride"),
        (only(strided, writes), "is not accepted either: wrote to its input `x`"),
        (
            only(strided, lambda call: right(call).double()),
            "is not accepted either: dtype float64; expected float32",
        ),
        (
            only(strided, lambda call: right(call).unsqueeze(0)),
            "is not accepted either: shape",
        ),
    ],
)
def test_what_pytorch_itself_fails_is_void_counted_and_replaced(control, said):
    attempt, judged, _ = judge_scripted(only(strided, wrong), control)
    assert attempt.verdict == Passed()
    assert (attempt.cases, attempt.failed) == (24, 0)
    voids = [j for j in judged if isinstance(j.verdict, Void)]
    assert len(voids) == sum(attempt.void.values()) > 0
    assert all(f"PyTorch's own function {said}" in reason for reason in attempt.void)
    assert len(judged) == 24 + len(voids)


def test_what_pytorch_does_right_convicts():
    attempt, _, _ = judge_scripted(only(strided, wrong), right)
    assert attempt.profile["layouts"].status == "broken"
    assert attempt.void == {}


def test_simpler_cases_that_pytorch_fails_too_do_not_take_the_blame():
    attempt, _, _ = judge_scripted(wrong, only(lambda call: not strided(call), refuses))
    broken = [key for key, entry in attempt.profile.items() if entry.status == "broken"]
    assert broken == ["layouts"]


def test_pytorch_does_not_run_on_cases_that_pass():
    _, _, runner = judge_scripted(right, right)
    assert (runner.opened, runner.calls) == ([], [])


def test_a_case_is_put_to_pytorch_once_for_all_candidates_of_a_task():
    runner = ScriptedRunner(refuses)
    session = session_of(RELU, wrong)
    checks = EagerChecks(runner, session.cache, lambda task: TORCH)
    expectation = session.cache.get(RELU, case_of(RELU))
    verdict = Failed(kind="value", detail="")
    for _ in range(2):
        assert checks.objection(RELU, expectation, verdict, deadline_s=5) is not None
    assert (len(runner.calls), runner.opened) == (1, ["run"])
    other = session.cache.get(RELU, case_of(RELU, N=6))
    checks.objection(RELU, other, verdict, deadline_s=5)
    assert (len(runner.calls), runner.opened) == (2, ["run"])
    checks.close(wait=True)
    assert (runner.opened, runner.waited) == ([], [True])


@pytest.mark.parametrize(("foreign", "loaded"), [(False, ["gelu"]), (True, [])])
def test_functions_of_our_own_follow_one_another_in_one_child(foreign, loaded):
    runner = ScriptedRunner(refuses)
    other = replace(declare("gelu(x[M, N])", lambda x: x.clamp(min=0)), foreign=foreign)
    session = session_of(RELU, wrong)
    checks = EagerChecks(runner, session.cache, lambda task: replace(TORCH, entry=task.entry))
    verdict = Failed(kind="value", detail="")
    for task in (RELU, other):
        expectation = session.cache.get(task, case_of(task))
        assert checks.objection(task, expectation, verdict, deadline_s=5) is not None
    assert (runner.opened, runner.loaded_instead) == (["run"], loaded)
    checks.close()
    # What a user's own code may leave behind stays in a process of its own.
    assert len(runner.waited) == 1 + foreign


def test_all_cases_void_is_no_pass():
    attempt, _, _ = judge_scripted(wrong, refuses)
    assert attempt.verdict.word == "unrefereeable"
    assert "PyTorch's own function raises" in attempt.verdict.reason


def lacks(call):
    return Observation(
        ended="raised", error="RuntimeError", message="\"relu\" not implemented for 'Half'"
    )


def test_what_only_this_cpu_lacks_excuses_no_wrong_value():
    attempt, _, _ = judge_scripted(wrong, lacks)
    assert isinstance(attempt.verdict, Failed)
    attempt, _, _ = judge_scripted(lacks, lacks, domain="core")
    assert attempt.verdict.word == "unrefereeable"


def test_a_definitions_own_program_need_not_return_the_promised_dtype():
    own = replace(declare("relu(x[M, N])", lambda x: x.clamp(min=0)), foreign=True)
    double = lambda call: right(call).double()
    attempt, _, _ = judge_scripted(wrong, double, declared=own)
    assert attempt.verdict.kind == "value"
    attempt, _, _ = judge_scripted(double, double, declared=own)
    assert attempt.verdict.word == "unrefereeable"
