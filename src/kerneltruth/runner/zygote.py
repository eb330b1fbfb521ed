"""The zygote: a process that has imported torch and Triton, and forks a warden per candidate.

`python -m kerneltruth.runner.zygote --socket-fd N --mode MODE`. It touches no device and runs no
candidate. It sends {"ready": ...} on its control socket, then receives requests: a JSON object with
three descriptors. It ends when the host hangs up or dies, with all that it started.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import importlib
import json
import os
import platform
import select
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import msgspec

from kerneltruth.runner import sandbox, warden
from kerneltruth.runner.child_request import REQUEST_BYTES, ChildRequest
from kerneltruth.runner.containment import cgroups, files, namespaces

# Imported before the first fork so that no child pays for them.
_PRELOADED = (
    "ctypes.util",
    "inspect",
    "linecache",
    "numpy.random",
    "torch",
    "torch.nn.functional",
    "torch.utils._python_dispatch",
    "triton",
    "triton.language",
    "kerneltruth.runner.child.serving",
    "kerneltruth.runner.child.launches",
)
# Modules that a first launch would import; versions of Triton may lack or move them.
_PRELOADED_IF_THERE = (
    "triton.language.extra.libdevice",
    "triton.compiler.code_generator",
    "triton.compiler.errors",
    "triton.runtime.errors",
    "triton.experimental.gluon",
)
_PRELOADED_TO_COMPILE = ("triton.compiler.compiler", "kerneltruth.runner.child.compile_only")
_PRELOADED_FOR_TORCH_COMPILE = (
    "torch._dynamo",
    "torch._dynamo.backends.inductor",
    "torch._inductor.compile_fx",
    "torch._inductor.codegen.triton",
    "torch._inductor.codegen.cuda_combined_scheduling",
    "torch._inductor.async_compile",
    "torch._functorch.aot_autograd",
)
# What all children see of the machine's files: rules, and what namespaces keep.
_VisibleFiles = tuple[tuple[files.FileRule, ...], namespaces.KeptFolders]

_LOOK_UP_S = 1.0


def main() -> None:
    """Import, report it, and serve until the host is gone."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--socket-fd", type=int, required=True)
    parser.add_argument("--host", type=int, required=True)
    parser.add_argument("--root", type=Path, required=True)
    parser.add_argument("--hidden", type=Path, nargs="*", default=())
    parser.add_argument("--compiles", action="store_true")
    parser.add_argument("--built", help="where Triton's access to the driver is kept")
    arguments = parser.parse_args()
    control = socket.socket(fileno=arguments.socket_fd)
    control.set_inheritable(False)
    more = _PRELOADED_FOR_TORCH_COMPILE if arguments.compiles else ()
    ready = _warm_up(more, arguments.built)
    with contextlib.suppress(OSError):
        control.send(json.dumps({"ready": ready}).encode())
    gpu = os.environ.get("CUDA_VISIBLE_DEVICES") != ""
    rules = files.shared(os.environ, hidden=arguments.hidden, gpu=gpu)
    for path, _ in rules:
        if path.startswith("/proc/"):
            files.pin(path)
    wardens = _Wardens((rules, namespaces.kept(rules)))
    try:
        _serve(control, arguments.host, wardens)
    finally:
        sandbox.kill_tree()
        # Wardens that were killed have not removed theirs.
        cgroups.remove_all(warden.group_prefix(os.getpid()))
        sandbox.remove_folder(arguments.root)
        sys.stderr.flush()
        # Tearing down an interpreter with torch in it takes longer than all of the above.
        os._exit(0)


def _warm_up(more: tuple[str, ...], built: str | None) -> dict[str, str]:
    """Import everything; return the versions that the children will have."""
    interpreter = None
    if os.environ.get("TRITON_INTERPRET") == "1":
        interpreter = importlib.import_module("kerneltruth.runner.interpreter")
        interpreter.load()
    for name in _PRELOADED:
        importlib.import_module(name)
    torch, triton = sys.modules["torch"], sys.modules["triton"]
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES") == "" or not torch.backends.cuda.is_built()
    with contextlib.nullcontext() if hidden else devices_unasked(torch.cuda):
        for name in (*_PRELOADED_IF_THERE, *more):
            with contextlib.suppress(ImportError):
                importlib.import_module(name)
    torch.set_num_threads(1)
    if interpreter is not None:
        interpreter.prepare()
    else:
        # Without these, children only start colder.
        with contextlib.suppress(Exception):
            for name in _PRELOADED_TO_COMPILE:
                importlib.import_module(name)
            precompile = importlib.import_module("kerneltruth.runner.child.precompile")
            precompile.compile_once()
            if built is not None:
                precompile.reach_driver(built)
    sandbox.adopt_orphans()
    gc.collect()
    gc.disable()
    # Otherwise the collector would write to, and so copy, every page that children share.
    gc.freeze()
    return {
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "triton": str(triton.__version__),
    }


@contextlib.contextmanager
def devices_unasked(cuda: ModuleType) -> Iterator[None]:
    """Answer imports that ask `torch.cuda` for devices, so that they touch neither CUDA nor NVML.

    A child inherits what either has begun here, but not its descriptors: NVML would then count no
    device there.
    """
    known = {"is_available": lambda: True, "device_count": lambda: 1}
    real = {name: getattr(cuda, name) for name in known}
    vars(cuda).update(known)
    try:
        yield
    finally:
        vars(cuda).update(real)


class _Wardens:
    """One for each child, and one ahead, with a child that is not requested yet.

    Attributes:
        pids: of all that live.
    """

    def __init__(self, seen: _VisibleFiles) -> None:
        self.pids: set[int] = set()
        self._seen = seen
        self._ahead: tuple[warden.Prepared, socket.socket] | None = None

    def send(self, request: bytes, descriptors: list[int]) -> None:
        """Give a request to a warden, and start the next one.

        Raises:
            OSError: no process can be started.
        """
        wanted = msgspec.json.decode(request, type=ChildRequest)
        shared, kept = self._seen
        prepared = warden.Prepared(
            level=wanted.level, limits=wanted.limits, shared=shared, kept=kept
        )
        if not self._sent_ahead(prepared, request, descriptors):
            with self._started(prepared) as inbox:
                socket.send_fds(inbox, [request], descriptors)
        self._ahead = prepared, self._started(prepared)

    def _sent_ahead(
        self, prepared: warden.Prepared, request: bytes, descriptors: list[int]
    ) -> bool:
        """Give a request to the one ahead, if it suits and lives; there is none ahead then."""
        ahead, self._ahead = self._ahead, None
        if ahead is None:
            return False
        with ahead[1] as inbox:
            if ahead[0] != prepared:
                return False
            try:
                socket.send_fds(inbox, [request], descriptors)
            except OSError:
                return False
        return True

    def _started(self, prepared: warden.Prepared) -> socket.socket:
        """Fork a warden; return where it takes its request, in the zygote only."""
        zygote = os.getpid()
        inbox, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            pid = os.fork()
            if pid == 0:
                work = sys.modules["kerneltruth.runner.child.serving"].main
                warden.guard(prepared, theirs, zygote=zygote, work=work)
        self.pids.add(pid)
        return inbox


def _serve(control: socket.socket, host: int, wardens: _Wardens) -> None:
    signal.signal(signal.SIGCHLD, lambda *_: None)
    poll = select.poll()
    poll.register(control, select.POLLIN)
    while os.getppid() == host:
        ready = poll.poll(_LOOK_UP_S * 1000)
        _look_after(wardens.pids)
        if not ready:
            continue
        request, descriptors, _, _ = socket.recv_fds(control, REQUEST_BYTES, 3)
        if not request:
            return
        try:
            wardens.send(request, descriptors)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)


def _look_after(wardens: set[int]) -> None:
    """Reap wardens; if one was killed, its child's tree becomes ours and ends."""
    ended, none_left = sandbox.reap()
    wardens -= set(ended)
    if any(ended.values()) and not none_left:
        sandbox.kill_tree(spare=wardens)


if __name__ == "__main__":
    main()
