"""Second rounds: what passed is judged again in a fresh child, on other cases."""

import pytest
from scripted import RELU, session_of

from kerneltruth.documents.records import SecondRound
from kerneltruth.documents.verdict import Passed
from kerneltruth.oracle.attempt import AttemptEnded, CaseJudged
from kerneltruth.oracle.plan import Plan
from kerneltruth.oracle.second_round import SecondRoundBegun, is_drawn, judge_candidate, second_seed

PLAN = Plan(seed=7, cases=6)
TWICE = Plan(seed=7, cases=6, twice=1.0)


def right(call):
    return call.tensors["x"].clamp(min=0)


class WrongInLaterChildren:
    """Right until the first child ends."""

    def __init__(self):
        self.runner = None

    def __call__(self, call):
        return right(call) + 100 * bool(self.runner.waited)


def rounds(answer, plan):
    session = session_of(RELU, answer)
    if isinstance(answer, WrongInLaterChildren):
        answer.runner = session.runner
    *events, ended = judge_candidate(session, plan)
    assert isinstance(ended, AttemptEnded)
    return ended.attempt, events, session


def test_a_right_candidate_is_judged_once_unless_it_is_asked():
    attempt, events, session = rounds(right, PLAN)
    assert attempt.second_round is None
    assert not [e for e in events if isinstance(e, SecondRoundBegun)]
    assert session.runner.waited == []


def test_the_second_round_is_in_a_fresh_child_on_other_cases():
    attempt, events, session = rounds(right, TWICE)
    assert attempt.verdict == Passed()
    seed = second_seed(7)
    assert attempt.second_round == SecondRound(reason="asked", seed=seed, verdict="pass", cases=6)
    assert len(session.runner.waited) == 1
    begun = [i for i, e in enumerate(events) if isinstance(e, SecondRoundBegun)]
    assert len(begun) == 1
    judged = [
        {e.judgement.case.seed for e in part if isinstance(e, CaseJudged)}
        for part in (events[: begun[0]], events[begun[0] :])
    ]
    assert judged[0].isdisjoint(judged[1])
    assert attempt.cases == 6


def test_a_pass_holds_only_if_both_rounds_do():
    attempt, _, _ = rounds(WrongInLaterChildren(), TWICE)
    assert (attempt.verdict.word, attempt.verdict.kind) == ("fail", "value")
    assert attempt.second_round.verdict == "fail"
    assert attempt.failure is not None


def test_what_fails_at_once_is_not_judged_again():
    attempt, _, session = rounds(lambda call: right(call) + 100, TWICE)
    assert attempt.second_round is None
    assert session.runner.waited == []


def test_a_share_is_drawn_from_the_seed_and_the_source():
    sources = [f"{n:064x}" for n in range(2000)]
    drawn = [s for s in sources if is_drawn(7, s, 1 / 20)]
    assert 60 < len(drawn) < 140
    assert drawn == [s for s in sources if is_drawn(7, s, 1 / 20)]
    assert drawn != [s for s in sources if is_drawn(8, s, 1 / 20)]


@pytest.mark.parametrize("share", [0.0, 0.999999])
def test_a_drawn_candidate_says_so(share):
    attempt, _, _ = rounds(right, Plan(seed=7, cases=6, twice=share))
    reason = attempt.second_round and attempt.second_round.reason
    assert reason == ("drawn" if share else None)
