"""What a run stores of its tasks, and what is said of a damaged file."""

import pytest

from kerneltruth.errors import UserError
from kerneltruth.runs.tasks_file import read_tasks, write_tasks


def test_an_older_run_stores_nothing_of_its_tasks(tmp_path):
    assert read_tasks(tmp_path) == {}


def test_what_was_written_is_read(tmp_path):
    write_tasks(tmp_path, {})
    assert read_tasks(tmp_path) == {}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[1]", "tasks.json is damaged: it holds no `tasks`; repeat the run"),
        ("{torn", r"tasks.json is damaged \(.*\); restore it, or judge the kernel again"),
    ],
)
def test_a_damaged_file_is_refused_with_the_next_step(tmp_path, text, says):
    (tmp_path / "tasks.json").write_text(text)
    with pytest.raises(UserError, match=says):
        read_tasks(tmp_path)
