"""Messages cross the wall as they are."""

import io
import json
import struct
from dataclasses import asdict, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kerneltruth.runner.arguments import ScalarArgument
from kerneltruth.runner.child.offering import offered_scalar
from kerneltruth.runner.observation import Observation, TensorResult
from kerneltruth.runner.protocol import ProtocolError, Rehearse
from kerneltruth.runner.timing.messages import (
    AllocateBuffers,
    CaptureGraphs,
    FillBuffers,
    PrepareInputs,
    RunBatch,
    ShowResult,
    SpotCheck,
    Supply,
)
from kerneltruth.runner.wire import MAGIC, VERSION, decode, encode, pieces

POOL = bytes(range(64))
SUPPLY = Supply(name="x", dtype="float32", shape=(2, 3), pool=POOL, shown=True)


def round_trip(message, limit=2**20):
    return decode(io.BytesIO(encode(message)).read, limit=limit)


@pytest.mark.parametrize(
    "message",
    [
        PrepareInputs(arguments=()),
        PrepareInputs(
            arguments=(
                SUPPLY,
                replace(SUPPLY, name="w", pool=b"", path="/proc/1/fd/3", fixed=True),
                ScalarArgument(name="eps", value=1e-6, default=1e-6),
                ScalarArgument(name="bias", value=None),
            ),
            slot=3,
            flush_bytes=2**28,
            compiled="default",
        ),
        Rehearse(
            arguments=(
                replace(SUPPLY, pool=b""),
                Supply(name="p0", dtype="float32", shape=(), member_of="params"),
                ScalarArgument(name="eps", value=1e-6, default=1e-6),
            ),
            config=2,
            spare=0.25,
        ),
        AllocateBuffers(count=768, slot=2),
        FillBuffers(buffers=(4, 2, 9), windows=((1, 2, 3), (4, 5, 6)), slot=1),
        FillBuffers(buffers=(0,), windows=((7,), (8,)), scales=((), (0.5,))),
        FillBuffers(buffers=(0, 1), windows=()),
        CaptureGraphs(groups=((1, 2), (3, 4), (0, 0)), order=(2, 0, 1)),
        SpotCheck(buffers=(7, 5), sources=(0, 1), elements=(6,), spots=((5, 0),)),
        RunBatch(buffers=(5, 3, 4), graphs=True, slot=1),
        ShowResult(slot=1),
        Observation(ended="returned", timings={"device_s": 1.5e-3, "peak_bytes": 64.0}),
    ],
    ids=lambda m: type(m).__name__,
)
def test_a_timing_message_arrives_as_it_was_sent(message):
    arrived = round_trip(message)
    assert type(arrived) is type(message)
    assert as_lists(asdict(arrived)) == as_lists(asdict(message))


def as_lists(value):
    """JSON has one kind of sequence."""
    if isinstance(value, dict):
        return {name: as_lists(item) for name, item in value.items()}
    return [as_lists(item) for item in value] if isinstance(value, tuple | list) else value


@pytest.mark.parametrize("kind", [list, tuple])
def test_an_attribute_of_several_numbers_is_offered_as_a_tuple(kind):
    sizes = ScalarArgument(name="size", value=kind((4, 2)), default=kind((1,)))
    (arrived,) = round_trip(PrepareInputs(arguments=(sizes,))).arguments
    offered = offered_scalar(arrived)
    assert (offered.value, offered.default, offered.optional) == ((4, 2), (1,), False)


def test_a_message_that_is_too_large_is_refused():
    with pytest.raises(ProtocolError, match="is over 10"):
        round_trip(PrepareInputs(arguments=(SUPPLY,)), limit=10)


def test_another_version_is_refused_by_name():
    data = bytearray(encode(ShowResult()))
    struct.pack_into("<H", data, len(MAGIC), 1)
    with pytest.raises(ProtocolError, match="protocol version 1, this side speaks"):
        decode(io.BytesIO(bytes(data)).read, limit=99)


@pytest.mark.parametrize("size", [0, 1, 2**16, 2**16 + 1, 2**19])
def test_pieces_follow_one_another(size):
    message = replace(SUPPLY, pool=b"", path=None)
    whole = PrepareInputs(
        arguments=(replace(message, pool=bytes(size)), replace(message, pool=b"end"))
    )
    assert b"".join(pieces(whole)) == encode(whole)
    assert round_trip(whole) == whole


def observation_of(data):
    result = TensorResult(dtype="int8", shape=(len(data),), strides=(1,), device="cpu", data=data)
    return Observation(ended="returned", results=(result,))


def test_large_contents_are_sent_as_they_are():
    data = memoryview(bytearray(2**17))
    assert any(piece is data for piece in pieces(observation_of(data)))
    assert round_trip(observation_of(data)) == observation_of(bytes(data))


def test_contents_that_come_alone_are_not_copied():
    sent = io.BytesIO(encode(observation_of(bytes(2**17))))
    given = []

    def read(count):
        given.append(bytearray(sent.read(count)))
        return given[-1]

    (result,) = decode(read, limit=2**20).results
    assert result.data is given[-1]


def test_contents_that_begin_elsewhere_than_they_could_are_refused():
    data = encode(observation_of(bytes(8))).replace(b"[0, 8]", b"[1, 8]")
    with pytest.raises(ProtocolError, match="outside of the payload"):
        decode(io.BytesIO(data).read, limit=2**20)


NUMBERS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
RESULTS = st.builds(
    TensorResult,
    dtype=st.sampled_from(["float32", "int8", "complex32"]),
    shape=st.lists(st.integers(0, 2**40), max_size=5).map(tuple),
    strides=st.lists(st.integers(0, 2**40), max_size=5).map(tuple),
    device=st.text(),
    data=st.binary(max_size=200),
    alias=st.none() | st.text(),
)
OBSERVATIONS = st.builds(
    Observation,
    ended=st.text(),
    message=st.text(),
    results=st.lists(RESULTS, max_size=3).map(tuple),
    buffers=st.dictionaries(st.text(), st.binary(max_size=200), max_size=3),
)


@settings(deadline=None)
@given(OBSERVATIONS)
def test_an_observation_arrives_as_it_was_sent(observation):
    assert round_trip(observation) == observation


@settings(deadline=None)
@given(st.text(), NUMBERS, NUMBERS)
def test_an_attribute_arrives_as_it_was_sent(name, value, default):
    sent = PrepareInputs(arguments=(ScalarArgument(name=name, value=value, default=default),))
    assert round_trip(sent) == sent


def refused(data):
    """Whether `decode` refuses the bytes in the way that its callers expect."""

    def read(count):
        chunk = stream.read(count)
        if len(chunk) < count:
            raise EOFError
        return chunk

    stream = io.BytesIO(data)
    try:
        decode(read, limit=2**20)
    except (ProtocolError, EOFError):
        return True
    return False


@settings(deadline=None)
@given(OBSERVATIONS, st.data())
def test_a_message_that_is_cut_short_is_never_read(observation, data):
    sent = encode(observation)
    assert refused(sent[: data.draw(st.integers(0, len(sent) - 1))])


@pytest.mark.slow
@settings(deadline=None)
@given(st.recursive(NUMBERS | st.floats(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)))
def test_a_header_of_any_json_but_a_message_is_refused(value):
    header = json.dumps(value).encode()
    assert refused(struct.pack("<4sHIQ", MAGIC, VERSION, len(header), 0) + header)


@pytest.mark.parametrize(
    "value",
    [
        {"~bytes": [float("inf"), 0]},
        {"~bytes": [0, float("nan")]},
        {"~bytes": 3},
        {"~bytes": [-1, 1]},
        {"~kind": "Show", "slot": {"~bytes": [0]}},
        {"~kind": ["Show"]},
        {"~kind": "Nothing"},
        {"~kind": "Show", "more": 1},
        {"~kind": "TensorArgument"},
    ],
    ids=repr,
)
def test_a_malformed_header_is_refused(value):
    header = json.dumps(value).encode()
    assert refused(struct.pack("<4sHIQ", MAGIC, VERSION, len(header), 0) + header)


def test_what_is_quoted_of_a_message_stays_in_one_line():
    sent = {"~kind": "Observation", "ended": "returned", "\n\x1b[31m": 1}
    header = json.dumps(sent).encode()
    data = struct.pack("<4sHIQ", MAGIC, VERSION, len(header), 0) + header
    with pytest.raises(ProtocolError, match="malformed") as caught:
        decode(io.BytesIO(data).read, limit=2**20)
    assert str(caught.value).isprintable()


def test_contents_are_taken_once_and_in_order():
    data = encode(observation_of(bytes(8)))
    twice = data.replace(b'"buffers": {}', b'"buffers": {"x": {"~bytes": [0, 8]}}')
    header = len(twice) - len(data) + int.from_bytes(data[6:10], "little")
    with pytest.raises(ProtocolError, match="not the next"):
        decode(io.BytesIO(twice[:6] + struct.pack("<I", header) + twice[10:]).read, limit=2**20)


def test_what_a_field_holds_by_default_is_not_sent():
    data = encode(Observation(ended="returned"))
    header = json.loads(data[data.index(b"{") :])
    assert header.keys() == {"~kind", "ended", "timings", "buffers"}
    assert round_trip(Observation(ended="returned")) == Observation(ended="returned")
