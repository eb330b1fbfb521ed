"""Errands of timed calls cross the wall as they are."""

import io
import struct
from dataclasses import asdict, replace

import pytest

from kerneltruth.runner.protocol import (
    MAGIC,
    Capture,
    Lap,
    Observation,
    ProtocolError,
    Refill,
    Rows,
    ScalarArgument,
    Show,
    Stock,
    Supply,
    decode,
    encode,
)
from kerneltruth.runner.track import offered_scalar

POOL = bytes(range(64))
SUPPLY = Supply(name="x", dtype="float32", shape=(2, 3), pool=POOL, shown=True)


def crossed(message, limit=2**20):
    return decode(io.BytesIO(encode(message)).read, limit=limit)


@pytest.mark.parametrize(
    "message",
    [
        Stock(arguments=()),
        Stock(
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
        Rows(count=768, slot=2),
        Refill(rows=(4, 2, 9), windows=((1, 2, 3), (4, 5, 6)), slot=1),
        Refill(rows=(0,), windows=((7,), (8,)), scales=((), (0.5,))),
        Refill(rows=(0, 1), windows=()),
        Capture(groups=((1, 2), (3, 4), (0, 0))),
        Lap(rows=(5, 3, 4), graphs=True, slot=1),
        Show(slot=1),
        Observation(ended="returned", timings={"device_s": 1.5e-3, "peak_bytes": 64.0}),
    ],
    ids=lambda m: type(m).__name__,
)
def test_an_errand_arrives_as_it_was_sent(message):
    arrived = crossed(message)
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
    (arrived,) = crossed(Stock(arguments=(sizes,))).arguments
    offered = offered_scalar(arrived)
    assert (offered.value, offered.default, offered.optional) == ((4, 2), (1,), False)


def test_a_message_that_is_too_large_is_refused():
    with pytest.raises(ProtocolError, match="is over 10"):
        crossed(Stock(arguments=(SUPPLY,)), limit=10)


def test_another_version_is_refused_by_name():
    data = bytearray(encode(Show()))
    struct.pack_into("<H", data, len(MAGIC), 1)
    with pytest.raises(ProtocolError, match="protocol version 1, this side speaks"):
        decode(io.BytesIO(bytes(data)).read, limit=99)
