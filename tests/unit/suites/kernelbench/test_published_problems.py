"""Problems are read from checkouts and data files, in the forms that KernelBench has."""

import json

import pytest

from kerneltruth.errors import UserError
from kerneltruth.suites.kernelbench.published_problems import read_problems

from .problems import GROUPED, LINEAR


@pytest.fixture
def checkout(tmp_path):
    folder = tmp_path / "KernelBench" / "level2"
    folder.mkdir(parents=True)
    (folder / "10_Rows_times_weights.py").write_text(LINEAR)
    (folder / "9_Groups.py").write_text(GROUPED)
    (folder / "notes.py").write_text("raise SystemExit")
    return tmp_path


@pytest.mark.parametrize("below", ["", "KernelBench", "KernelBench/level2"])
def test_a_checkout_is_read_from_any_of_its_folders(checkout, below):
    assert list(read_problems(checkout / below)) == ["level2/9", "level2/10"]


def test_a_single_file_is_a_problem(checkout):
    path = checkout / "KernelBench" / "level2" / "10_Rows_times_weights.py"
    (found,) = read_problems(path).values()
    assert (found.title, found.says) == (
        "Rows_times_weights",
        "Multiplies rows by weights and cuts off what is below 0.",
    )


def test_a_data_file_has_the_same_problems(checkout, tmp_path):
    path = tmp_path / "problems.jsonl"
    row = {"code": LINEAR, "level": 2, "problem_id": 10, "name": "10_Rows_times_weights"}
    path.write_text(json.dumps(row) + "\n\n")
    assert read_problems(path)["level2/10"] == read_problems(checkout)["level2/10"]


def test_a_parquet_file_has_the_same_problems(checkout, tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path = tmp_path / "problems.parquet"
    rows = [{"code": LINEAR, "level": 2, "problem_id": 10, "name": "10_Rows_times_weights"}]
    parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    assert read_problems(path)["level2/10"] == read_problems(checkout)["level2/10"]


def test_reading_parquet_without_pyarrow_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    path = tmp_path / "problems.parquet"
    path.write_bytes(b"PAR1")
    with pytest.raises(UserError, match="pip install pyarrow"):
        read_problems(path)


def test_a_data_file_of_another_form_says_which_columns_it_lacks(tmp_path):
    path = tmp_path / "other.jsonl"
    path.write_text(json.dumps({"prompt": "x", "level": 1}) + "\n")
    with pytest.raises(UserError, match="row 1 has no code, problem_id"):
        read_problems(path)


def test_a_broken_line_of_a_data_file_is_named(tmp_path):
    path = tmp_path / "broken.jsonl"
    path.write_text("{\n")
    with pytest.raises(UserError, match="line 1 is not JSON"):
        read_problems(path)


@pytest.mark.parametrize(
    ("name", "holds", "says"),
    [
        ("list.jsonl", "[1]\n", "line 1 is not a JSON object"),
        (
            "word.jsonl",
            '{"code": "", "level": "two", "problem_id": 1}\n',
            "row 1: invalid literal for int.*: 'two'",
        ),
        (
            "none.jsonl",
            '{"code": "", "level": null, "problem_id": 1}\n',
            "row 1: None is no number; give a whole one",
        ),
        ("other.parquet", "PAR1, or not", "not a parquet file"),
    ],
)
def test_what_a_data_file_cannot_mean_is_named_with_the_file(tmp_path, name, holds, says):
    (tmp_path / name).write_text(holds)
    with pytest.raises(UserError, match=f"^--suite kernelbench:{tmp_path}/{name}: {says}"):
        read_problems(tmp_path / name)


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    folder = tmp_path / "level1"
    (folder / "3_Folder.py").mkdir(parents=True)
    with pytest.raises(UserError, match=r"^cannot read .*/level1/3_Folder.py: Is a directory; mak"):
        read_problems(folder)


def test_a_data_file_that_cannot_be_read_is_named(tmp_path):
    # A file that opens and gives an error when it is read, whoever reads.
    (tmp_path / "rows.jsonl").symlink_to("/proc/self/mem")
    with pytest.raises(UserError, match=r"^cannot read .*/rows.jsonl: .*; make it readable"):
        read_problems(tmp_path / "rows.jsonl")


@pytest.mark.parametrize("place", ["", "nowhere"])
def test_a_path_without_problems_says_what_was_looked_for(tmp_path, place):
    with pytest.raises(UserError, match=r"no problems there|no such file"):
        read_problems(tmp_path / place)
