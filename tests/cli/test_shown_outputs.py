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
    """A command's output on one line, without what differs from run to run."""
    output = re.sub(r"runs/check-\d+-\d+", "runs/check", output)
    return " ".join(re.sub(r"took +[\d.]+ s", "took", output).split())


def shows(shown, printed):
    """Whether the output is what is shown, where a line of `...` stands for lines left out."""
    parts = re.split(r"^\.\.\.$", shown, flags=re.MULTILINE)
    pattern = " .+ ".join(re.escape(without_times(part)) for part in parts)
    return re.fullmatch(pattern, without_times(printed)) is not None


@pytest.mark.parametrize("shown", ["a b\n...\nd\n", "a  b\nc\nd\n", "a\nb\n...\nd\n"])
def test_lines_may_be_left_out_where_it_says_so(shown):
    assert shows(shown, "a b\nc\nd\n")


@pytest.mark.parametrize("shown", ["a b\nd\n", "a b\n...\nc\n", "x\n...\nd\n", "a\n...\nd\ne\n"])
def test_a_line_that_is_not_printed_or_not_shown_is_noticed(shown):
    assert not shows(shown, "a b\nc\nd\n")


@pytest.mark.parametrize("name", SHOWN)
def test_the_output_of_check_that_is_shown_is_what_it_prints(name, kt, tmp_path, monkeypatch):
    words, shown = session(name)
    (tmp_path / words[1]).write_text(SHOWN[name](), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "500")
    ran = kt(*words, "--device", "cpu", fixed=False)
    assert shows(shown, ran.out), ran.out


def test_the_profile_that_the_page_on_verdicts_shows_is_what_check_prints(
    kt, tmp_path, monkeypatch
):
    page = text("docs/reference/verdicts.md")
    command, shown = re.search(
        r"^\$ kerneltruth (check .*?)\n(.*?)^```$", page, re.M | re.S
    ).groups()
    words = command.split()
    words[1] = str(ROOT / words[1])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "500")
    printed = " ".join(kt(*words, fixed=False).out.split())
    place = 0
    for part in shown.split("\n...\n"):
        said = " ".join(part.split())
        place = printed.find(said, place)
        assert place >= 0, said
