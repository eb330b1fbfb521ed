"""The transcript: on disk before use, readable after a crash, and enough to go on from."""

import json
import re
from dataclasses import replace

import pytest

from kerneltruth.documents.lines import SpentRecord
from kerneltruth.errors import EnvironmentFault, UserError
from kerneltruth.generate.account import Prices
from kerneltruth.generate.answers import spent_on
from kerneltruth.generate.chat import ApiError, Reply, Usage
from kerneltruth.generate.request_pool import Sent
from kerneltruth.generate.review import Review, ShapeTiming
from kerneltruth.generate.transcript import Transcript

_REVIEW = Review(outcome="fail", stage="exe", passed=3, seconds=1.5)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "exchanges.jsonl"


def answered(request, text="ok", tries=1, usage=(10, 5)):
    counted = None if usage is None else Usage(prompt=usage[0], completion=usage[1])
    reply = Reply(text=text, finish="stop", usage=counted)
    return Sent(request=request, answer=reply, tries=tries, seconds=0.5)


def filled(path, request_of):
    transcript = Transcript(path)
    transcript.record(answered(request_of(sample=1), "one", tries=2))
    transcript.record(answered(request_of(sample=0), "zero"))
    error = ApiError(scope="call", detail="500")
    for _ in range(2):
        transcript.record(Sent(request=request_of(sample=2), answer=error, tries=3, seconds=1.0))
    transcript.add_review("suite/relu", 0, 0, _REVIEW)
    return transcript


def test_what_was_recorded_is_there_after_reading_again(path, request_of):
    filled(path, request_of).close()
    again = Transcript(path)
    assert again.reply("suite/relu", 1, 0).text == "one"
    assert again.reply("suite/relu", 2, 0) is None
    assert again.review("suite/relu", 0, 0) == _REVIEW
    assert [e.reply.text for e in again.exchanges()] == ["zero", "one"]


def test_the_account_counts_all_sittings(path, request_of):
    filled(path, request_of).close()
    account = Transcript(path).account
    assert (account.calls, account.answers) == (9, 2)
    assert (account.prompt, account.completion) == (20, 10)


def test_a_line_holds_the_whole_exchange(path, request_of):
    filled(path, request_of)
    line = json.loads(path.read_text().splitlines()[0])
    assert line["kind"] == "answer"
    assert line["messages"][1] == {"role": "user", "content": "Write relu."}
    assert line["reply"]["text"] == "one"
    assert (line["tries"], line["seconds"]) == (2, 0.5)


def test_a_request_whose_line_was_cut_short_is_sent_again(path, request_of):
    filled(path, request_of).close()
    whole = path.read_bytes()
    path.write_bytes(whole[: whole.index(b'"zero"')])
    again = Transcript(path)
    assert again.reply("suite/relu", 0, 0) is None
    assert "cut short" in again.notes[0]
    again.record(answered(request_of(sample=0), "zero again"))
    again.close()
    assert Transcript(path).reply("suite/relu", 0, 0).text == "zero again"


def test_two_processes_do_not_write_one_transcript(path, request_of):
    transcript = filled(path, request_of)
    with pytest.raises(EnvironmentFault, match="another process"):
        Transcript(path)
    transcript.close()


def test_a_damaged_line_is_named(path, request_of):
    filled(path, request_of).close()
    # As an earlier version wrote it, without digests.
    text = re.sub(r',"chain":"\w+"', "", path.read_text())
    path.write_text(text.replace('"round":0', '"turn":0', 1))
    with pytest.raises(UserError, match=r"the line 'suite/relu s1 r0' is damaged"):
        Transcript(path)


def test_other_words_for_a_task_are_another_question(path, request_of, tmp_path):
    filled(path, request_of).close()
    again = Transcript(path)
    again.refuse_other_briefs({"suite/relu": "Write relu.", "suite/new": "x"}, tmp_path)
    with pytest.raises(UserError, match="the prompt for suite/relu has changed"):
        again.refuse_other_briefs({"suite/relu": "Please write relu."}, tmp_path)


def test_timings_survive_the_file(path, request_of):
    timing = ShapeTiming(shape="M=1", candidate_us=1, eager_us=2, ratio=2, low=1.9, high=2.1)
    review = Review(outcome="pass", stage="perf", timings=(timing,))
    transcript = Transcript(path)
    transcript.add_review("suite/relu", 0, 0, review)
    transcript.close()
    assert Transcript(path).review("suite/relu", 0, 0) == review


def test_an_answer_keeps_what_it_took_after_reading_again(path, request_of):
    filled(path, request_of).close()
    transcript = Transcript(path)
    first, _ = transcript.exchanges()
    assert spent_on(first, Prices(prompt=1e6, completion=2e6), transcript) == SpentRecord(
        prompt_tokens=10, completion_tokens=5, seconds=0.5, cost=20.0, judge_seconds=1.5
    )


def test_a_diagnosis_is_kept_and_counts_for_the_answer_that_it_led_to(path, request_of):
    transcript = Transcript(path)
    for part, number, tokens in (
        ("answer", 0, (10, 5)),
        ("diagnosis", 0, (20, 2)),
        ("answer", 1, (30, 5)),
        ("diagnosis", 1, (40, 2)),
    ):
        request = replace(request_of(round=number), part=part)
        transcript.record(answered(request, f"{part} {number}", usage=tokens))
    transcript.close()
    again = Transcript(path)
    assert again.diagnosis("suite/relu", 0, 0).reply.text == "diagnosis 0"
    assert again.diagnosis("suite/relu", 1, 0) is None
    assert (again.account.answers, again.account.prompt) == (4, 100)
    first, last = (spent_on(exchange, None, again) for exchange in again.exchanges())
    assert (first.prompt_tokens, first.completion_tokens, first.seconds) == (10, 5, 0.5)
    # The diagnosis of the last answer led to none.
    assert (last.prompt_tokens, last.completion_tokens, last.seconds) == (90, 9, 1.5)


def test_an_answer_from_a_cache_is_counted_as_one_after_reading_again(path, request_of):
    transcript = Transcript(path)
    transcript.record(replace(answered(request_of()), cached=True))
    transcript.record(answered(request_of(sample=1)))
    transcript.close()
    account = Transcript(path).account
    assert (account.calls, account.answers, account.cached) == (2, 2, 1)


def test_what_the_judge_took_counts_over_all_sittings(path, request_of):
    filled(path, request_of).close()
    transcript = Transcript(path)
    assert transcript.account.judge_s == 1.5
    review = Review(outcome="pass", stage="exe", seconds=2.0)
    transcript.add_review("suite/relu", 1, 0, review)
    assert transcript.account.judge_s == 3.5


def test_what_an_endpoint_or_the_user_does_not_say_is_unknown(path, request_of):
    transcript = Transcript(path)
    transcript.record(answered(request_of(), usage=None))
    (only,) = transcript.exchanges()
    assert spent_on(only, Prices(prompt=1.0, completion=1.0), transcript) == SpentRecord(
        prompt_tokens=None, completion_tokens=None, seconds=0.5, cost=None, judge_seconds=0.0
    )
    transcript.close()
    filled(path.with_name("other.jsonl"), request_of).close()
    other = Transcript(path.with_name("other.jsonl"))
    counted, _ = other.exchanges()
    assert spent_on(counted, None, other).cost is None
