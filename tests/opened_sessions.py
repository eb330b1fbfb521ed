"""Sessions of one test, each with a child of its own."""

import textwrap

import pytest

from kerneltruth.runner.candidate import read_candidate


@pytest.fixture
def opened(runner):
    """Open a session for a source whose entry is `f`; each session has a child of its own."""
    sessions = []

    def open_session(source):
        text = textwrap.dedent(source)
        candidate = read_candidate(text, "f.py", task_names=("f",), task="f")
        sessions.append(runner.open(candidate))
        return sessions[-1]

    yield open_session
    for session in sessions:
        session.close()
