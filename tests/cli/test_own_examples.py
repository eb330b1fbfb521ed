"""The kernels of `examples/own`, judged by the references beside them: right, and with a fault."""

import json
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples" / "own"
FAULTS = {
    "add_rms_norm": ("/ hidden + eps", "/ BLOCK + eps"),
    "rotary": ("low * c - high * s", "low * c + high * s"),
    "int4_matmul": ("k[:, None] % 2 * 4", "(1 - k[:, None] % 2) * 4"),
}
BROKEN = {
    "add_rms_norm": {"shapes"},
    "rotary": {"published"},
    "int4_matmul": {"published"},
}


@pytest.fixture
def judged(kt, tmp_path):
    """Judge a kernel by the reference of an example; return the document of `check --json`."""

    def judge(name, kernel, *options, cases=16):
        given = ("--reference", EXAMPLES / name / "reference.py", "--device", "cpu", "--json")
        given += ("--cases", cases, "--out", tmp_path / "run")
        return json.loads(kt("check", kernel, *given, *options).out)

    return judge


def broken(document):
    return {n for n, part in document["profile"].items() if part["status"] == "broken"}


@pytest.mark.slow
@pytest.mark.sampled(by=lambda name: BROKEN[name])
@pytest.mark.parametrize("name", FAULTS)
def test_a_right_kernel_breaks_nothing(judged, name):
    document = judged(name, EXAMPLES / name / "kernel.py")
    assert (document["verdict"], broken(document)) == ("pass", set())


@pytest.mark.slow
@pytest.mark.sampled(by=lambda name: BROKEN[name])
@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found(judged, name, tmp_path):
    source = (EXAMPLES / name / "kernel.py").read_text()
    assert source.count(FAULTS[name][0]) == 1
    kernel = tmp_path / "kernel.py"
    kernel.write_text(source.replace(*FAULTS[name]))
    document = judged(name, kernel)
    assert document["verdict"] == "fail"
    # A fault that some values hide is found by other inputs, too.
    assert broken(document) >= BROKEN[name]


@pytest.mark.slow
def test_a_kernel_that_ignores_a_number_breaks_attributes(judged, tmp_path):
    kernel = tmp_path / "kernel.py"
    source = (EXAMPLES / "add_rms_norm" / "kernel.py").read_text()
    kernel.write_text(source.replace("hidden + eps)", "hidden + 1e-6)"))
    assert "attributes" in broken(judged("add_rms_norm", kernel))


@pytest.mark.slow
def test_a_square_in_half_precision_breaks_values(judged, tmp_path):
    kernel = tmp_path / "kernel.py"
    source = (EXAMPLES / "add_rms_norm" / "kernel.py").read_text()
    kernel.write_text(source.replace("wide = added.to(tl.float32)", "wide = added"))
    assert broken(judged("add_rms_norm", kernel, "--seed", 2, cases=48)) == {"values"}
