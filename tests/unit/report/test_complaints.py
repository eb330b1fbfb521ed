"""Errors as a user sees them."""

import errno

import pytest

from kerneltruth.errors import EnvironmentFault, InternalError, Interrupted, UserError
from kerneltruth.report.complaints import complain


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UserError("wrong\n  value"), 2),
        (EnvironmentFault("no device"), 3),
        (Interrupted("kept"), 130),
        (KeyboardInterrupt(), 130),
        (MemoryError(), 3),
        (OSError(errno.ENOSPC, "No space left on device", "/tmp/x"), 3),
        (OSError(errno.EMFILE, "Too many open files"), 3),
    ],
)
def test_an_error_that_a_user_can_act_on_is_one_line(capsys, error, code):
    assert complain(error) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("kerneltruth: ")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (MemoryError(), "out of memory; try fewer --workers"),
        (KeyboardInterrupt(), "interrupted"),
        (OSError(errno.ENOSPC, "No space left on device", "/tmp/x"), "No space left on device"),
        (
            OSError(errno.EACCES, "Permission denied", "/d"),
            "cannot use '/d': Permission denied; name another path",
        ),
        (UserError("wrong\n  value"), "wrong value"),
    ],
)
def test_a_complaint_names_the_trouble_first(capsys, error, says):
    complain(error)
    assert capsys.readouterr().err.startswith(f"kerneltruth: {says}")


def test_the_file_that_the_system_refused_is_named(capsys):
    complain(OSError(errno.EROFS, "Read-only file system", "/data/x"))
    assert "/data/x" in capsys.readouterr().err


@pytest.mark.parametrize(
    "error", [InternalError("a broken promise"), KeyError("x"), OSError(errno.ENOENT, "No file")]
)
def test_our_bug_comes_with_a_traceback_and_where_to_report_it(capsys, error):
    assert complain(error) == 4
    err = capsys.readouterr().err
    assert type(error).__name__ in err
    assert "please report it with the lines above" in err


def test_a_name_in_a_complaint_is_not_obeyed(capsys):
    complain(UserError("no file 'a\x1b[2Jb\x9b'"))

    assert capsys.readouterr().err == "kerneltruth: no file 'a\\x1b[2Jb\\x9b'\n"
