"""The share of own and library kernels in a result, in a line."""

import pytest
from msgspec.structs import replace

from kerneltruth.documents.records import KernelFact, KernelLaunchesRecord
from kerneltruth.report.kernel_words import whose_work

OWN = KernelLaunchesRecord(name="bias_relu", module="f.py", own=True, launches=1)
LIBRARY = [KernelLaunchesRecord(name=n, module="aten", own=False, launches=1) for n in "abcde"]
FACT = KernelFact(
    own=0.5,
    library=0.5,
    own_launches=1,
    launches=2,
    runs=(OWN, LIBRARY[0]),
    elements=6,
    stored=6,
    case="M=2",
    probe="needed",
)
NONE = replace(FACT, own=0.0, library=1.0, own_launches=0, runs=tuple(LIBRARY), probe=None)


@pytest.mark.parametrize(
    ("fact", "line"),
    [
        (FACT, "own 1 of 2 launches (bias_relu; PyTorch: a); wrong without them"),
        (
            replace(FACT, runs=(OWN,), probe="not_needed"),
            "own 1 of 2 launches (bias_relu); the result stays right without them",
        ),
        (
            replace(FACT, runs=(OWN,), probe=None, reason="no case is right"),
            "own 1 of 2 launches (bias_relu); no probe: no case is right",
        ),
        (NONE, "no kernel of its own (PyTorch: a, b, c, 2 more)"),
        (replace(NONE, runs=()), "no kernel of its own"),
        (replace(NONE, own_launches=None, runs=(), reason="not here"), "not seen: not here"),
    ],
)
def test_the_line_names_the_kernels_that_did_the_work(fact, line):
    assert whose_work(fact) == line
