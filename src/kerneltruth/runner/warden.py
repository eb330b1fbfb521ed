"""The warden: the process between the zygote and one child, which outlives the child's tree.

The zygote starts it before its child is requested, so that a request waits for no fork.

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
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn

import msgspec

from kerneltruth.runner import compile_cache, sandbox
from kerneltruth.runner.child_request import REQUEST_BYTES, ChildRequest
from kerneltruth.runner.containment import Level, applying, cgroups, files, landlock, namespaces
from kerneltruth.runner.warden_packet import WardenPacket, lost

_SETUP_FAILED = 70
# The wait for a packet or a death also ends by itself, to see whether the zygote still lives.
_LOOK_UP_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """What a child's warden knows before the child is requested; the rest comes with the request.

    Attributes:
        level: of containment, which the request must name.
        limits: which the request must name.
        shared: rules for the files of all children.
        kept: which folders are replaced in namespaces, and what stays in them.
    """

    level: Level
    limits: sandbox.ResourceLimits
    shared: tuple[files.FileRule, ...]
    kept: namespaces.KeptFolders

    @property
    def alone(self) -> bool:
        """Whether the child has namespaces of its own."""
        return self.level == "namespaces"

    @property
    def user(self) -> int | None:
        """The user that the child runs as; None keeps this process's user."""
        return namespaces.own_user() if self.alone else None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Requested:
    """The host's request for the child, with the descriptors that came beside it.

    Attributes:
        mark: the child's, in its compile cache; None before the warden has made it, and without.
    """

    request: ChildRequest
    wire: int
    channel: socket.socket
    output: int
    mark: int | None

    @property
    def folder(self) -> Path:
        """The child's folder."""
        return Path(self.request.folder)

    @property
    def cache(self) -> Path | None:
        """Where what it compiles is kept; None where it has no mark."""
        kept = self.request.cache
        return None if kept is None or self.mark is None else Path(kept)


# The child's work, with its wire and the mark in its compile cache.
ChildWork = Callable[[int, int | None], None]


@dataclass(slots=True)
class _Tree:
    """The child with all that it starts, and what holds them.

    Attributes:
        inbox: where the warden tells the child of the request.
    """

    group: cgroups.ControlGroup | None = None
    namespace: int | None = None
    child: int = 0
    inbox: socket.socket | None = None

    def begin(self, prepared: Prepared, name: str, work: ChildWork) -> None:
        """Fork the child, which waits for the request."""
        warden = os.getpid()
        if prepared.alone:
            limits = prepared.limits
            self.group = cgroups.make(name, memory=limits.memory, tasks=limits.processes)
            self.namespace = namespaces.enter()
        self.inbox, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.child = os.fork()
        if self.child == 0:
            _be_child(prepared, theirs, warden, work, self.group)
        theirs.close()
        files.pin(f"/proc/{self.child}")

    def end(self) -> int:
        """Kill them; return how many could not be killed."""
        if self.namespace is not None:
            namespaces.end(self.namespace)
        left = sandbox.kill_tree()
        if self.group is not None:
            self.group.remove()
        return left


def group_prefix(zygote: int) -> str:
    """Return how the names of control groups begin that wardens of a zygote make."""
    return f"kerneltruth-{zygote}-"


def guard(prepared: Prepared, inbox: socket.socket, *, zygote: int, work: ChildWork) -> NoReturn:
    """Fork the child, run it as the request on the socket says, and outlive it. Never returns.

    If the socket is closed instead, the child ends unused.
    """
    tree, requested = _Tree(), None
    try:
        try:
            os.setsid()
            sandbox.adopt_orphans()
            sandbox.keep_descriptors((inbox.fileno(),))
            wake = _wake_on_death()
            tree.begin(prepared, f"{group_prefix(zygote)}{os.getpid()}", work)
        finally:
            # The host must hear of what has failed.
            requested = _ordered(inbox)
        if requested is not None:
            requested = _handed_over(requested, tree, prepared.user)
            _watch(requested, wake, tree, zygote)
    except BaseException as error:
        if requested is not None:
            _say(requested.channel, lost(f"{type(error).__name__}: {error}"))
    finally:
        left = tree.end()
        if requested is not None:
            _clear(requested)
            _say(requested.channel, WardenPacket(gone=left))
        os._exit(0)


def _ordered(inbox: socket.socket) -> _Requested | None:
    """Wait for a request; return None where none will come."""
    request, descriptors, _, _ = socket.recv_fds(inbox, REQUEST_BYTES, 4)
    inbox.close()
    if not request:
        return None
    wire, channel, output, *mark = descriptors
    return _Requested(
        request=msgspec.json.decode(request, type=ChildRequest),
        wire=wire,
        channel=socket.socket(fileno=channel),
        output=output,
        mark=mark[0] if mark else None,
    )


def _handed_over(requested: _Requested, tree: _Tree, user: int | None) -> _Requested:
    """Make the child's folders and have it begin; return it with the child's mark."""
    sandbox.make_folders(requested.folder, user)
    if requested.request.cache is not None:
        requested = replace(
            requested, mark=compile_cache.enter(Path(requested.request.cache), user)
        )
    if user is not None:
        # Otherwise it could write to its output, and not open it by name.
        os.fchown(requested.output, user, -1)
    descriptors = [requested.wire, requested.channel.fileno(), requested.output]
    descriptors += [] if requested.mark is None else [requested.mark]
    assert tree.inbox is not None
    socket.send_fds(tree.inbox, [msgspec.json.encode(requested.request)], descriptors)
    tree.inbox.close()
    os.close(requested.wire)
    os.close(requested.output)
    _say(requested.channel, WardenPacket(child=tree.child))
    return requested


def _clear(requested: _Requested) -> None:
    """Remove what a child that is gone has left in its folders."""
    sandbox.remove_folder(requested.folder)
    if requested.cache is not None and not requested.request.trusted:
        sandbox.keep_compiled(requested.cache, requested.request.limits)
    if requested.mark is not None:
        # The next child of the candidate, which may start now, must find it dead.
        os.close(requested.mark)


def _wake_on_death() -> int:
    """Return a descriptor that becomes readable when a child of this process dies."""
    wake, alarm = os.pipe()
    os.set_blocking(alarm, False)
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(alarm, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return wake


def _watch(requested: _Requested, wake: int, tree: _Tree, zygote: int) -> None:
    """Wait for the child's death, or for a reason to kill it."""
    channel, limits = requested.channel, requested.request.limits
    folders = [requested.folder] if requested.cache is None else [requested.folder, requested.cache]
    looked = time.monotonic()
    poll = select.poll()
    poll.register(channel, select.POLLIN)
    poll.register(wake, select.POLLIN)
    while True:
        ready = {descriptor for descriptor, _ in poll.poll(_LOOK_UP_S * 1000)}
        if wake in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(wake, 4096)
        status = sandbox.reap()[0].get(tree.child)
        over: str | None = None
        if status is not None:
            if tree.group is not None:
                over = sandbox.exceeded(limits, (), tree.group)
            code = os.waitstatus_to_exitcode(status)
            died = WardenPacket(signal=-code) if code < 0 else WardenPacket(code=code)
            _say(channel, died if over is None else WardenPacket(over=over))
            return
        # Deaths may wake it more often than it should look.
        if not requested.request.trusted and time.monotonic() - looked > _LOOK_UP_S / 2:
            over = sandbox.exceeded(limits, folders, tree.group)
            looked = time.monotonic()
        if over is not None:
            _say(channel, WardenPacket(over=over))
        if over is not None or channel.fileno() in ready or os.getppid() != zygote:
            # After its death, `kill_tree` finds only processes that it started, usually none.
            os.kill(tree.child, signal.SIGKILL)
            os.waitpid(tree.child, 0)
            return


def _say(channel: socket.socket, packet: WardenPacket) -> None:
    with contextlib.suppress(OSError):
        channel.send(msgspec.json.encode(packet), socket.MSG_DONTWAIT)


def _be_child(
    prepared: Prepared,
    inbox: socket.socket,
    warden: int,
    work: ChildWork,
    group: cgroups.ControlGroup | None,
) -> NoReturn:
    code, requested = _SETUP_FAILED, None
    try:
        try:
            # What holds the namespace, too, so that it ends when the warden closes that.
            sandbox.keep_descriptors((inbox.fileno(),))
            _prepare(prepared, warden, group)
        finally:
            requested = _ordered(inbox)
        if requested is not None:
            _set_up(prepared, requested)
            work(requested.wire, requested.mark)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(BaseException):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _prepare(prepared: Prepared, warden: int, group: cgroups.ControlGroup | None) -> None:
    """Do what needs no request; joining a group takes the system up to 15 ms."""
    if group is not None:
        group.join()
    # What is alone ends with its namespace, as soon as the warden is gone.
    if not prepared.alone:
        sandbox.die_with_parent(warden)
    os.setsid()
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)


def _set_up(prepared: Prepared, requested: _Requested) -> None:
    """Make this process the child; the host hears of what fails here, which is our own side."""
    request = requested.request
    try:
        _redirect(requested.output)
        # It counts the user's threads, of which namespaces show the child's own alone.
        sandbox.confine(request.limits, prepared.user)
        folder, cache = requested.folder, requested.cache
        if prepared.alone:
            namespaces.settle(folder, cache, prepared.kept)
            folder, cache = namespaces.FOLDER, cache and namespaces.CACHE
        os.environ.update(sandbox.private_environment(folder, cache))
        os.environ.update(request.environment)
        os.environ.pop("PYTHONPATH", None)
        os.chdir(folder / "work")
        tempfile.tempdir = None
        marks = () if requested.mark is None else (requested.mark,)
        sandbox.keep_descriptors((requested.wire, requested.channel.fileno(), *marks))
        _contain(prepared, request, (folder, cache))
        gc.enable()
    except BaseException as error:
        _say(requested.channel, lost(f"the child could not be set up: {error}"))
        raise
    requested.channel.close()


def _contain(prepared: Prepared, request: ChildRequest, folders: tuple[Path | None, ...]) -> None:
    reads = tuple(Path(path) for path in request.reads)
    own = files.private(folders, reads, alone=prepared.alone)
    rules = None if request.trusted else landlock.merged(prepared.shared, own)
    applying.contain(prepared.level, rules, gpu=request.gpu, user=prepared.user)


def _redirect(output: int) -> None:
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
