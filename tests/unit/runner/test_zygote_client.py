"""Ctrl-C while a warm process is being started: it comes through, and leaves nothing behind."""

import os
import signal
import subprocess
import threading
from typing import ClassVar

import pytest

from kerneltruth.runner.zygote_client import Zygote

WARM = {"interpret": False, "hide_cuda": True}


class Struck(subprocess.Popen):
    """A process that was started, with a Ctrl-C before anyone could know of it."""

    started: ClassVar[list[int]] = []

    def __init__(self, *arguments, **named):
        super().__init__(*arguments, **named)
        self.started.append(self.pid)
        os.kill(os.getpid(), signal.SIGINT)
        # Python heeds a signal between two of its instructions.
        sum(range(1000))


@pytest.fixture
def started_processes():
    """The processes that were started."""
    Struck.started.clear()
    # A shell may start background processes so that they ignore Ctrl-C.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield Struck.started
    assert signal.signal(signal.SIGINT, before) is signal.default_int_handler


def is_there(pid):
    return os.path.exists(f"/proc/{pid}")


def test_an_interrupt_amid_the_start_ends_what_was_started(started_processes, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        Zygote(**WARM, work_root=tmp_path, popen=Struck)
    (pid,) = started_processes
    assert not is_there(pid)
    assert list(tmp_path.iterdir()) == []


def test_a_host_that_ignores_interrupts_starts_its_zygote(started_processes, tmp_path):
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        zygote = Zygote(**WARM, work_root=tmp_path, popen=Struck)
    finally:
        signal.signal(signal.SIGINT, before)
    assert is_there(started_processes[0])
    zygote.close()
    assert not is_there(started_processes[0])


def test_another_thread_may_start_one(tmp_path):
    made = []
    thread = threading.Thread(target=lambda: made.append(Zygote(**WARM, work_root=tmp_path)))
    thread.start()
    thread.join()
    made[0].close()
    assert list(tmp_path.iterdir()) == []
