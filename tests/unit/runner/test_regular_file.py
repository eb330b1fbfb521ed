"""Files that anyone may have put there."""

import os
import socket

import pytest

from kerneltruth.errors import UserError
from kerneltruth.runner.candidate import read_source
from kerneltruth.runner.regular_file import MOST_BYTES, read_regular


def test_a_regular_file_is_read_through_a_link(tmp_path):
    (tmp_path / "a").write_bytes(b"bytes")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    assert read_regular(tmp_path / "b") == b"bytes"


@pytest.mark.parametrize("kind", ["pipe", "device", "socket", "folder"])
def test_what_is_no_file_is_refused_and_not_waited_for(tmp_path, kind, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "x"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path = os.path.realpath("/dev/zero")
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind("x")
    else:
        path.mkdir()
    with pytest.raises(OSError, match=r"directory|not a file|No such device"):
        read_regular(path)
    with pytest.raises(UserError, match="cannot read"):
        read_source(path)


def test_a_file_without_end_is_refused(tmp_path):
    with (tmp_path / "a").open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(OSError, match=f"more than {MOST_BYTES} bytes"):
        read_regular(tmp_path / "a")


@pytest.mark.parametrize("name", ["a\0b", "\ud800"])
def test_a_name_that_no_file_can_have_is_refused(tmp_path, name):
    with pytest.raises(OSError, match="no file has such a name"):
        read_regular(tmp_path / name)
