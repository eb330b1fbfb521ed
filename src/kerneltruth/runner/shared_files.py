"""Hand open files over with a message: a child may open none of the judge's by their paths."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from kerneltruth.runner.arguments import ScalarArgument
from kerneltruth.runner.protocol import Call, ProtocolError, WireMessage
from kerneltruth.runner.timing.messages import PrepareInputs, Supply

# As many as the kernel lets one message carry.
MOST = 253


@contextmanager
def opened(message: WireMessage) -> Iterator[list[int]]:
    """Open the files that a message names, in order, while it is sent."""
    descriptors: list[int] = []
    try:
        if isinstance(message, PrepareInputs):
            for path in (a.path for a in message.arguments if isinstance(a, Supply)):
                if path is not None:
                    descriptors.append(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
        elif isinstance(message, Call) and message.memory is not None:
            own = message.memory.descriptor
            descriptors += [] if own is None else [os.dup(own)]
        yield descriptors
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def taken(message: WireMessage, descriptors: Sequence[int]) -> WireMessage:
    """Return a message that names its files by descriptors of this process, in the same order.

    Raises:
        ProtocolError: fewer came with it.
    """
    left = iter(descriptors)
    if isinstance(message, Call) and message.memory is not None:
        if message.memory.descriptor is None:
            return message
        file = next(left, None)
        if file is None:
            raise ProtocolError("no memory came with a call")
        return replace(message, memory=replace(message.memory, descriptor=file))
    if not isinstance(message, PrepareInputs):
        return message

    def named(argument: Supply | ScalarArgument) -> Supply | ScalarArgument:
        if not isinstance(argument, Supply) or argument.path is None:
            return argument
        own = next(left, None)
        if own is None:
            raise ProtocolError(f"no file came for {argument.name!r}")
        return replace(argument, path=f"/proc/self/fd/{own}")

    return replace(message, arguments=tuple(map(named, message.arguments)))


class Receiver:
    """Reads the judge's bytes, and keeps the files that come with them."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._space = socket.CMSG_SPACE(MOST * 4)
        self.descriptors: list[int] = []

    def read(self, count: int) -> bytearray:
        """Return exactly `count` bytes.

        Raises:
            EOFError: the judge hung up.
        """
        data = bytearray(count)
        view = memoryview(data)
        while view:
            got, ancillary, _, _ = self._connection.recvmsg_into([view], self._space)
            for _, _, packed in ancillary:
                whole = memoryview(packed)[: len(packed) - len(packed) % 4]
                self.descriptors.extend(whole.cast("i"))
            if got == 0:
                raise EOFError
            view = view[got:]
        return data

    def let_go(self) -> None:
        """Close the files that came."""
        for descriptor in self.descriptors:
            os.close(descriptor)
        self.descriptors.clear()
