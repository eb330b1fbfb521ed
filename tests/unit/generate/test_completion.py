"""What an endpoint may send in place of an answer."""

import tracemalloc

import pytest

from kerneltruth.generate.chat import ApiError
from kerneltruth.generate.completion import ReplyStream, read_completion

MANY = '{"choices":[' + "[]," * 2**21 + "0]}"


def streamed(text):
    stream = ReplyStream()
    stream.feed(f"data: {text}")
    return stream.reply()


@pytest.mark.parametrize("read", [lambda text: read_completion(text.encode()), streamed])
@pytest.mark.parametrize(
    ("text", "says"), [(MANY, "MiB of values"), ("[" * 10**5, "nested too deep")]
)
def test_a_response_that_takes_many_times_its_size_is_an_error_of_the_call(read, text, says):
    tracemalloc.start()
    reply = read(text)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert isinstance(reply, ApiError)
    assert says in reply.detail
    assert peak < 64 * 2**20
