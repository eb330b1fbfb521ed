"""An endpoint called over HTTP: whatever it sends is a reply or an error, never an exception."""

import json
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from chat_server import ServedResponse, completion, error, events, streamed
from kerneltruth.generate.chat import ApiError, Reply, Sampling, Usage

KEY = "sk-test-0123456789abcdef"


def test_an_answer_comes_with_its_tokens_and_its_model(serve, endpoint, request_of):
    server = serve("Here it is.")
    reply = endpoint(server).call(request_of())
    assert reply == Reply(
        text="Here it is.",
        finish="stop",
        usage=Usage(prompt=100, completion=20),
        model="served-model",
        id="chatcmpl-1",
    )


def test_what_is_sent_is_the_conversation_and_the_sampling(serve, endpoint, request_of):
    server = serve("ok")
    sampling = Sampling(temperature=0.5, reply_tokens=77, body={"reasoning_effort": "low"})
    endpoint(server, sampling=sampling).call(request_of(text="Write relu."))
    assert server.bodies == [
        {
            "model": "some-model",
            "messages": [
                {"role": "system", "content": "s"},
                {"role": "user", "content": "Write relu."},
            ],
            "max_tokens": 77,
            "temperature": 0.5,
            "reasoning_effort": "low",
        }
    ]
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"


def test_no_temperature_is_sent_unless_there_is_one(serve, endpoint, request_of):
    server = serve("ok")
    endpoint(server).call(request_of())
    assert "temperature" not in server.bodies[0]


def test_a_call_is_one_request_whatever_comes_back(serve, endpoint, request_of):
    server = serve(error(500))
    endpoint(server).call(request_of())
    assert len(server.bodies) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sent", "scope", "said"),
    [
        (error(500, "overloaded"), "call", "500: overloaded"),
        (error(503, "later"), "call", "503: later"),
        (error(429, "slowly"), "call", "429: slowly"),
        (error(408, "late"), "call", "408: late"),
        (error(400, "too long"), "request", "400: too long"),
        (error(422, "strange"), "request", "422: strange"),
        (error(401, "bad key"), "endpoint", "401: bad key"),
        (error(403, "not you"), "endpoint", "403: not you"),
        (error(404, "no such model"), "endpoint", "404: no such model"),
        (error(429, "pay first", code="insufficient_quota"), "endpoint", "429: pay first"),
        (
            ServedResponse(status=502, body=b"<html>Bad Gateway</html>", kind="text/html"),
            "call",
            "502",
        ),
    ],
)
def test_an_error_says_what_it_spoils(serve, endpoint, request_of, sent, scope, said):
    failed = endpoint(serve(sent)).call(request_of())
    assert isinstance(failed, ApiError)
    assert failed.scope == scope
    assert failed.detail.startswith(said)


@pytest.mark.slow
@pytest.mark.parametrize(
    "body",
    [
        b"not json at all",
        b'{"choices": [{"message"',
        b'{"choices": []}',
        b'{"choices": null}',
        b'{"choices": [17]}',
        b'{"choices": [{"index": 0}]}',
        b"[]",
        b"null",
        b"",
        b'{"error": {"message": "the backend died"}}',
    ],
)
def test_a_malformed_response_is_an_error_of_that_call(serve, endpoint, request_of, body):
    failed = endpoint(serve(ServedResponse(body=body))).call(request_of())
    assert isinstance(failed, ApiError)
    assert failed.scope == "call"
    assert "malformed" in failed.detail


def test_fields_that_are_missing_or_strange_cost_no_answer(serve, endpoint, request_of):
    body = {"choices": [{"message": {"content": "ok"}}], "usage": {"prompt_tokens": "many"}}
    reply = endpoint(serve(ServedResponse(body=json.dumps(body).encode()))).call(request_of())
    assert reply == Reply(text="ok")


def test_content_in_parts_is_joined(serve, endpoint, request_of):
    parts = [{"type": "text", "text": "one "}, {"type": "image"}, {"type": "text", "text": "two"}]
    reply = endpoint(serve(ServedResponse(body=completion(parts)))).call(request_of())
    assert reply.text == "one two"


def test_half_a_character_is_replaced(serve, endpoint, request_of):
    body = b'{"choices": [{"message": {"content": "x \\ud83d y"}}]}'
    assert endpoint(serve(ServedResponse(body=body))).call(request_of()).text == "x ? y"


def test_a_refusal_is_an_answer(serve, endpoint, request_of):
    body = completion(None, refusal="I will not.")
    reply = endpoint(serve(ServedResponse(body=body))).call(request_of())
    assert (reply.text, reply.finish) == ("I will not.", "refusal")


def test_an_answer_that_was_cut_off_says_so(serve, endpoint, request_of):
    reply = endpoint(serve(ServedResponse(body=completion("def re", finish="length")))).call(
        request_of()
    )
    assert (reply.text, reply.finish) == ("def re", "length")


def test_an_empty_answer_is_an_answer(serve, endpoint, request_of):
    reply = endpoint(serve(ServedResponse(body=completion("", usage=None)))).call(request_of())
    assert reply == Reply(text="", finish="stop", model="served-model", id="chatcmpl-1")


def test_reasoning_is_kept_apart(serve, endpoint, request_of):
    body = completion("done", reasoning_content="hmm")
    reply = endpoint(serve(ServedResponse(body=body))).call(request_of())
    assert (reply.text, reply.reasoning) == ("done", "hmm")


def test_a_stream_is_put_together(serve, endpoint, request_of):
    server = serve(streamed("def ", "relu", "(x): ..."))
    reply = endpoint(server, stream=True).call(request_of())
    assert reply == Reply(
        text="def relu(x): ...",
        finish="stop",
        usage=Usage(prompt=100, completion=20),
        model="served-model",
        id="x",
    )
    assert server.bodies[0]["stream"] is True
    assert server.bodies[0]["stream_options"] == {"include_usage": True}


def test_an_unrequested_stream_is_read_too(serve, endpoint, request_of):
    assert endpoint(serve(streamed("ok"))).call(request_of()).text == "ok"


@pytest.mark.parametrize(
    "sent",
    [
        ServedResponse(body=events(["a"], finish=None, done=False), kind="text/event-stream"),
        ServedResponse(body=events(["a" * 400]), kind="text/event-stream", cut=True),
        ServedResponse(body=b"data: {nonsense\n\n", kind="text/event-stream"),
        ServedResponse(body=b'data: {"error": {"message": "died"}}\n\n', kind="text/event-stream"),
        ServedResponse(body=b"", kind="text/event-stream"),
    ],
)
def test_a_stream_that_breaks_off_is_an_error_of_that_call(serve, endpoint, request_of, sent):
    failed = endpoint(serve(sent), stream=True).call(request_of())
    assert isinstance(failed, ApiError)
    assert failed.scope == "call"


def test_a_body_that_breaks_off_is_an_error_of_that_call(serve, endpoint, request_of):
    failed = endpoint(serve(ServedResponse(body=completion("a" * 5000), cut=True))).call(
        request_of()
    )
    assert isinstance(failed, ApiError)
    assert failed.scope == "call"


def test_silence_ends_at_the_timeout(serve, endpoint, request_of):
    server = serve(ServedResponse(body=completion("late"), after_s=10.0))
    began = time.monotonic()
    failed = endpoint(server, timeout_s=0.3).call(request_of())
    assert failed == ApiError(scope="call", detail="no whole answer within 0.3 s")
    assert time.monotonic() - began < 8


def test_an_answer_that_trickles_in_ends_at_the_timeout(serve, endpoint, request_of):
    server = serve(ServedResponse(body=completion("late"), drip_s=0.05))
    began = time.monotonic()
    failed = endpoint(server, timeout_s=0.5).call(request_of())
    assert failed.detail == "no whole answer within 0.5 s"
    assert time.monotonic() - began < 8


def test_a_refused_connection_is_an_error_of_the_call(serve, endpoint, request_of):
    server = serve("ok")
    model = endpoint(server)
    server.close()
    failed = model.call(request_of())
    assert failed.scope == "call"
    assert failed.detail.startswith("no connection")


@pytest.mark.parametrize(
    ("headers", "wait_s"),
    [
        ({"retry_after": "7"}, 7.0),
        ({"retry_after": "0.5"}, 0.5),
        ({"retry_after_ms": "250"}, 0.25),
        ({"retry_after": "soon"}, None),
        ({"retry_after": "-3"}, None),
        ({}, None),
    ],
)
def test_a_limit_says_how_long_to_wait(serve, endpoint, request_of, headers, wait_s):
    failed = endpoint(serve(error(429, **headers))).call(request_of())
    assert failed.wait_s == wait_s


def test_a_wait_may_be_a_date(serve, endpoint, request_of):
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    failed = endpoint(serve(error(429, retry_after=date))).call(request_of())
    assert 25 <= failed.wait_s <= 31


def test_the_limit_of_tokens_goes_by_its_new_name_where_the_old_is_refused(
    serve, endpoint, request_of
):
    def script(number, body):
        if "max_tokens" in body:
            return error(400, "Unsupported: use 'max_completion_tokens' instead")
        return "ok"

    server = serve(script)
    model = endpoint(server)
    first = model.call(request_of())
    assert (first.scope, first.wait_s) == ("call", 0.0)
    assert model.call(request_of()).text == "ok"
    assert server.bodies[1]["max_completion_tokens"] == 8192


@pytest.mark.parametrize(
    "sent",
    [
        error(401, f"Incorrect API key provided: {KEY}"),
        error(500, f"header Authorization: Bearer {KEY}"),
        ServedResponse(body=f"what is {KEY}".encode()),
        ServedResponse(body=completion(f"your key is {KEY}", reasoning=f"{KEY}?")),
        streamed(KEY[:9], KEY[9:]),
    ],
)
def test_an_endpoint_that_echoes_the_key_does_not_get_it_into_what_is_kept(
    serve, endpoint, request_of, sent
):
    assert KEY not in repr(endpoint(serve(sent)).call(request_of()))
