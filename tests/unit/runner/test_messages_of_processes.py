"""What a user reads where no candidate's process can start."""

import sys

import pytest

from kerneltruth.errors import EnvironmentFault
from kerneltruth.runner.candidate import read_candidate
from kerneltruth.runner.helper_process import HelperLost
from kerneltruth.runner.host import Runner
from kerneltruth.runner.zygote_client import Zygote

WARM = {"interpret": False, "hide_cuda": True}


def running(program):
    """A zygote's command that runs a program in its place."""
    return lambda descriptor, root: [sys.executable, "-c", program]


@pytest.mark.processes
@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("raise SystemExit('no space left on device')", "no space left on device"),
        ("raise SystemExit(3)", "exit code 3"),
    ],
)
def test_a_parent_that_ends_at_once_shows_its_last_words(program, reason, tmp_path):
    zygote = Zygote(**WARM, work_root=tmp_path, command=running(program))
    with pytest.raises(EnvironmentFault) as caught:
        zygote.ready()
    zygote.close()
    assert str(caught.value) == f"cannot start candidate processes: {reason}"


class Lost:
    """A zygote that is gone whenever it should fork."""

    def __init__(self, **options):
        del options

    def fork(self, request):
        raise HelperLost("gone")

    def close(self):
        pass


def test_a_parent_that_dies_twice_is_the_machines_fault(tmp_path):
    candidate = read_candidate("def relu(x): return x", "r.py", task_names=("relu",), task="relu")
    runner = Runner(device="cpu", work_root=tmp_path, new_zygote=Lost)
    with (
        pytest.raises(EnvironmentFault, match="keeps dying; `kerneltruth doctor`"),
        runner.open(candidate),
    ):
        pass


@pytest.mark.processes
def test_a_parent_that_takes_too_long_says_what_it_did(tmp_path):
    sleeping = running("import time; time.sleep(60)")
    zygote = Zygote(**WARM, work_root=tmp_path, command=sleeping, start_s=0.1)
    with pytest.raises(EnvironmentFault, match=r"took over 0 s; try again when this machine is"):
        zygote.ready()
    zygote.close()
