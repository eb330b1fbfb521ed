"""What a candidate's process needs beside it, by language and mode."""

import pytest

from kerneltruth.runner.child.recorders import Recorders, recorders_for
from kerneltruth.runner.protocol import Load
from kerneltruth.runner.unsupported import UnsupportedError


def load(language, **fields):
    return Load(
        source="", filename="k.py", language=language, entry="k", **{"device": "cpu"} | fields
    )


def test_a_candidate_without_kernels_of_its_own_needs_no_recorder():
    assert recorders_for(load("torch")) == Recorders()


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        (load("cuda"), "a CUDA source needs a CUDA device"),
        (load("torch", mode="compile"), "only Triton compiles without running: torch"),
        (load("cuda", mode="compile", device="cuda"), "only Triton compiles without running: cuda"),
    ],
)
def test_what_no_mode_or_machine_can_do_is_said_before_anything_is_imported(wanted, says):
    with pytest.raises(UnsupportedError, match=says):
        recorders_for(wanted)
