"""Encode messages as bytes: a header and raw bytes, nothing else.

A message is `MAGIC, version, header length, payload length, header (JSON), payload`. The header
describes slices of the payload, and leaves out what a field holds by default. Nothing is ever
unpickled.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from dataclasses import fields
from typing import Any, get_args

from kerneltruth.runner.arguments import (
    Data,
    KeptArgument,
    RepeatedArgument,
    ScalarArgument,
    TensorArgument,
)
from kerneltruth.runner.observation import (
    Access,
    Binary,
    GuardedAllocation,
    KernelLaunches,
    KernelWork,
    Launch,
    OtherResult,
    TensorResult,
)
from kerneltruth.runner.protocol import (
    CallMemory,
    EarlierContents,
    ProtocolError,
    Rows,
    TooLarge,
    WireMessage,
)
from kerneltruth.runner.timing.messages import Supply

MAGIC = b"KTRU"
VERSION = 2
_PREFIX = struct.Struct("<4sHIQ")
MAX_HEADER = 64 * 2**20
_PARTS = (
    *(TensorArgument, KeptArgument, RepeatedArgument, ScalarArgument, Supply),
    *(TensorResult, OtherResult, Launch, KernelLaunches, KernelWork, Binary, Access, Rows),
    *(CallMemory, EarlierContents, GuardedAllocation),
)
_KINDS: dict[str, type[Any]] = {kind.__name__: kind for kind in (*get_args(WireMessage), *_PARTS)}
_FIELDS = {kind: tuple((f.name, f.default) for f in fields(kind)) for kind in _KINDS.values()}
# Types that JSON takes as they are; a batch has lists of hundreds.
_PLAIN = frozenset((int, float, str, bool, type(None)))
# Payloads up to this many bytes are sent in one piece with their header.
_SMALL = 2**16


def encode(message: WireMessage) -> bytes:
    """Return the message as bytes."""
    return b"".join(pieces(message))


def pieces(message: WireMessage) -> list[Data]:
    """Return the message in consecutive pieces; large contents are not copied."""
    payload: list[Data] = []
    position = 0

    def pack(value: Any) -> Any:
        nonlocal position
        kind = type(value)
        if kind in _PLAIN:
            return value
        if kind in _FIELDS:
            packed = {"~kind": kind.__name__}
            for name, default in _FIELDS[kind]:
                if (held := getattr(value, name)) is not default:
                    packed[name] = pack(held)
            return packed
        if isinstance(value, Data):
            start, position = position, position + len(value)
            payload.append(value)
            return {"~bytes": [start, len(value)]}
        if isinstance(value, dict):
            return {str(k): pack(v) for k, v in value.items()}
        if isinstance(value, list | tuple):
            return value if _PLAIN.issuperset(map(type, value)) else [pack(v) for v in value]
        return value

    header = json.dumps(pack(message)).encode()
    head = _PREFIX.pack(MAGIC, VERSION, len(header), position) + header
    if position <= _SMALL:
        return [b"".join([head, *payload])]
    return [head, *payload]


def decode(
    read: Callable[[int], bytes | bytearray], *, limit: int, header_limit: int = MAX_HEADER
) -> WireMessage:
    """Read one message with `read(n)`, which returns exactly n bytes or raises.

    A message's only contents are what `read` returned, uncopied: copying a large result takes as
    long as its calls do.

    Raises:
        TooLarge: its contents are over the limit.
        ProtocolError: not our protocol, another version, a header over its limit, or malformed.
    """
    magic, version, header_size, payload_size = _PREFIX.unpack(read(_PREFIX.size))
    if magic != MAGIC:
        raise ProtocolError(f"magic {magic!r} is not {MAGIC!r}")
    if version != VERSION:
        raise ProtocolError(f"protocol version {version}, this side speaks {VERSION}")
    if header_size > header_limit:
        raise ProtocolError(f"a header of {header_size} bytes is over {header_limit}")
    if payload_size > limit:
        raise TooLarge(f"an answer of {payload_size} bytes is over {limit}")
    header, payload = read(header_size), read(payload_size)
    try:
        message = _unpack(json.loads(header), _Payload(payload))
    except (ValueError, TypeError, LookupError, OverflowError, RecursionError) as error:
        # It may quote what was sent.
        quoted = str(error).encode("unicode_escape").decode("ascii")
        raise ProtocolError(f"malformed message: {quoted}") from error
    if not isinstance(message, WireMessage):
        raise ProtocolError(f"{type(message).__name__} is not a message")
    return message


class _Payload:
    """Raw bytes behind a header: each is taken once, in order, or copies would outgrow them."""

    def __init__(self, data: bytes | bytearray) -> None:
        self._data = data
        self._taken = 0

    def take(self, start: int, size: int) -> Data:
        """Return the next bytes.

        Raises:
            ValueError: they are not the next, or there are fewer.
        """
        if start != self._taken or size < 0 or start + size > len(self._data):
            raise ValueError("slice outside of the payload, or not the next")
        self._taken += size
        whole = size == len(self._data)
        return self._data if whole else bytes(memoryview(self._data)[start:][:size])


def _unpack(value: Any, payload: _Payload) -> Any:
    if isinstance(value, list):
        plain = _PLAIN.issuperset(map(type, value))
        return value if plain else [_unpack(v, payload) for v in value]
    if not isinstance(value, dict):
        return value
    if "~bytes" in value:
        start, size = (int(n) for n in value["~bytes"])
        return payload.take(start, size)
    kind = _KINDS[value.pop("~kind")] if "~kind" in value else None
    for name, held in value.items():
        if isinstance(held, dict):
            value[name] = _unpack(held, payload)
        elif isinstance(held, list):
            made = _unpack(held, payload)
            value[name] = made if kind is None or name == "value" else tuple(made)
    return value if kind is None else kind(**value)
