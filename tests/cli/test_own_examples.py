"""The kernels of `examples/own`, judged by the references beside them: right, and with a fault."""

import json
import re
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "own"
TUTORIAL = ROOT / "docs" / "tutorial" / "first-verdict.md"
GUIDE = ROOT / "docs" / "guides" / "own-kernels.md"
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
def judge(kt, tmp_path):
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
def test_a_right_kernel_breaks_nothing(judge, name):
    document = judge(name, EXAMPLES / name / "kernel.py")
    assert (document["verdict"], broken(document)) == ("pass", set())


@pytest.mark.slow
@pytest.mark.sampled(by=lambda name: BROKEN[name])
@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found(judge, name, tmp_path):
    source = (EXAMPLES / name / "kernel.py").read_text()
    assert source.count(FAULTS[name][0]) == 1
    kernel = tmp_path / "kernel.py"
    kernel.write_text(source.replace(*FAULTS[name]))
    document = judge(name, kernel)
    assert document["verdict"] == "fail"
    # A fault that some values hide is found by other inputs, too.
    assert broken(document) >= BROKEN[name]


@pytest.mark.slow
def test_a_kernel_that_ignores_a_number_breaks_attributes(judge, tmp_path):
    kernel = tmp_path / "kernel.py"
    source = (EXAMPLES / "add_rms_norm" / "kernel.py").read_text()
    kernel.write_text(source.replace("hidden + eps)", "hidden + 1e-6)"))
    assert "attributes" in broken(judge("add_rms_norm", kernel))


@pytest.mark.slow
def test_a_square_in_half_precision_breaks_values(judge, tmp_path):
    kernel = tmp_path / "kernel.py"
    source = (EXAMPLES / "add_rms_norm" / "kernel.py").read_text()
    kernel.write_text(source.replace("wide = added.to(tl.float32)", "wide = added"))
    assert broken(judge("add_rms_norm", kernel, "--seed", 2, cases=48)) == {"values"}


def printed_rows(page, command):
    """The rows that a page shows after a command, by name; a row may go on in the next lines."""
    text = page.read_text(encoding="utf-8").partition(f"$ kerneltruth {command}")[2]
    after = re.split(r"\n```|\n\n", text.partition("\n")[2])[0]
    rows = re.split(r"\n(?=\w)", textwrap.dedent(after))
    return {row.split()[0]: " ".join(row.split()).removesuffix(" ...") for row in rows}


def assert_printed(ran, rows):
    printed = " ".join(ran.out.split())
    names = ("verdict", "on", "because", "smallest", "broken", "score", "tried")
    differing = [rows[name] for name in names if name in rows and rows[name] not in printed]
    assert not differing, ran.out


@pytest.mark.slow
def test_the_tutorial_shows_what_its_commands_print(kt, tmp_path):
    kernel = ROOT / "src" / "kerneltruth" / "corpus" / "bugs" / "tanh_naive_exp.py"
    run = tmp_path / "run"
    checked = kt("check", kernel, "--seed", 0, "--device", "cpu", "--out", run)
    assert_printed(checked, printed_rows(TUTORIAL, "check"))
    (finding,) = (run / "findings").glob("*.json")
    assert_printed(kt("minimize", finding, "--device", "cpu"), printed_rows(TUTORIAL, "minimize"))


@pytest.mark.slow
def test_the_guide_shows_what_its_kernel_breaks(kt, tmp_path):
    files = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    kernel, reference = tmp_path / "kernel.py", tmp_path / "reference.py"
    reference.write_text(files[0])
    right = (EXAMPLES / "add_rms_norm" / "kernel.py").read_text()
    kernel.write_text(right.replace(*FAULTS["add_rms_norm"]))
    given = ("--reference", reference, "--device", "cpu", "--seed", 3, "--out", tmp_path / "run")
    assert_printed(kt("check", kernel, *given), printed_rows(GUIDE, "check"))
