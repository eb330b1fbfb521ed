"""The warden: the process between the zygote and one child, which outlives the child's tree.

It is the subreaper of all that the child starts, so a daemon that left its session and lost its
parent is still its descendant and ends with it. It runs none of the candidate's code. It tells the
host what happens, in a `WardenPacket` each.

It kills the tree when the child dies or takes too much, when the host says so or hangs up, and when
the zygote dies.
"""

from __future__ import annotations

import contextlib
import gc
import os
import select
import signal
import socket
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn

import msgspec

from kerneltruth.runner import compile_cache, sandbox
from kerneltruth.runner.containment import Level, applying, cgroups, files, landlock, namespaces
from kerneltruth.runner.warden_packet import WardenPacket, lost

_SETUP_FAILED = 70
# The wait for a packet or a death also ends by itself, to see whether the zygote still lives.
_LOOK_UP_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkRequest:
    """The host's request to the zygote: one child, with its folders and descriptors.

    Attributes:
        level: of containment.
        gpu: whether the child uses a GPU.
        trusted: whether it is the judge's own, and may read all files that the user may.
        shared: rules for the files of all children.
        kept: which folders are replaced in namespaces, and what stays in them.
        reads: what it may read besides.
    """

    folder: Path
    cache: Path | None
    limits: sandbox.ResourceLimits
    environment: Mapping[str, str]
    level: Level
    gpu: bool
    trusted: bool
    shared: tuple[files.Rule, ...]
    kept: namespaces.Kept
    reads: tuple[Path, ...]
    channel: int
    wire: int
    output: int

    @property
    def alone(self) -> bool:
        """Whether the child has namespaces of its own."""
        return self.level == "namespaces"

    @property
    def user(self) -> int | None:
        """The user that the child runs as; None keeps this process's user."""
        return namespaces.own_user() if self.alone else None


# The child's work, with its wire and the mark in its compile cache.
Work = Callable[[int, int | None], None]


def guard(request: ForkRequest, *, zygote: int, work: Work) -> NoReturn:
    """Run the child and outlive it. Never returns."""
    channel = socket.socket(fileno=request.channel)
    mark: int | None = None
    group: cgroups.Group | None = None
    namespace: int | None = None
    try:
        os.setsid()
        sandbox.adopt_orphans()
        sandbox.keep_descriptors((request.channel, request.wire, request.output))
        wake = _wake_on_death()
        sandbox.make_folders(request.folder, request.user)
        if request.cache is not None:
            mark = compile_cache.enter(request.cache, request.user)
            if mark is None:
                request = replace(request, cache=None)
        warden = os.getpid()
        if request.user is not None:
            # Otherwise it could write to its output, and not open it by name.
            os.fchown(request.output, request.user, -1)
        if request.alone:
            limits = request.limits
            name = f"kerneltruth-{zygote}-{warden}"
            group = cgroups.make(name, memory=limits.memory, tasks=limits.processes)
            namespace = namespaces.enter()
        child = os.fork()
        if child == 0:
            _be_child(request, channel, warden, work, mark, group)
        os.close(request.wire)
        os.close(request.output)
        _say(channel, WardenPacket(child=child))
        files.pin(f"/proc/{child}")
        _watch(channel, wake, child, zygote, request, group)
    except BaseException as error:
        _say(channel, lost(f"{type(error).__name__}: {error}"))
    finally:
        if namespace is not None:
            namespaces.end(namespace)
        left = sandbox.kill_tree()
        if group is not None:
            group.remove()
        sandbox.remove_folder(request.folder)
        if request.cache is not None and not request.trusted:
            sandbox.keep_compiled(request.cache, request.limits)
        if mark is not None:
            # The next child of the candidate, which may start now, must find it dead.
            os.close(mark)
        _say(channel, WardenPacket(gone=left))
        os._exit(0)


def _wake_on_death() -> int:
    """Return a descriptor that becomes readable when a child of this process dies."""
    wake, alarm = os.pipe()
    os.set_blocking(alarm, False)
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(alarm, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return wake


def _watch(
    channel: socket.socket,
    wake: int,
    child: int,
    zygote: int,
    request: ForkRequest,
    group: cgroups.Group | None,
) -> None:
    """Wait for the child's death, or for a reason to kill it."""
    folders = [folder for folder in (request.folder, request.cache) if folder is not None]
    looked = time.monotonic()
    poll = select.poll()
    poll.register(channel, select.POLLIN)
    poll.register(wake, select.POLLIN)
    while True:
        ready = {descriptor for descriptor, _ in poll.poll(_LOOK_UP_S * 1000)}
        if wake in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(wake, 4096)
        status = sandbox.reap()[0].get(child)
        over: str | None = None
        if status is not None:
            if group is not None:
                over = sandbox.exceeded(request.limits, (), group)
            code = os.waitstatus_to_exitcode(status)
            died = WardenPacket(signal=-code) if code < 0 else WardenPacket(code=code)
            _say(channel, died if over is None else WardenPacket(over=over))
            return
        # Deaths may wake it more often than it should look.
        if not request.trusted and time.monotonic() - looked > _LOOK_UP_S / 2:
            over = sandbox.exceeded(request.limits, folders, group)
            looked = time.monotonic()
        if over is not None:
            _say(channel, WardenPacket(over=over))
        if over is not None or channel.fileno() in ready or os.getppid() != zygote:
            # After its death, `kill_tree` finds only processes that it started, usually none.
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return


def _say(channel: socket.socket, packet: WardenPacket) -> None:
    with contextlib.suppress(OSError):
        channel.send(msgspec.json.encode(packet), socket.MSG_DONTWAIT)


def _be_child(
    request: ForkRequest,
    channel: socket.socket,
    warden: int,
    work: Work,
    mark: int | None,
    group: cgroups.Group | None,
) -> NoReturn:
    code = _SETUP_FAILED
    try:
        _set_up(request, channel, warden, mark, group)
        work(request.wire, mark)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(BaseException):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _set_up(
    request: ForkRequest,
    channel: socket.socket,
    warden: int,
    mark: int | None,
    group: cgroups.Group | None,
) -> None:
    """Make this process the child; the host hears of what fails here, which is our own side."""
    try:
        if group is not None:
            group.join()
        # What is alone ends with its namespace, as soon as the warden is gone.
        if not request.alone:
            sandbox.die_with_parent(warden)
        os.setsid()
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        _redirect(request.output)
        # It counts the user's threads, of which namespaces show the child's own alone.
        sandbox.confine(request.limits, request.user)
        folder, cache = request.folder, request.cache
        if request.alone:
            namespaces.settle(folder, cache, request.kept)
            folder, cache = namespaces.FOLDER, cache and namespaces.CACHE
        os.environ.update(sandbox.private_environment(folder, cache))
        os.environ.update(request.environment)
        os.environ.pop("PYTHONPATH", None)
        os.chdir(folder / "work")
        tempfile.tempdir = None
        marks = () if mark is None else (mark,)
        sandbox.keep_descriptors((request.wire, request.channel, *marks))
        _contain(request, (folder, cache))
        gc.enable()
    except BaseException as error:
        _say(channel, lost(f"the child could not be set up: {error}"))
        raise
    channel.close()


def _contain(request: ForkRequest, folders: tuple[Path | None, ...]) -> None:
    own = files.private(folders, request.reads, alone=request.alone)
    rules = None if request.trusted else landlock.merged(request.shared, own)
    applying.contain(request.level, rules, gpu=request.gpu, user=request.user)


def _redirect(output: int) -> None:
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
