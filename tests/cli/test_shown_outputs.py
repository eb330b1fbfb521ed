"""What the documents show of a command is what it prints."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CORPUS = ROOT / "src" / "kerneltruth" / "corpus"


def text(name):
    return (ROOT / name).read_text(encoding="utf-8")


def block(name, language):
    """The first block of a document in this language."""
    found = re.search(rf"^```{language}\n(.*?)^```$", text(name), re.MULTILINE | re.DOTALL)
    return found.group(1)


def session(name):
    """The words of the `check` that a document shows, and what it prints there."""
    found = re.search(r"^```\n\$ kerneltruth (check .*?)\n(.*?)^```$", text(name), re.M | re.S)
    return found.group(1).split(), found.group(2)


SHOWN = {
    "README.md": lambda: block("README.md", "python"),
    "docs/tutorial/first-verdict.md": lambda: text(CORPUS / "bugs" / "tanh_naive_exp.py"),
}


def without_times(output):
    """The words of a command's output, without what differs from run to run."""
    output = re.sub(r"runs/check-\d+-\d+", "runs/check", output)
    return re.sub(r"took +[\d.]+ s", "took", output).split()


@pytest.mark.parametrize("name", SHOWN)
def test_the_output_of_check_that_is_shown_is_what_it_prints(name, kt, tmp_path, monkeypatch):
    words, shown = session(name)
    (tmp_path / words[1]).write_text(SHOWN[name](), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "500")
    ran = kt(*words, "--device", "cpu", fixed=False)
    assert without_times(ran.out) == without_times(shown)
