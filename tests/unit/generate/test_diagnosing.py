"""What `geak` asks next: a diagnosis after each review, then a kernel by it, then a faster one."""

import pytest

from kerneltruth.generate.chat import Reply
from kerneltruth.generate.prompts import load_prompts
from kerneltruth.generate.review import Review, ShapeTiming
from kerneltruth.generate.trajectory import method_of
from kerneltruth.generate.turns import Turn

PROMPTS = load_prompts()
METHOD = method_of("geak", samples=None, rounds=20)
WRONG = Review(outcome="fail", stage="exe", passed=3, cases=4, explanation="The last row is 0.")


def right(ratio):
    timing = ShapeTiming(
        shape=f"M={ratio}", candidate_us=10 / ratio, eager_us=10, ratio=ratio, low=ratio, high=ratio
    )
    return Review(outcome="pass", stage="perf", passed=4, cases=4, timings=(timing,))


def turn(number, review, *, diagnosed=True):
    said = Reply(text=f"<think>hm</think>diagnosis {number}") if diagnosed else None
    reply = Reply(text=f"```python\nkernel_{number} = 1\n```")
    return Turn(reply=reply, review=review, diagnosis=said)


def turns_of(*reviews):
    return [turn(number, review) for number, review in enumerate(reviews)]


def ask(turns, method=METHOD):
    return method.next("suite/relu", 0, turns, "the brief", PROMPTS)


def contents(request):
    return [message.content for message in request.messages]


def test_a_review_is_diagnosed_in_words_before_the_next_kernel():
    request = ask([turn(0, WRONG, diagnosed=False)])
    assert (request.part, request.round) == ("diagnosis", 0)
    assert request.key == "suite/relu s0 r0 diagnosis"
    assert [m.role for m in request.messages] == ["system", "user", "assistant", "user"]
    assert "The last row is 0." in contents(request)[3]
    assert "Do not write the kernel yet" in contents(request)[3]
    assert "hand in" not in contents(request)[3]


def test_the_next_kernel_is_asked_for_with_the_diagnosis():
    request = ask(turns_of(WRONG))
    assert (request.part, request.round) == ("answer", 1)
    roles = ["system", "user", "assistant", "user", "assistant", "user"]
    assert [m.role for m in request.messages] == roles
    assert contents(request)[4] == "diagnosis 0"
    assert "by that diagnosis" in contents(request)[5]


def test_an_empty_diagnosis_is_no_empty_message():
    silent = Turn(reply=Reply(text="x"), review=WRONG, diagnosis=Reply(text="<think>so</think> "))
    assert contents(ask([silent]))[4] == "I cannot say."


def test_a_kernel_that_is_not_right_is_debugged_from_the_last_answer():
    further = Review(outcome="fail", stage="exe", passed=9, cases=10)
    assert "kernel_1" in contents(ask(turns_of(further, WRONG)))[2]


def test_a_right_kernel_is_asked_to_be_faster_by_its_times():
    shown = contents(ask(turns_of(WRONG, right(0.5))))
    assert "kernel_1" in shown[2]
    assert "2.00 times slower" in shown[3]
    assert "limits its speed" in shown[3]
    assert "write a faster kernel" in shown[5]
    assert "kernel_0" not in "".join(shown)


def test_the_fastest_so_far_is_shown_last_and_the_others_slowest_first():
    shown = contents(ask(turns_of(right(2.0), right(0.5), right(1.0))))
    assert "kernel_0" in shown[2]
    assert shown[5].index("kernel_1") < shown[5].index("kernel_2")
    assert shown[5].index("diagnosis 1") < shown[5].index("diagnosis 2")
    assert "0.50 times" not in shown[5]
    assert "M=0.5: 20.0 us" in shown[5]


def test_five_right_kernels_are_shown_at_most():
    shown = "".join(contents(ask(turns_of(*(right(1 + n / 10) for n in range(7))))))
    assert [n for n in range(7) if f"kernel_{n}" in shown] == [2, 3, 4, 5, 6]


def test_a_faster_kernel_that_came_out_wrong_is_debugged_five_times_and_then_left():
    fast = right(1.5)
    for failures in range(1, 6):
        request = ask(turns_of(fast, *[WRONG] * failures))
        assert f"kernel_{failures}" in contents(request)[2], failures
    shown = contents(ask(turns_of(fast, *[WRONG] * 6)))
    assert "kernel_0" in shown[2]
    assert "The last 6 attempts at a faster kernel did not come out right" in shown[5]
    assert "kernel_7" in contents(ask(turns_of(fast, *[WRONG] * 7)))[2]


@pytest.mark.parametrize(
    "review",
    [
        Review(outcome="pass", stage="exe", passed=4, cases=4),
        Review(outcome="unsupported_here", stage="call"),
    ],
)
def test_a_chain_ends_where_there_is_nothing_to_diagnose(review):
    assert ask([turn(0, review, diagnosed=False)]) is None


def test_the_last_round_is_not_diagnosed():
    method = method_of("geak", samples=None, rounds=2)
    assert ask([turn(0, WRONG), turn(1, WRONG, diagnosed=False)], method) is None


def test_an_answer_that_was_not_judged_ends_the_chain():
    assert ask([turn(0, None, diagnosed=False)]) is None
