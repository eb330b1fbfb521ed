"""Which processes a command has import torch before they are needed."""

import pytest

from kerneltruth.engine.runners import begin


class Starts:
    """A runner that records what it starts."""

    def __init__(self, device, targets=()):
        self.device, self.targets, self.modes = device, targets, ()

    def start(self, modes):
        self.modes = modes


@pytest.mark.parametrize(
    ("runner", "timed", "modes"),
    [
        (Starts("cpu"), False, ("run",)),
        (Starts("cpu", ("sm_90",)), False, ("run", "compile")),
        (Starts("cpu"), True, ("run",)),
        (Starts("cuda:0"), False, ("run",)),
        (Starts("cuda:0"), True, ("run", "time_compiled")),
    ],
)
def test_what_is_needed_later_begins_at_once(runner, timed, modes):
    begin(runner, timed=timed)
    assert runner.modes == modes
