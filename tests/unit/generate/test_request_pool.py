"""Many requests asked: each has one outcome, recorded before it is seen; nothing is overdrawn."""

import asyncio
import random
import signal
import time

import pytest

from kerneltruth.documents.model import plain
from kerneltruth.errors import EnvironmentFault
from kerneltruth.generate.account import Account, Prices, SpendingLimits
from kerneltruth.generate.chat import ApiError, Reply, Usage
from kerneltruth.generate.request_pool import (
    GIVE_UP_AFTER,
    NotSent,
    Pace,
    RetryPolicy,
    Sent,
)

BUSY = ApiError(scope="call", detail="busy")


def answered(outcome):
    return isinstance(outcome, Sent) and isinstance(outcome.answer, Reply)


def unanswered(outcome):
    return isinstance(outcome, Sent) and isinstance(outcome.answer, ApiError)


@pytest.fixture
def requests(request_of):
    return [request_of(sample=n) for n in range(6)]


def test_every_request_has_one_outcome(scripted, pool_of, requests):
    model = scripted("ok")
    outcomes = list(pool_of(model, concurrency=3).ask(requests))
    assert {o.request.sample for o in outcomes} == set(range(6))
    assert all(answered(o) and o.tries == 1 for o in outcomes)
    assert len(model.requests) == 6


def test_an_outcome_is_recorded_before_anyone_sees_it(scripted, pool_of, requests):
    pool = pool_of(scripted("ok"), concurrency=4)
    for outcome in pool.ask(requests):
        assert outcome in pool.recorded


def test_no_more_requests_are_on_their_way_than_may_be(scripted, pool_of, requests):
    together = []
    now = []

    async def script(number, request):
        now.append(request)
        together.append(len(now))
        await asyncio.sleep(0.01)
        now.remove(request)
        return "ok"

    list(pool_of(scripted(script), concurrency=2).ask(requests))
    assert max(together) == 2


def test_a_call_that_fails_is_made_again(scripted, pool_of, requests):
    model = scripted(lambda number, _: BUSY if number < 2 else "ok")
    (outcome,) = pool_of(model).ask(requests[:1])
    assert answered(outcome)
    assert outcome.tries == 3


def test_retries_end(scripted, pool_of, requests):
    model = scripted(BUSY)
    (outcome,) = pool_of(model).ask(requests[:1])
    assert unanswered(outcome)
    assert (outcome.tries, outcome.answer) == (3, BUSY)
    assert len(model.requests) == 3


def test_a_request_that_is_refused_is_not_made_again(scripted, pool_of, requests):
    refused = ApiError(scope="request", detail="too long")
    model = scripted(lambda number, _: refused if number == 1 else "ok")
    outcomes = list(pool_of(model).ask(requests))
    assert [unanswered(o) for o in outcomes].count(True) == 1
    assert len(model.requests) == 6


def test_a_refused_key_ends_everything_at_once(scripted, pool_of, requests):
    refused = ApiError(scope="endpoint", detail="401")
    model = scripted(refused)
    pool = pool_of(model)
    outcomes = list(pool.ask(requests))
    assert pool.fatal == refused
    assert len(model.requests) == 1
    assert [o.reason for o in outcomes if isinstance(o, NotSent)] == ["stopped"] * 5


def test_an_endpoint_that_never_answers_is_given_up(scripted, pool_of, request_of):
    model = scripted(BUSY)
    pool = pool_of(model, retry=RetryPolicy(retries=0))
    outcomes = list(pool.ask([request_of(sample=n) for n in range(20)]))
    assert pool.fatal == BUSY
    assert len(model.requests) == GIVE_UP_AFTER
    assert sum(isinstance(o, NotSent) for o in outcomes) == 20 - GIVE_UP_AFTER


def test_answers_in_between_keep_the_endpoint_in_use(scripted, pool_of, request_of):
    model = scripted(lambda number, _: "ok" if number % 4 == 0 else BUSY)
    pool = pool_of(model, retry=RetryPolicy(retries=0))
    outcomes = list(pool.ask([request_of(sample=n) for n in range(20)]))
    assert pool.fatal is None
    assert sum(answered(o) for o in outcomes) == 5


def test_requests_that_cannot_be_answered_spoil_all_only_if_none_ever_was(
    scripted, pool_of, request_of
):
    refused = ApiError(scope="request", detail="400")
    wanted = [request_of(sample=n) for n in range(10)]
    strange = pool_of(scripted(refused))
    list(strange.ask(wanted))
    assert strange.fatal == refused
    known = pool_of(scripted(refused), account=Account(answers=1))
    assert all(unanswered(o) for o in known.ask(wanted))
    assert known.fatal is None


def test_the_end_of_a_chain_is_neither_an_error_nor_recorded(scripted, pool_of, requests):
    pool = pool_of(scripted(ApiError(scope="chain", detail="no more")))
    outcomes = list(pool.ask(requests))
    assert all(unanswered(o) for o in outcomes)
    assert (pool.recorded, pool.fatal) == ([], None)


def test_a_fault_of_the_record_reaches_the_caller(scripted, pool_of, requests):
    def full(_):
        raise EnvironmentFault("disk full")

    with pytest.raises(EnvironmentFault, match="disk full"):
        list(pool_of(scripted("ok"), record=full).ask(requests))


def test_after_a_stop_nothing_leaves_and_what_is_on_its_way_is_recorded(
    scripted, pool_of, requests
):
    async def script(number, _):
        if pool.in_flight == 2:
            pool.stop()
        await asyncio.sleep(0.01)
        return "ok"

    model = scripted(script)
    pool = pool_of(model, concurrency=2)
    outcomes = list(pool.ask(requests))
    assert len(model.requests) == len(pool.recorded) == 2
    assert [o.reason for o in outcomes if isinstance(o, NotSent)] == ["stopped"] * 4


@pytest.fixture
def interruptible():
    """Python's own handler of SIGINT, which a process in the background begins without."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_leaves_what_is_in_flight_to_be_waited_for(scripted, pool_of, requests):
    async def script(number, _):
        if number == 1:
            signal.raise_signal(signal.SIGINT)
        await asyncio.sleep(0.01)
        return "ok"

    model = scripted(script)
    pool = pool_of(model, concurrency=2)
    with pytest.raises(KeyboardInterrupt):
        list(pool.ask(requests))
    pool.stop()
    assert pool.in_flight == 2
    pool.wait()
    assert len(model.requests) == len(pool.recorded) == 2


@pytest.mark.usefixtures("interruptible")
def test_a_pool_that_is_closed_gives_up_what_is_in_flight(scripted, pool_of, requests):
    async def script(number, _):
        if number == 1:
            signal.raise_signal(signal.SIGINT)
        await asyncio.sleep(60)

    pool = pool_of(scripted(script), concurrency=2)
    with pytest.raises(KeyboardInterrupt):
        list(pool.ask(requests))
    pool.close()
    pool_of.made.remove(pool)
    assert (pool.in_flight, pool.recorded) == (0, [])


def test_the_budget_of_calls_counts_retries(scripted, pool_of, requests):
    model = scripted(lambda number, _: BUSY if number == 1 else "ok")
    pool = pool_of(model, limits=SpendingLimits(calls=4, reply_tokens=10))
    outcomes = list(pool.ask(requests))
    assert len(model.requests) == 4
    assert [o.reason for o in outcomes if isinstance(o, NotSent)] == ["calls"] * 3
    assert pool.refusal == "calls"


def test_several_at_once_do_not_overdraw_the_tokens(scripted, pool_of, request_of):
    # An answer costs 15, and may cost up to 4 + 20 before it is there.
    limits = SpendingLimits(tokens=100, reply_tokens=20)
    account = Account()
    model = scripted(lambda *_: asyncio.sleep(0.005, "ok"))
    pool = pool_of(model, limits=limits, account=account, concurrency=8)
    list(pool.ask([request_of(sample=n) for n in range(40)]))
    assert account.prompt + account.completion <= 100
    assert len(model.requests) == 6
    assert pool.refusal == "tokens"


def test_answers_without_a_count_are_guessed_for_the_budget_and_unknown_in_the_account(
    scripted, pool_of, request_of
):
    account = Account()
    model = scripted(lambda *_: Reply(text="x" * 300))
    pool = pool_of(model, limits=SpendingLimits(tokens=500, reply_tokens=20), account=account)
    list(pool.ask([request_of(sample=n) for n in range(40)]))
    assert len(model.requests) == 5
    document = account.document(Prices(prompt=1, completion=1))
    assert (document.tokens, document.cost) == (None, None)
    assert document.answers_without_tokens == 5


def test_the_budget_of_seconds_ends_the_asking(scripted, pool_of, request_of):
    model = scripted(lambda *_: asyncio.sleep(0.02, "ok"))
    pool = pool_of(model, limits=SpendingLimits(seconds=0.1, reply_tokens=10))
    outcomes = list(pool.ask([request_of(sample=n) for n in range(100)]))
    assert pool.refusal == "seconds"
    assert 1 <= len(model.requests) <= 6
    assert len(outcomes) == 100


def test_a_wait_beyond_the_budget_of_seconds_is_not_waited(scripted, pool_of, request_of):
    limited = ApiError(scope="call", detail="429", wait_s=60.0)
    pool = pool_of(scripted(limited), limits=SpendingLimits(seconds=5.0, reply_tokens=10))
    began = time.monotonic()
    outcomes = list(pool.ask([request_of(sample=n) for n in range(2)]))
    assert time.monotonic() - began < 20
    assert pool.refusal == "seconds"
    assert unanswered(outcomes[0])


def test_a_pace_beyond_the_budget_of_seconds_is_not_waited(scripted, pool_of, request_of):
    model = scripted("ok")
    pool = pool_of(
        model, pace=Pace(per_minute=1), limits=SpendingLimits(seconds=5.0, reply_tokens=10)
    )
    outcomes = list(pool.ask([request_of(sample=n) for n in range(3)]))
    assert [answered(o) for o in outcomes] == [True, False, False]
    assert len(model.requests) == 1


def test_a_cost_is_tokens_times_prices_per_million():
    account = Account()
    account.add_answer(2, Usage(prompt=1_000_000, completion=500_000), 0)
    document = account.document(Prices(prompt=3.0, completion=15.0))
    assert plain(document) == {
        "calls": 2,
        "answers": 1,
        "prompt_tokens": 1_000_000,
        "completion_tokens": 500_000,
        "tokens": 1_500_000,
        "answers_without_tokens": 0,
        "cost": 10.5,
        "cached": 0,
        "judge_seconds": 0.0,
    }
    assert account.document(None).cost is None


def test_waits_double_and_are_spread():
    rng = random.Random(0)
    policy = RetryPolicy(retries=8, first_s=1.0, longest_s=20.0)
    waits = [policy.wait_s(tries, BUSY, rng) for tries in range(1, 9)]
    for wait, longest in zip(waits, (1, 2, 4, 8, 16, 20, 20, 20), strict=True):
        assert longest / 2 <= wait <= longest
    assert policy.wait_s(9, BUSY, rng) is None


def test_the_endpoints_own_wait_counts_unless_it_is_too_long():
    policy = RetryPolicy(longest_s=60.0)
    soon, never = (ApiError(scope="call", detail="", wait_s=s) for s in (7.0, 3600.0))
    assert policy.wait_s(1, soon, random.Random(0)) == 7.0
    assert policy.wait_s(1, never, random.Random(0)) is None


def test_a_pace_spaces_requests_evenly():
    clock = iter([0.0, 0.0, 0.0, 100.0]).__next__
    pace = Pace(per_minute=60, clock=clock)
    assert [pace.turn(), pace.turn()] == [0.0, 1.0]
    assert pace.turn() == 0.0


def test_a_hold_delays_every_request():
    pace = Pace(clock=lambda: 10.0)
    assert pace.turn() == 0.0
    pace.hold(5.0)
    assert [pace.turn(), pace.turn()] == [5.0, 5.0]


def test_a_limit_that_one_request_meets_holds_the_others(scripted, pool_of, request_of):
    limited = ApiError(scope="call", detail="429", wait_s=0.3)
    began = time.monotonic()
    times = []

    def script(number, _):
        times.append(time.monotonic() - began)
        return limited if number == 0 else "ok"

    list(pool_of(scripted(script), concurrency=1).ask([request_of(sample=n) for n in range(3)]))
    assert times[0] < 0.2
    assert all(t >= 0.3 for t in times[1:])
