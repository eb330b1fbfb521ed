"""Arguments for children, and looks at processes; shared by the tests of the runner."""

import contextlib
import struct
from pathlib import Path

from kerneltruth.runner.arguments import TensorArgument

POISON, OTHER = b"0123456789abcdef", b"fedcba9876543210"
CPU = "cpu"


def vector(*values, name="x"):
    buffer = struct.pack(f"<{len(values)}f", *values)
    return TensorArgument(
        name=name, dtype="float32", shape=(len(values),), strides=(1,), offset=0, buffer=buffer
    )


def floats(data):
    return struct.unpack(f"<{len(data) // 4}f", data)


def call(session, *arguments, poison=POISON, deadline_s=20.0):
    return session.call(arguments, poison=poison, deadline_s=deadline_s)


def is_running(pid):
    try:
        state, _ = state_and_parent(pid)
    except FileNotFoundError:
        return False
    return state not in "ZX"


def processes_named(name):
    """Running processes that have given themselves this name, by the numbers seen from here."""
    found = []
    for path in Path("/proc").glob("[0-9]*/comm"):
        with contextlib.suppress(OSError):
            if path.read_text().strip() == name:
                found.append(int(path.parent.name))
    return [pid for pid in found if is_running(pid)]


def zygote_of(pid):
    """The process that forked the warden of a child."""
    _, warden = state_and_parent(pid)
    return state_and_parent(warden)[1]


def state_and_parent(pid):
    state, parent, *_ = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return state, int(parent)
