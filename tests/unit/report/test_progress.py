"""Progress of a command's steps."""

import sys

import pytest

from kerneltruth.documents.checks import RefusedFile
from kerneltruth.engine.requests import FileEnded, Step
from kerneltruth.errors import Interrupted
from kerneltruth.report.progress import follow
from kerneltruth.report.terminal import say


def steps(notable=False):
    for done in (1, 2):
        yield Step(done=done, total=2, text=f"case {done}", notable=notable)
    return {"answer": 42}


def test_the_document_is_what_the_steps_return(capsys):
    assert follow(steps(), quiet=True) == {"answer": 42}
    assert capsys.readouterr() == ("", "")


def test_ordinary_steps_in_quick_succession_print_no_line_in_a_pipe(capsys):
    assert follow(steps(), quiet=False) == {"answer": 42}
    assert capsys.readouterr().err == ""


def test_notable_steps_are_lines_on_standard_error(capsys):
    follow(steps(notable=True), quiet=False)
    assert capsys.readouterr() == ("", "1/2 case 1\n2/2 case 2\n")


def files():
    for name in ("a.py", "b.py"):
        ended = RefusedFile(path=name, reason="")
        yield FileEnded(done=1, total=2, text=name, path=name, ended=ended)
    return {"answer": 42}


@pytest.mark.parametrize("terminal", [False, True])
def test_what_became_of_a_file_is_shown_on_standard_output_as_it_ends(
    terminal, capsys, monkeypatch
):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    monkeypatch.setenv("TERM", "xterm")

    found = follow(files(), quiet=False, show=lambda file: say(file.path))

    assert found == {"answer": 42}
    assert capsys.readouterr().out == "a.py\nb.py\n"


class Failing:
    """A pipe; writing to it raises an error."""

    def __init__(self, error):
        self._error = error

    def isatty(self):
        return False

    def write(self, text):
        raise self._error


def test_a_reader_of_progress_may_leave(monkeypatch):
    monkeypatch.setattr("sys.stderr", Failing(BrokenPipeError))
    assert follow(steps(notable=True), quiet=False) == {"answer": 42}


def interrupted_between_steps(ended):
    try:
        yield Step(done=0, total=1, text="x", notable=True)
    except KeyboardInterrupt as stop:
        ended.append("cleaned up")
        raise Interrupted("kept") from stop


def test_an_interrupt_between_steps_reaches_the_command(monkeypatch):
    ended = []
    monkeypatch.setattr("sys.stderr", Failing(KeyboardInterrupt))
    with pytest.raises(Interrupted, match="kept"):
        follow(interrupted_between_steps(ended), quiet=False)
    assert ended == ["cleaned up"]


def test_a_step_says_nothing_that_a_terminal_obeys(capsys):
    def steps():
        yield Step(done=1, total=2, text="a\x1b[2Jb", notable=True)
        return "document"

    follow(steps(), quiet=False)

    assert capsys.readouterr().err == "1/2 a\\x1b[2Jb\n"
