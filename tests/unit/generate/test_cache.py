"""Answers by content: the same request is not paid again, and no sample is another's answer."""

from dataclasses import replace

import pytest

from kerneltruth.generate.account import Account, SpendingLimits
from kerneltruth.generate.cache import AnswerCache
from kerneltruth.generate.chat import ApiError, Message, Reply, Sampling, Usage
from kerneltruth.generate.request_pool import NotSent, Pace

REPLY = Reply(text="said", finish="stop", usage=Usage(prompt=10, completion=5))


@pytest.fixture
def cache(tmp_path):
    return AnswerCache(
        folder=tmp_path / "cache", url="http://here/v1", model="some-model", sampling=Sampling()
    )


def test_the_same_request_has_its_answer(cache, request_of):
    cache.put(request_of(sample=1), REPLY, 2.5)
    kept = cache.get(request_of(sample=1))
    assert (kept.reply, kept.seconds) == (REPLY, 2.5)


def test_whatever_may_change_an_answer_makes_another_request(cache, request_of):
    request = request_of(sample=1)
    cache.put(request, REPLY, 2.5)
    system, user = request.messages
    others = [
        replace(request, sample=2),
        replace(request, round=1),
        replace(request, part="diagnosis"),
        replace(request, messages=(system,)),
        replace(request, messages=(system, replace(user, content="Write relu"))),
        replace(request, messages=(system, Message(role="assistant", content=user.content))),
    ]
    assert [cache.get(other) for other in others] == [None] * len(others)
    elsewhere = [
        replace(cache, url="http://there/v1"),
        replace(cache, model="other"),
        replace(cache, sampling=Sampling(temperature=0.8)),
        replace(cache, sampling=Sampling(reply_tokens=99)),
        replace(cache, sampling=Sampling(body={"seed": 7})),
    ]
    assert [other.get(request) for other in elsewhere] == [None] * len(elsewhere)


def test_a_damaged_file_is_no_answer_and_is_replaced(cache, request_of):
    cache.put(request_of(), REPLY, 1.0)
    (file,) = cache.folder.rglob("*.json")
    for damage in ("", "{", "[1]", file.read_text().replace("some-model", "any")):
        file.write_text(damage)
        assert cache.get(request_of()) is None
    cache.put(request_of(), REPLY, 1.0)
    assert cache.get(request_of()).reply == REPLY


def test_a_pool_asks_only_for_what_the_cache_lacks(cache, scripted, pool_of, request_of):
    cache.put(request_of(sample=0), REPLY, 7.0)
    model, account = scripted("new"), Account()
    pool = pool_of(model, cache=cache, account=account)
    found = {o.request.sample: o for o in pool.ask([request_of(sample=n) for n in range(2)])}
    assert [request.sample for request in model.requests] == [1]
    assert (found[0].answer, found[0].seconds, found[0].cached) == (REPLY, 7.0, True)
    assert not found[1].cached
    assert cache.get(request_of(sample=1)).reply.text == "new"
    # An equal budget buys as many answers, wherever they come from.
    assert (account.calls, account.answers, account.cached) == (2, 2, 1)
    assert account.prompt + account.completion == 30


def test_answers_from_the_cache_count_in_the_budget(cache, scripted, pool_of, request_of):
    wanted = [request_of(sample=n) for n in range(3)]
    for request in wanted:
        cache.put(request, REPLY, 1.0)
    pool = pool_of(scripted("new"), cache=cache, limits=SpendingLimits(calls=2, reply_tokens=10))
    outcomes = list(pool.ask(wanted))
    assert [type(outcome) is NotSent for outcome in outcomes] == [False, False, True]
    assert pool.refusal == "calls"


def test_answers_from_the_cache_wait_for_no_pace(cache, scripted, pool_of, request_of):
    wanted = [request_of(sample=n) for n in range(3)]
    for request in wanted:
        cache.put(request, REPLY, 1.0)
    # At one call in a thousand minutes, a second one would never end.
    pool = pool_of(scripted("new"), cache=cache, pace=Pace(0.001))
    assert all(outcome.cached for outcome in pool.ask(wanted))


def test_a_request_without_an_answer_is_not_kept(cache, scripted, pool_of, request_of):
    refused = ApiError(scope="request", detail="400")
    list(pool_of(scripted(refused), cache=cache).ask([request_of()]))
    assert not cache.folder.exists()
