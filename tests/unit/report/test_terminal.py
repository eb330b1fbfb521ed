"""Views as a pipe gets them."""

import os

import pytest
from rich.table import Table
from rich.text import Text

from kerneltruth.errors import EnvironmentFault
from kerneltruth.report.terminal import piped, say, show


class Output:
    """A standard output that refuses."""

    def __init__(self, error, descriptor=None):
        self._error = error
        self._descriptor = descriptor

    def write(self, text):
        raise self._error

    def flush(self):
        pass

    def fileno(self):
        if self._descriptor is None:
            raise ValueError("no descriptor")
        return self._descriptor


def table():
    rows = Table(box=None, show_header=False)
    rows.add_row("short", "x" * 500)
    rows.add_row("a longer first cell", "y")
    return rows


def test_lines_are_neither_wrapped_nor_padded():
    first, second = piped(table()).split("\n")
    assert first.endswith("x" * 500)
    assert second.endswith(" y")


def test_lines_are_drawn_in_what_the_encoding_has():
    drawn = Table("head")
    drawn.add_row("cell")
    assert "─" in piped(drawn, "utf-8") or "━" in piped(drawn, "utf-8")
    assert piped(drawn, "ascii").isascii()


def test_brackets_are_text_and_no_markup():
    assert piped(Text("[bold]x[/bold]")) == "[bold]x[/bold]"


def test_a_reader_that_has_gone_is_no_error_and_gets_no_more(monkeypatch, tmp_path):
    with (tmp_path / "out").open("wb") as file:
        monkeypatch.setattr("sys.stdout", Output(BrokenPipeError(), file.fileno()))
        say("anything")
        assert os.fstat(file.fileno()).st_rdev == os.stat(os.devnull).st_rdev


def test_an_output_that_cannot_be_written_is_the_machines_fault(monkeypatch):
    monkeypatch.setattr("sys.stdout", Output(OSError(28, "No space left on device")))
    with pytest.raises(EnvironmentFault, match="standard output: No space left"):
        say("anything")


HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b1m\u202egnp\ud800 ok\ttab"
SHOWN = "\\x1b]0;owned\\x1b[2J\\x9b1m\\u202egnp\\ud800 ok"


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_terminal_obeys_nothing_that_is_printed(capsys, monkeypatch, is_terminal):
    monkeypatch.setattr("sys.stdout.isatty", lambda: is_terminal)
    monkeypatch.setenv("COLUMNS", "200")
    table = Table("name")
    table.add_row(Text(HOSTILE, style="red"))
    show(table)
    out = capsys.readouterr().out

    assert SHOWN in out
    assert not set("\x07\x9b\u202e\ud800") & set(out)
    assert "\x1b]" not in out
    assert "\x1b[2J" not in out
