"""The process that holds memory of a CUDA device for the judge, and never runs a candidate.

`python -m kerneltruth.runner.device_keeper --device N --socket-fd N --host PID`. It has the
device's context, which the judge's process cannot have: that one forks. It sends {"ready": ...},
then receives requests: the size of a block of memory, with two descriptors, a connection and a
mirror, which is a file in memory of that size. On the connection it answers with a descriptor of
the block, which a child maps. Then it copies ranges between mirror and block as the judge says,
until the judge hangs up. Each line there is a JSON object:

    {"put": [[start, end], ...]}      from the mirror to the block
    {"fetch": [[start, end], ...]}    from the block to the mirror
    {"error": "..."}                  the answer to each; empty if all went well

With `--try LEVEL` it tries that once, with another process that is contained as a child is, and
prints what went wrong, or nothing.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import mmap
import os
import select
import socket
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import msgspec

from kerneltruth.runner import sandbox
from kerneltruth.runner.containment import LEVELS, Level, applying, files, landlock
from kerneltruth.runner.cuda_driver import DeviceBlock, Driver, DriverError

# What a contained process writes when it is tried.
_TRIED, _PATTERN = 2**21, b"kerneltruth" * 64
_LOOK_UP_S = 1.0


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """A request for a block of memory, with its size in bytes."""

    size: int


class Copies(msgspec.Struct, frozen=True, kw_only=True):
    """Ranges of bytes to copy from the mirror to the block, and from the block to the mirror."""

    put: tuple[tuple[int, int], ...] = ()
    fetch: tuple[tuple[int, int], ...] = ()


class HeldBlock(Protocol):
    """Memory of a device, mapped into this process; see `cuda_driver.DeviceBlock`."""

    def export(self) -> int:
        """Return a descriptor that leads to it."""
        ...

    def write(self, start: int, source: int, size: int) -> None:
        """Copy bytes from an address of this process to the memory; `settle` waits for them."""
        ...

    def read(self, start: int, target: int, size: int) -> None:
        """Copy bytes from the memory to an address of this process."""
        ...

    def settle(self) -> None:
        """Wait until what this thread has written is there."""
        ...

    def close(self) -> None:
        """Let it go."""
        ...


class MemoryMaker(Protocol):
    """What makes memory of a device; see `cuda_driver.Driver`."""

    def use_here(self) -> None:
        """Make the device's context this thread's."""
        ...

    def make(self, size: int) -> HeldBlock:
        """Make memory that holds nothing of an earlier child's."""
        ...


def main() -> None:
    """Serve until the host is gone, or try it once."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", type=int, required=True)
    parser.add_argument("--socket-fd", type=int)
    parser.add_argument("--host", type=int)
    parser.add_argument("--try", dest="level", choices=LEVELS)
    arguments = parser.parse_args()
    if arguments.level is not None:
        sys.stdout.write(_tried(arguments.device, arguments.level))
        return
    control = socket.socket(fileno=arguments.socket_fd)
    control.set_inheritable(False)
    try:
        driver = Driver(arguments.device)
    except DriverError as error:
        sys.exit(str(error))
    control.send(json.dumps({"ready": {}}).encode())
    serve(control, driver, gone=lambda: os.getppid() != arguments.host)
    # Threads may still wait for the device.
    os._exit(0)


def serve(control: socket.socket, driver: MemoryMaker, *, gone: Callable[[], bool]) -> None:
    """Make blocks of memory until the host hangs up or is gone."""
    poll = select.poll()
    poll.register(control, select.POLLIN)
    while not gone():
        if not poll.poll(_LOOK_UP_S * 1000):
            continue
        request, descriptors, _, _ = socket.recv_fds(control, 4096, 2)
        if not request:
            return
        connection, mirror = descriptors
        size = msgspec.json.decode(request, type=Wanted).size
        given = (socket.socket(fileno=connection), mirror, size, driver)
        threading.Thread(target=_keep, args=given, daemon=True).start()


def _keep(connection: socket.socket, mirror: int, size: int, driver: MemoryMaker) -> None:
    """Hold a block of memory for as long as the judge is connected."""
    with connection:
        try:
            seen = mmap.mmap(mirror, size)
            driver.use_here()
            block = driver.make(size)
        except (DriverError, OSError, ValueError) as error:
            _answer(connection, str(error))
            return
        finally:
            os.close(mirror)
        try:
            exported = block.export()
            try:
                _answer(connection, "", exported)
            finally:
                os.close(exported)
            first = ctypes.addressof(ctypes.c_char.from_buffer(seen))
            with connection.makefile("rb") as lines:
                for line in lines:
                    _answer(
                        connection, _copied(msgspec.json.decode(line, type=Copies), block, first)
                    )
        except (DriverError, OSError):
            # The judge finds the connection closed.
            return
        finally:
            block.close()


def _copied(copies: Copies, block: HeldBlock, first: int) -> str:
    """Copy ranges as the judge says; return what went wrong."""
    try:
        for start, end in copies.put:
            block.write(start, first + start, end - start)
        for start, end in copies.fetch:
            block.read(start, first + start, end - start)
        block.settle()
    except DriverError as error:
        return str(error)
    return ""


def _answer(connection: socket.socket, error: str, *descriptors: int) -> None:
    socket.send_fds(connection, [json.dumps({"error": error}).encode() + b"\n"], descriptors)


def _tried(device: int, level: Level) -> str:
    """Return what goes wrong when a contained process maps memory of this one."""
    ours, theirs = socket.socketpair()
    parent = os.getpid()
    with ours, theirs, tempfile.TemporaryDirectory() as folder:
        child = os.fork()
        if child == 0:
            sandbox.die_with_parent(parent)
            ours.close()
            said = _map_contained(device, level, theirs, Path(folder))
            theirs.send(said.encode() or b" ")
            os._exit(0)
        theirs.close()
        try:
            return _shared_with(ours, Driver(device))
        except DriverError as error:
            return str(error)
        finally:
            ours.close()
            os.waitpid(child, 0)


def _shared_with(other: socket.socket, driver: Driver) -> str:
    driver.use_here()
    block: DeviceBlock = driver.make(_TRIED)
    exported = block.export()
    socket.send_fds(other, [b"map"], [exported])
    if said := other.recv(4096).decode().strip():
        return f"a contained process cannot map it: {said}"
    found = ctypes.create_string_buffer(len(_PATTERN))
    block.read(0, ctypes.addressof(found), len(_PATTERN))
    return "" if found.raw == _PATTERN else "what a contained process writes there is not seen"


def _map_contained(device: int, level: Level, other: socket.socket, folder: Path) -> str:
    """Write to another process's memory as a child would; return what goes wrong."""
    try:
        sandbox.make_folders(folder)
        os.environ.update(sandbox.private_environment(folder, None))
        shared = files.shared(os.environ, hidden=(), gpu=True)
        rules = landlock.merged(shared, files.private((folder,), ()))
        applying.contain(level, rules, gpu=True)
        _, descriptors, _, _ = socket.recv_fds(other, 16, 1)
        driver = Driver(device)
        driver.use_here()
        block = driver.taken(descriptors[0], _TRIED)
        pattern = ctypes.create_string_buffer(_PATTERN)
        block.write(0, ctypes.addressof(pattern), len(_PATTERN))
        block.settle()
    except (DriverError, OSError, LookupError) as error:
        return str(error) or type(error).__name__
    return ""


if __name__ == "__main__":
    main()
