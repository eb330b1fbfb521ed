"""The offline model answers as it was recorded, and says what it has not."""

import asyncio
import json
from dataclasses import replace

import pytest

from kerneltruth.errors import UserError
from kerneltruth.generate.chat import Reply, Usage
from kerneltruth.generate.recording import read_recording
from kerneltruth.generate.request_pool import Sent
from kerneltruth.generate.transcript import TRANSCRIPT, Transcript


@pytest.fixture
def record(tmp_path):
    def write(*lines):
        path = tmp_path / "mine.jsonl"
        path.write_text("".join(f"{x if isinstance(x, str) else json.dumps(x)}\n" for x in lines))
        return path

    return write


def test_the_reply_of_a_place_is_said_again(record, request_of):
    model = read_recording(
        record(
            {"task": "relu", "text": "first"},
            {"task": "suite/relu", "sample": 1, "round": 2, "text": "third", "finish": "length"},
        )
    )
    assert asyncio.run(model.call(request_of())) == Reply(text="first")
    assert asyncio.run(model.call(request_of(sample=1, round=2))) == Reply(
        text="third", finish="length"
    )
    assert model.tasks == {"relu", "suite/relu"}


def test_what_was_not_recorded_is_said_to_be_missing(record, request_of):
    model = read_recording(record({"task": "relu", "text": "x"}))
    assert asyncio.run(model.call(request_of(sample=1))).scope == "request"
    assert (
        "no reply is recorded for suite/relu s1 r0"
        in asyncio.run(model.call(request_of(sample=1))).detail
    )


def test_a_chain_ends_where_its_recording_does(record, request_of):
    model = read_recording(record({"task": "relu", "text": "x"}))
    assert asyncio.run(model.call(request_of(round=1))).scope == "chain"


def test_a_diagnosis_is_recorded_beside_the_answer_that_it_is_about(record, request_of):
    lines = ({"task": "relu", "text": "x"}, {"task": "relu", "text": "why", "kind": "diagnosis"})
    model = read_recording(record(*lines))
    request = replace(request_of(), part="diagnosis")
    assert asyncio.run(model.call(request)) == Reply(text="why")
    assert asyncio.run(model.call(request_of())) == Reply(text="x")
    without = read_recording(record(lines[0]))
    assert asyncio.run(without.call(request)).scope == "chain"
    with pytest.raises(UserError, match="a second diagnosis for 'relu'"):
        read_recording(record(*lines, lines[1]))


def test_the_label_is_the_recorded_model_or_the_files_name(record):
    assert read_recording(record({"task": "relu", "text": "x"})).label == "mine"
    assert read_recording(record({"task": "relu", "text": "x", "model": "big"})).label == "big"


def test_the_transcript_of_a_generation_is_a_recording(tmp_path, request_of):
    transcript = Transcript(tmp_path / TRANSCRIPT)
    reply = Reply(text="said", finish="stop", usage=Usage(prompt=3, completion=4), model="big")
    transcript.record(Sent(request=request_of(), answer=reply, tries=1, seconds=0.1))
    transcript.close()
    model = read_recording(tmp_path)
    assert asyncio.run(model.call(request_of())) == reply


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", r"mine.jsonl:1: not JSON"),
        ("[]", "not an object but list"),
        ({"text": "x"}, "needs `task` and `text`"),
        ({"task": "relu"}, "needs `task` and `text`"),
        ({"task": "relu", "text": "x", "sample": "1"}, "whole numbers"),
        ({"task": "relu", "text": "x", "round": -1}, "whole numbers"),
        ({"task": "relu", "text": "x", "finish": 3}, r"mine.jsonl:1: no valid reply: Expected"),
    ],
)
def test_a_line_that_is_no_reply_is_named(record, line, said):
    with pytest.raises(UserError, match=said):
        read_recording(record(line))


def test_two_replies_for_one_place_are_refused(record):
    with pytest.raises(UserError, match="a second answer for 'relu', sample 0, round 0; keep one"):
        read_recording(record({"task": "relu", "text": "x"}, {"task": "relu", "text": "y"}))


def test_a_file_without_replies_or_that_is_not_there_is_refused(record, tmp_path):
    with pytest.raises(UserError, match="no replies in it; give each a line"):
        read_recording(record(""))
    with pytest.raises(UserError, match="No such file"):
        read_recording(tmp_path / "none.jsonl")
