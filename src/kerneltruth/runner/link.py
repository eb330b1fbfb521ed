"""Host one child: messages on the wire, the warden's packets, captured output.

One thread, one poll: while it sends or waits for an answer it also drains what the child prints and
notices its death. Whatever ends the child ends the exchange with `Ended`.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import threading
import time
from pathlib import Path

import msgspec

from kerneltruth.runner.observation import Observation
from kerneltruth.runner.protocol import ProtocolError, TooLarge, WireMessage
from kerneltruth.runner.sandbox import processes_beside
from kerneltruth.runner.shared_files import opened
from kerneltruth.runner.warden_packet import WardenPacket
from kerneltruth.runner.wire import decode, encode

KEPT_OUTPUT = 8 * 1024
MOST_OUTPUT = 16 * 2**20
LARGEST_ANSWER = 2 * 2**30
# A child's messages are short, apart from results; parsed JSON takes many times its length.
LARGEST_HEADER = 2 * 2**20
_CHUNK = 2**20
_LAST_WORDS_S = 2.0
# A message may take this much longer than its deadline to pass, however slowly a child does it.
_ARRIVAL_S = 10.0
_KILL_S = 15.0
# For so long in all, a child's deadlines wait while it waits for a processor. Not without end: its
# own threads may be what keeps it waiting.
_QUEUED_S = 10.0
# Shorter waits in a queue are those of any machine.
_NOTICED_S = 0.05


class Ended(Exception):
    """There will be no answer; the observation says why."""

    def __init__(self, observation: Observation) -> None:
        super().__init__(observation.ended)
        self.observation = observation


class Link:
    """Talks to one child. Not usable after `Ended`, other than to `kill` it."""

    def __init__(
        self,
        wire: socket.socket,
        channel: socket.socket,
        output: int,
        *,
        arrival_s: float = _ARRIVAL_S,
    ) -> None:
        """Take over the descriptors; a message may pass for `arrival_s` after its deadline."""
        self._wire, self._channel, self._output = wire, channel, output
        self._arrival_s = arrival_s
        wire.setblocking(False)
        channel.setblocking(False)
        os.set_blocking(output, False)
        self._poll = select.poll()
        self._poll.register(wire, select.POLLIN)
        self._poll.register(channel, select.POLLIN)
        self._poll.register(output, select.POLLIN)
        self._printed = 0
        self._tail = bytearray()
        self._death: Observation | None = None
        self._gone = False
        self._closed = False
        self.pid: int | None = None
        # Seconds for which the child was paused, and the start of the current pause.
        self._paused_s = 0.0
        self._paused_since: float | None = None
        # How long it has waited for a processor, as far as its deadlines wait.
        self.queued_s = 0.0
        self._stops = threading.Lock()

    def now(self) -> float:
        """Return seconds on the child's clock: the monotonic one less pauses and queues."""
        since = self._paused_since
        return (time.monotonic() if since is None else since) - self._paused_s - self.queued_s

    def _see_queue(self) -> bool:
        """Bring `queued_s` up to date; return whether its deadlines wait longer by it.

        From Linux' `/proc/PID/schedstat`, of the child's first thread. One that has started
        processes keeps itself waiting.
        """
        try:
            nanoseconds = Path(f"/proc/{self.pid}/schedstat").read_bytes().split()[1]
        except (OSError, IndexError):
            return False
        queued_s = min(int(nanoseconds) / 1e9, _QUEUED_S)
        if queued_s <= self.queued_s + _NOTICED_S or processes_beside(self.pid or 0):
            return False
        self.queued_s = queued_s
        return True

    def pause(self) -> None:
        """Stop the child until `resume`; one that is still starting stops when it runs."""
        with self._stops:
            if self._paused_since is None:
                self._paused_since = time.monotonic()
                self._signal(signal.SIGSTOP)

    @property
    def paused(self) -> bool:
        """Return whether the child has stopped, or there is none."""
        try:
            about = Path(f"/proc/{self.pid}/stat").read_text("utf-8")
        except OSError:
            return True
        return about.rpartition(")")[2].split()[0] in "TtZX"

    def resume(self) -> None:
        """Let the child continue."""
        with self._stops:
            if self._paused_since is not None:
                # In this order, so that another thread never reads a clock that runs ahead.
                self._paused_s += time.monotonic() - self._paused_since
                self._paused_since = None
                self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        if self.pid is not None and self._death is None and not self._gone:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def send(self, message: WireMessage, *, deadline: float) -> None:
        """Send a message; `deadline` is on the child's clock.

        Raises:
            Ended: the child died, took too long, or printed too much.
        """
        with opened(message) as files:
            self._send(memoryview(encode(message)), files, deadline)

    def _send(self, rest: memoryview, files: list[int], deadline: float) -> None:
        self._poll.modify(self._wire, select.POLLOUT)
        until = self._until(deadline)
        try:
            while rest:
                if not self._step(deadline, until):
                    continue
                try:
                    # Files go with the first bytes.
                    sent = socket.send_fds(self._wire, [rest], files)
                except BlockingIOError:
                    continue
                except OSError:
                    self._hung_up()
                rest, files = rest[sent:], []
        finally:
            self._poll.modify(self._wire, select.POLLIN)

    def receive(self, *, deadline: float, limit: int = LARGEST_ANSWER) -> WireMessage:
        """Return the child's next message, with contents of at most `limit` bytes.

        Raises:
            Ended: the child died, took too long, printed too much, or broke the protocol.
        """
        until, began = self._until(deadline), time.monotonic()

        def read(count: int) -> bytearray:
            # Space grows as bytes arrive: a length that a child claims costs the judge nothing.
            data, have = bytearray(min(count, _CHUNK)), 0
            while have < count:
                if have == len(data):
                    data += bytes(min(have, count - have))
                if self._step(deadline, until):
                    have += self._received(data, have)
            return data

        try:
            message = decode(read, limit=limit, header_limit=LARGEST_HEADER)
        except TooLarge as error:
            raise Ended(Observation(ended="flooded", message=str(error))) from error
        except (ProtocolError, MemoryError) as error:
            raise Ended(nonsense(error)) from error
        if time.monotonic() - began > _NOTICED_S:
            self._see_queue()
        return message

    def _received(self, data: bytearray, have: int) -> int:
        """Receive what is there into the space behind the first `have` bytes; return how much."""
        with memoryview(data) as whole, whole[have:] as left:
            try:
                got = self._wire.recv_into(left)
            except BlockingIOError:
                return 0
            except OSError:
                got = 0
        if got == 0:
            self._hung_up()
        return got

    def take_output(self) -> str:
        """Return the end of what the child has printed since the last call."""
        with contextlib.suppress(Ended):
            while self._drain():
                pass
        text = bytes(self._tail).decode("utf-8", "replace")
        self._tail.clear()
        return text

    def kill(self, *, wait: bool = True) -> None:
        """End the child and all that it started; by default, wait until they are gone.

        The warden and the zygote end those that nothing waits for.
        """
        end = time.monotonic() + _KILL_S
        with contextlib.suppress(OSError):
            self._channel.send(b"kill")
        with contextlib.suppress(OSError):
            self._channel.setblocking(True)
            self._channel.settimeout(0.5)
            while wait and not self._gone and time.monotonic() < end:
                with contextlib.suppress(TimeoutError):
                    self._read_packet()
        self.close()

    def close(self) -> None:
        """Close the descriptors; the warden takes that as an order to kill.

        Another thread that waits for an answer gets `Ended`.
        """
        self._closed = True
        self._wire.close()
        self._channel.close()
        if self._output >= 0:
            os.close(self._output)
            self._output = -1

    def _until(self, deadline: float) -> float:
        """Return when a message must have passed; one may have waited for us past its deadline."""
        return max(deadline, self.now()) + self._arrival_s

    def _step(self, deadline: float, until: float) -> bool:
        """Wait for events; return True when the wire is ready."""
        now = self.now()
        wait_s = 0.0 if self._death else max(0.0, deadline - now)
        ready = {d for d, _ in self._poll.poll(wait_s * 1000)}
        if self._closed:
            raise Ended(Observation(ended="died", message="ended by the judge"))
        if self._output in ready and not self._drain():
            self._poll.unregister(self._output)
        if self._channel.fileno() in ready and not self._gone:
            self._read_packet()
        # First, because an answer sent before the end still counts.
        if self._wire.fileno() in ready and now < until:
            return True
        if self._death is not None:
            raise Ended(self._death)
        if now >= deadline and not self._see_queue():
            raise Ended(Observation(ended="timeout"))
        return False

    def _drain(self) -> bool:
        """Read what was printed; return False when nothing is left, or no writer."""
        try:
            data = os.read(self._output, _CHUNK)
        except BlockingIOError:
            return False
        self._printed += len(data)
        self._tail += data
        del self._tail[:-KEPT_OUTPUT]
        if self._printed > MOST_OUTPUT:
            raise Ended(
                Observation(ended="flooded", message=f"printed more than {MOST_OUTPUT} bytes")
            )
        return bool(data)

    def _read_packet(self) -> None:
        """Read one packet from the warden."""
        try:
            data = self._channel.recv(4096)
        except BlockingIOError:
            return
        except ConnectionError:
            data = b""
        # One that has ended the tree says no more.
        packet = _packet(data) if data else WardenPacket(gone=0)
        if packet.child is not None:
            with self._stops:
                self.pid = packet.child
                if self._paused_since is not None:
                    self._signal(signal.SIGSTOP)
        # The first reason stands: a child killed for taking too much then dies by a signal.
        self._death = self._death or _end(packet)
        if packet.gone is not None:
            self._gone = True
            with contextlib.suppress(KeyError):
                self._poll.unregister(self._channel)

    def _hung_up(self) -> None:
        """The wire is closed at the other end: wait for the warden's reason.

        Raises:
            Ended: always.
        """
        end = time.monotonic() + _LAST_WORDS_S
        while self._death is None and time.monotonic() < end:
            select.select([self._channel], [], [], 0.1)
            self._read_packet()
        closed = Observation(ended="died", message="closed its connection to the judge")
        raise Ended(self._death or closed)


def nonsense(error: BaseException) -> Observation:
    """Return the observation of a child that breaks the protocol."""
    return Observation(ended="died", message=f"the child spoke nonsense: {error}")


def _packet(data: bytes) -> WardenPacket:
    """Return what a packet says; one that no warden sends says that it is lost."""
    try:
        return msgspec.json.decode(data, type=WardenPacket)
    except (ValueError, RecursionError):
        return WardenPacket(lost="the warden of the child spoke nonsense")


def _end(packet: WardenPacket) -> Observation | None:
    """Return how a packet says that the child has ended, if it does."""
    match packet:
        case WardenPacket(lost=str(reason)):
            return Observation(ended="lost", message=reason)
        case WardenPacket(over=str(reason)):
            return Observation(ended="flooded", message=reason)
        case WardenPacket(signal=int(number)):
            name = next((s.name for s in signal.Signals if s == number), f"signal {number}")
            return Observation(ended="died", signal=number, message=f"killed by {name}")
        case WardenPacket(code=int(code)):
            return Observation(ended="died", message=f"exited on its own with code {code}")
        case WardenPacket(gone=int()):
            return Observation(ended="lost", message="the warden of the child is gone")
    return None
