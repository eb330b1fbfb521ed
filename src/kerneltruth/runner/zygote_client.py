"""The judge's end of a zygote: start it, wait for it, have it fork, end it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from kerneltruth.runner.child_request import ChildRequest
from kerneltruth.runner.helper_process import START_S, Command, HelperLost, HelperProcess
from kerneltruth.runner.import_path import import_path
from kerneltruth.runner.link import Link
from kerneltruth.runner.sandbox import base_environment

# Importing the compiler must start no processes.
_COMPILES = {"TORCHINDUCTOR_COMPILE_THREADS": "1"}


class Zygote(HelperProcess):
    """A warm process; once ready, it says which versions it found."""

    cannot = "cannot start candidate processes"
    slow = "importing torch and Triton took over {:.0f} s; try again when this machine is less busy"

    def __init__(
        self,
        *,
        interpret: bool,
        hide_cuda: bool,
        work_root: Path | None,
        compiles: bool = False,
        built: Path | None = None,
        start_s: float = START_S,
        command: Command | None = None,
        popen: type[subprocess.Popen[bytes]] = subprocess.Popen,
    ) -> None:
        """Start it.

        It also imports what `torch.compile` needs if it compiles. `built` keeps Triton's access to
        the CUDA driver between runs; None leaves it to each child. It may take `start_s` seconds to
        start. `command` gives what is started with a socket's descriptor and a folder, and `popen`
        starts it.
        """
        environment = zygote_environment(interpret=interpret, hide_cuda=hide_cuda)
        options = ["--compiles"] if compiles else []
        options += ["--built", str(built)] if built is not None else []
        begun = command or _command
        super().__init__(
            lambda descriptor, root: [*begun(descriptor, root), *options],
            environment | (_COMPILES if compiles else {}),
            work_root,
            start_s=start_s,
            popen=popen,
        )

    def fork(self, wanted: ChildRequest) -> Link:
        """Make it fork a child, in a folder within its own.

        Raises:
            HelperLost: it is gone.
        """
        self.ready()
        wire, their_wire = socket.socketpair()
        channel, their_channel = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        output, their_output = os.pipe()
        request = replace(wanted, folder=str(self.root / wanted.folder))
        link = Link(wire, channel, output)
        try:
            self.send(request, [their_wire.fileno(), their_channel.fileno(), their_output])
        except HelperLost:
            link.close()
            raise
        finally:
            their_wire.close()
            their_channel.close()
            os.close(their_output)
        return link


def _command(descriptor: int, root: Path) -> list[str]:
    module = "kerneltruth.runner.zygote"
    options = ["--socket-fd", str(descriptor), "--host", str(os.getpid()), "--root", str(root)]
    # Where people keep their work, and runs are written.
    options += ["--hidden", os.getcwd()]
    return [sys.executable, "-P", "-m", module, *options]


def zygote_environment(*, interpret: bool, hide_cuda: bool) -> dict[str, str]:
    """Return the variables for a process of this package's own, isolated from ours."""
    environment = base_environment(os.environ)
    if interpret:
        environment["TRITON_INTERPRET"] = "1"
    if hide_cuda:
        environment["CUDA_VISIBLE_DEVICES"] = ""
    environment["PYTHONPATH"] = import_path()
    return environment
