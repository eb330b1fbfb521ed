"""Memory of a CUDA device that the judge keeps: its end of the `device_keeper`."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import socket
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterable
from pathlib import Path

from kerneltruth.errors import EnvironmentFault
from kerneltruth.runner.containment import levels
from kerneltruth.runner.helper_process import HelperLost, HelperProcess
from kerneltruth.runner.kept_memory import KeptHostMemory, MemoryLost, Range
from kerneltruth.runner.zygote_client import zygote_environment

# A device's memory is made in pages of this size.
_PAGE = 2**21
# How long copies may take: the device may be busy with a candidate's kernel.
_ANSWER_S = 60.0
_TRY_S = 60.0
# Ranges that lie closer together are copied as one: what lies between is not the child's.
_APART = 512


class DeviceKeeper(HelperProcess):
    """A process that holds memory of one device for all judges."""

    cannot = "cannot keep memory of the device"

    def __init__(self, device: str, work_root: Path | None) -> None:
        """Start it."""
        super().__init__(
            lambda descriptor, root: [
                *_command(device),
                *("--socket-fd", str(descriptor), "--host", str(os.getpid())),
            ],
            zygote_environment(interpret=False, hide_cuda=False),
            work_root,
        )


class KeptDeviceMemory:
    """Memory of a device, with a mirror that judge and keeper map."""

    def __init__(self, keeper: HelperProcess, size: int) -> None:
        """Have it made, with at least this many bytes.

        Raises:
            HelperLost: the keeper is gone.
            MemoryLost: there is no room.
        """
        self.size = size + -size % _PAGE
        mirror = KeptHostMemory(self.size)
        self.seen = mirror.seen
        self._connection, theirs = socket.socketpair()
        weakref.finalize(self, self._connection.close)
        self._connection.settimeout(_ANSWER_S)
        with theirs:
            keeper.send({"size": self.size}, [theirs.fileno(), mirror.descriptor])
        self.descriptor = self._exported()
        weakref.finalize(self, os.close, self.descriptor)

    def put(self, ranges: Iterable[Range]) -> None:
        """Give the child what the judge has written to these ranges.

        Raises:
            MemoryLost: the keeper is gone, or the device is.
        """
        self._ask("put", ranges)

    def fetch(self, ranges: Iterable[Range]) -> None:
        """See what these ranges hold now.

        Raises:
            MemoryLost: the keeper is gone, or the device is.
        """
        self._ask("fetch", ranges)

    def _ask(self, what: str, ranges: Iterable[Range]) -> None:
        wanted = joined(ranges)
        if not wanted:
            return
        try:
            self._connection.sendall(json.dumps({what: wanted}).encode() + b"\n")
        except OSError as error:
            raise MemoryLost(f"the keeper of the device's memory is gone: {error}") from error
        self._answer()

    def _exported(self) -> int:
        descriptors = self._answer()
        if len(descriptors) != 1:
            raise MemoryLost("the keeper of the device's memory sent none")
        return descriptors[0]

    def _answer(self) -> list[int]:
        said, descriptors = b"", list[int]()
        while not said.endswith(b"\n"):
            try:
                piece, came, _, _ = socket.recv_fds(self._connection, 4096, 1)
            except OSError as error:
                raise MemoryLost(f"the keeper of the device's memory: {error}") from error
            if not piece:
                raise MemoryLost("the keeper of the device's memory is gone")
            said, descriptors = said + piece, descriptors + came
        if trouble := json.loads(said)["error"]:
            raise MemoryLost(f"the device's memory: {trouble}")
        return descriptors


@functools.cache
def why_not(device: str) -> str | None:
    """Return why the judge cannot keep a device's memory here; None where it can.

    It is tried once, in processes of its own.
    """
    try:
        trial = _trial(device, os.getpid())
        said, errors = trial.communicate(timeout=_TRY_S)
    except subprocess.TimeoutExpired:
        trial.kill()
        trial.communicate()
        return f"it was not tried: that took more than {_TRY_S:.0f} s"
    except OSError as error:
        return f"it was not tried: {error}"
    if trial.returncode:
        return errors.strip().rpartition("\n")[2] or f"exit code {trial.returncode}"
    return said.strip() or None


def begin_trial(device: str) -> None:
    """Begin what `why_not` waits for, and return at once: a device takes seconds to wake."""
    # What fails here is said there.
    with contextlib.suppress(OSError):
        _trial(device, os.getpid())


@functools.cache
def _trial(device: str, by: int) -> subprocess.Popen[str]:
    """Begin to try it; a forked process cannot wait for a trial that its parent began."""
    return subprocess.Popen(
        [*_command(device), "--try", levels.chosen(device=device)],
        env=zygote_environment(interpret=False, hide_cuda=False),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


class DeviceMemories:
    """Makes memory of one device, by a keeper that starts anew if it has died."""

    def __init__(
        self,
        device: str,
        work_root: Path | None,
        *,
        unkept: Callable[[str], str | None] = why_not,
        new_keeper: Callable[[str, Path | None], HelperProcess] = DeviceKeeper,
    ) -> None:
        """Start nothing yet; `unkept` is called as `why_not`."""
        self._device, self._work_root = device, work_root
        self._unkept, self._new_keeper = unkept, new_keeper
        self._keeper: HelperProcess | None = None
        self._starting = threading.Lock()

    @property
    def kept(self) -> bool:
        """Return whether the judge keeps the device's memory here."""
        return self._unkept(self._device) is None

    def start(self) -> HelperProcess:
        """Begin to start the keeper, and return at once."""
        with self._starting:
            if self._keeper is None:
                self._keeper = self._new_keeper(self._device, self._work_root)
            return self._keeper

    def warm(self) -> None:
        """Wait until memory can be made, where it is kept: processes forked after this share it."""
        if self.kept:
            self.start().ready()

    def make(self, size: int) -> KeptDeviceMemory:
        """Return memory with at least this many bytes.

        Raises:
            EnvironmentFault: the keeper cannot start, or keeps dying.
            MemoryLost: there is no room.
        """
        for _ in range(2):
            keeper = self.start()
            try:
                keeper.ready()
                return KeptDeviceMemory(keeper, size)
            except HelperLost:
                self.close()
        raise EnvironmentFault(
            "the process that keeps the device's memory keeps dying; "
            "`kerneltruth doctor` says what this machine lacks"
        )

    def close(self) -> None:
        """End the keeper."""
        with self._starting:
            keeper, self._keeper = self._keeper, None
        if keeper is not None:
            keeper.close()


def joined(ranges: Iterable[Range]) -> list[Range]:
    """Return the ranges in order, those that lie close together as one; empty ones are left out."""
    found: list[Range] = []
    for start, end in sorted(each for each in ranges if each[0] < each[1]):
        if found and start - found[-1][1] < _APART:
            found[-1] = found[-1][0], max(found[-1][1], end)
        else:
            found.append((start, end))
    return found


def _command(device: str) -> list[str]:
    number = device.partition(":")[2] or "0"
    return [sys.executable, "-P", "-m", "kerneltruth.runner.device_keeper", "--device", number]
