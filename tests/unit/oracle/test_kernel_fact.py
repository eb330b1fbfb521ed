"""Own and library kernels of a right result, by what the child counts and by a probe."""

import math
from dataclasses import replace

import pytest
import torch
from scripted import RELU, returned, session_of

from kerneltruth.documents.verdict import Passed, UnsupportedHere
from kerneltruth.oracle.attempt import judge_cases
from kerneltruth.oracle.kernel_fact import NOT_NEEDED, NOT_RIGHT, UNSEEN
from kerneltruth.oracle.large import KIND, NOT_PASSED
from kerneltruth.oracle.plan import Plan
from kerneltruth.runner.observation import KernelLaunches, KernelWork, Observation

OWN = KernelLaunches(name="mine", module="f.py", own=True, launches=1)
MM = KernelLaunches(name="mm", module="aten", own=False, launches=3)
MIXED = KernelWork(runs=(OWN, MM), elements=15, stored=15)


def right(call):
    return call.tensors["x"].clamp(min=0)


def made_by(work, answer=right, idle=None):
    """A candidate whose calls are such work; `idle` is its answer without its own kernels."""

    def called(call):
        asleep = call.kernels == "idle" and idle is not None
        seen = (idle if asleep else answer)(call)
        seen = seen if isinstance(seen, Observation) else returned(seen)
        elements = sum(math.prod(r.shape) for r in seen.results)
        if work is None or call.kernels == "run":
            return seen
        return replace(seen, work=replace(work, elements=elements))

    return called


def attempt_of(answer, *, language="triton", cases=5, source="", **plan):
    session = session_of(RELU, answer, language=language, source=source)
    *_, ended = judge_cases(session, Plan(cases=cases, domain="core", **plan))
    return ended.attempt


def untouched(call):
    return torch.full_like(call.tensors["x"], float("nan"))


def raising(call):
    del call
    return Observation(ended="raised", error="AssertionError", message="the flag is not set")


def test_a_result_that_is_wrong_without_its_kernels_is_their_work():
    attempt = attempt_of(made_by(MIXED, idle=untouched))
    assert attempt.profile["kernel"].status == "held"
    fact = attempt.kernel
    assert (fact.own_launches, fact.launches, fact.own, fact.probe) == (1, 4, 0.25, "needed")
    assert fact.own + fact.library == 1
    assert not attempt.torch_only


def test_a_call_that_does_not_return_without_its_kernels_needs_them():
    assert attempt_of(made_by(MIXED, idle=raising)).kernel.probe == "needed"


def test_a_result_that_stays_right_without_its_kernels_is_the_work_of_others():
    entry = attempt_of(made_by(MIXED)).profile["kernel"]
    assert (entry.status, entry.reason) == ("broken", NOT_NEEDED)


def test_a_result_that_is_right_by_chance_of_its_memory_is_probed_again():
    def lucky(call):
        return right(call) if not call.small_poison else untouched(call)

    assert attempt_of(made_by(MIXED, idle=lucky)).kernel.probe == "needed"


def test_one_case_that_needs_no_kernel_does_not_decide():
    calls = []

    def idle(call):
        calls.append(call.arguments[0].shape)
        return right(call) if call.arguments[0].shape == calls[0] else untouched(call)

    assert attempt_of(made_by(MIXED, idle=idle)).kernel.probe == "needed"
    assert len({*calls}) == 2


def test_a_candidate_without_launches_has_no_kernel():
    attempt = attempt_of(made_by(KernelWork(runs=(MM,), elements=15, stored=0)))
    entry = attempt.profile["kernel"]
    assert (entry.status, attempt.torch_only) == ("broken", True)
    assert "no kernel of its own; PyTorch's operators did the work: mm" in entry.reason
    assert attempt.verdict == Passed()


def test_where_no_call_launches_an_own_kernel_the_first_one_counts():
    none = KernelWork(runs=(MM,), elements=15, stored=0)
    attempt = attempt_of(made_by(none))
    session = session_of(RELU, made_by(none), language="triton")
    first = next(iter(judge_cases(session, Plan(cases=5, domain="core")))).judgement.case
    assert attempt.kernel.case == first.summary()


def test_what_a_package_may_launch_is_not_seen():
    none = KernelWork(runs=(MM,), elements=15, stored=0)
    source = "import torch\nimport cutlass.cute\ndef relu(x):\n    pass\n"
    session = session_of(RELU, made_by(none), source=source)
    *_, ended = judge_cases(session, Plan(cases=5, domain="core"))
    entry = ended.attempt.profile["kernel"]
    assert (entry.status, entry.reason) == ("not_tried", UNSEEN)
    assert ended.attempt.kernel.own_launches is None


def test_plain_numpy_is_not_called_torch_only():
    attempt = attempt_of(made_by(KernelWork(elements=15, stored=0)), language="numpy")
    assert attempt.profile["kernel"].status == "broken"
    assert not attempt.torch_only


def test_the_first_call_that_launches_an_own_kernel_is_the_one_that_counts():
    none = KernelWork(runs=(MM,), elements=15, stored=0)
    seen = iter([none, none])

    def answer(call):
        if call.kernels == "idle":
            return replace(returned(untouched(call)), work=MIXED)
        counted = next(seen, MIXED) if call.kernels == "count" else None
        return replace(returned(right(call)), work=counted)

    assert attempt_of(answer).kernel.own_launches == 1


def test_calls_are_counted_until_an_own_kernel_was_seen():
    session = session_of(RELU, made_by(MIXED, idle=untouched), language="triton")
    [*_, _] = judge_cases(session, Plan(cases=5, domain="core"))
    requests = [call.kernels for call in session.runner.calls]
    assert requests.count("count") == requests.count("idle") == 1


@pytest.mark.parametrize(("language", "most"), [("triton", 40), ("cuda", 8), ("torch", 1)])
def test_calls_without_an_own_kernel_are_counted_as_long_as_one_may_come(language, most):
    none = KernelWork(runs=(MM,), elements=15, stored=0)
    session = session_of(RELU, made_by(none), language=language)
    [*_, _] = judge_cases(session, Plan(cases=20, domain="core"))
    requests = [call.kernels for call in session.runner.calls]
    assert requests.count("count") == min(most, len(requests))


@pytest.mark.parametrize(
    ("work", "answer", "reason"),
    [
        (KernelWork(seen=False, elements=15), right, UNSEEN),
        (MIXED, untouched, NOT_RIGHT),
        (None, raising, "no call returned"),
    ],
)
def test_what_cannot_be_decided_is_not_tried(work, answer, reason):
    entry = attempt_of(made_by(work, answer)).profile["kernel"]
    assert (entry.status, entry.reason) == ("not_tried", reason)


@pytest.mark.parametrize(
    ("source", "opened"),
    [("kept = {}\ndef relu(x):\n    kept[0] = x\n", []), ("def relu(x):\n    pass\n", ["run"])],
)
def test_a_candidate_that_may_keep_what_idle_kernels_left_is_not_called_again(source, opened):
    session = session_of(RELU, made_by(MIXED, idle=untouched), language="triton", source=source)
    [*_, _] = judge_cases(session, Plan(cases=5, domain="core"))
    assert session.runner.opened == opened


def test_a_required_kernel_that_did_no_work_fails_and_says_what_to_do():
    attempt = attempt_of(made_by(MIXED), require_kernel=True)
    assert (attempt.verdict.word, attempt.verdict.kind) == ("fail", "no_kernel")
    assert "--require-kernel" in attempt.verdict.detail
    assert attempt.failure is None
    assert attempt.score <= 0.1


def test_a_required_kernel_that_is_not_seen_is_no_pass():
    work = KernelWork(seen=False, elements=15)
    verdict = attempt_of(made_by(work), require_kernel=True).verdict
    assert isinstance(verdict, UnsupportedHere)
    assert UNSEEN in verdict.reason


def test_a_wrong_result_stays_wrong_where_a_kernel_is_required():
    attempt = attempt_of(made_by(MIXED, untouched), require_kernel=True)
    assert attempt.verdict.kind != "no_kernel"


def test_a_kernel_of_its_own_passes_where_one_is_required():
    assert attempt_of(made_by(MIXED, idle=untouched), require_kernel=True).verdict == Passed()


SOURCE = "@triton.jit\ndef mine(x): tl.store(x, 1)\n\ndef relu(x): mine[(1,)](x)\n"


def noticing(call):
    """Right whenever it is not asked what it is without its kernels."""
    return untouched(call) if call.kernels == "idle" else right(call)


def working(call):
    """Right with its kernels alone."""
    return right(call) if "tl.store" in call.source and call.kernels != "idle" else untouched(call)


@pytest.mark.parametrize(
    ("answer", "work", "status"),
    [
        (noticing, MIXED, "broken"),
        (working, MIXED, "held"),
        # It says nothing about a kernel that the source does not show.
        (noticing, replace(MIXED, runs=(OWN, replace(OWN, name="made"), MM)), "held"),
    ],
)
def test_the_judge_empties_required_kernels_itself(answer, work, status):
    attempt = attempt_of(made_by(work, answer), source=SOURCE, require_kernel=True)
    assert attempt.profile["kernel"].status == status
    assert attempt.verdict.word == ("pass" if status == "held" else "fail")


def test_what_need_not_bring_a_kernel_is_not_called_without_it():
    assert attempt_of(made_by(MIXED, noticing), source=SOURCE).kernel.probe == "needed"


def test_a_result_that_must_be_its_own_kernels_work_and_is_not_makes_no_large_call():
    session = session_of(RELU, made_by(MIXED), language="triton", device="cuda:0")
    plan = Plan(cases=40, large=True, require_kernel=True)
    *_, ended = judge_cases(session, plan)
    shapes = ended.attempt.profile["shapes"]
    assert (shapes.status, shapes.untried[KIND]) == ("held", NOT_PASSED)


def test_calls_without_the_kernels_take_from_the_candidates_time():
    emptied = lambda call: "tl.store" not in call.source
    answer = lambda call: returned(noticing(call), seconds=1.0 if emptied(call) else 0.0)
    session = session_of(RELU, made_by(MIXED, answer), language="triton", source=SOURCE)
    [*judge_cases(session, Plan(cases=5, budget_s=100.0, require_kernel=True))]
    calls = sum(map(emptied, session.runner.calls))
    assert calls > 0
    assert session.allowance.left_s == 100.0 - calls
