"""A user's own file that never ends is named with the line that runs."""

import threading
import time

import pytest

from kerneltruth.errors import UserError
from kerneltruth.suites.deadline import within

ENDLESS = """
def endless():
    while True:
        pass
"""


@pytest.fixture
def limited(tmp_path):
    path = tmp_path / "mine.py"

    def run(call, seconds=5.0):
        return within(seconds, call, path=path, line=7, what="running the file")

    return run, path


def test_a_call_returns_what_it_returns_and_raises_what_it_raises(limited):
    run, _ = limited
    assert run(lambda: 3) == 3
    with pytest.raises(ZeroDivisionError):
        run(lambda: 1 / 0)


def test_an_endless_call_is_named_with_its_line_and_ended(limited):
    run, path = limited
    made = {}
    exec(compile(ENDLESS, str(path), "exec"), made)
    before = threading.active_count()
    with pytest.raises(
        UserError, match=r"mine\.py:[34]: running the file takes longer than 0\.2 s"
    ):
        run(made["endless"], seconds=0.2)
    for _ in range(100):
        if threading.active_count() == before:
            break
        time.sleep(0.05)
    assert threading.active_count() == before


def test_what_runs_outside_of_the_file_has_the_line_of_what_was_asked(limited):
    run, _ = limited
    with pytest.raises(UserError, match=r"mine\.py:7: "):
        run(lambda: time.sleep(1), seconds=0.1)
