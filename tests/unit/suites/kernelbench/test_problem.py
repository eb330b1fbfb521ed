"""Problems are read and parsed, and nothing of them is run."""

import json

import pytest

from kerneltruth.errors import UserError
from kerneltruth.suites.kernelbench.problem import read_problems, read_reference

from .problems import GROUPED, HEAD, LINEAR, NO_INIT, REMEMBERING, problem


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


@pytest.mark.parametrize(
    ("setting", "rule"),
    [
        ("tolerance = 0.1", r"tolerance = 0.1: give a relative and an absolute error"),
        ("tolerance = (1, -1)", r"tolerance = \(1, -1\): give a relative and an absolute error"),
        ("backward = 1", "backward = 1: give True or False"),
    ],
)
def test_a_setting_of_a_reference_that_means_nothing_is_named_with_its_line(
    tmp_path, setting, rule
):
    path = tmp_path / "mine.py"
    path.write_text(f"def mine(x): return x\ndef inputs(): return (1,)\n{setting}\n")
    with pytest.raises(UserError, match=f"mine.py:3: {rule}"):
        read_reference(path)


@pytest.mark.parametrize("place", ["", "nowhere"])
def test_a_path_without_problems_says_what_was_looked_for(tmp_path, place):
    with pytest.raises(UserError, match=r"no problems there|no such file"):
        read_problems(tmp_path / place)


def test_constants_are_numbers_and_tuples_and_what_follows_from_them_is_none():
    found = problem(GROUPED).constants
    assert found == {"batch": 32, "channels": 256, "groups": 8, "get_inputs:100": 100}


def test_an_expression_of_numbers_is_a_constant():
    assert problem(LINEAR).constants["rows"] == 256


def test_lists_tuples_and_shared_assignments_are_constants():
    source = (
        HEAD + "height = width = 224\nsizes = [64] * 3\nkernel = (3, 5)\nrate = 0.5\nlow = -1\n"
    )
    assert problem(source).constants == {"height": 224, "sizes": [64] * 3, "kernel": (3, 5)}


def test_a_large_size_written_inside_get_inputs_is_a_constant():
    source = HEAD + "def get_inputs():\n    return [torch.rand(2, 3, 224, 224)]\n"
    assert problem(source).constants == {"get_inputs:224": 224}


def test_a_large_size_beside_other_constants_is_one_too():
    source = HEAD + "batch = 10\nshape = (batch, 3, 224, 224)\n"
    assert problem(source).constants == {"batch": 10, "shape:224": 224}


def test_a_constant_that_the_model_itself_reads_keeps_its_value():
    assert problem(REMEMBERING).constants == {"features": 100}


@pytest.mark.parametrize(
    "reads",
    ["class Model:\n    kept = [n]\n", "def Model(k=n):\n    return k\n"],
    ids=["class", "default"],
)
def test_a_constant_read_while_the_model_is_defined_keeps_its_value(reads):
    assert problem(f"n = 64\nm = 48\n{reads}").constants == {"m": 48}


def test_a_constant_whose_name_a_parameter_takes_may_vary():
    source = f"{HEAD}n = 64\nclass Model:\n    def __init__(self, n):\n        self.n = n\n"
    assert problem(source).constants == {"n": 64}


def test_a_problem_without_a_model_says_so():
    found = problem(HEAD + "def get_inputs():\n    return []\n" + NO_INIT)
    assert found.trouble == "the problem does not define Model"


def test_a_source_that_is_not_python_is_a_problem_with_a_reason():
    assert problem("def (:\n").trouble.startswith("not Python")


def test_a_constant_passed_as_another_parameter_is_noticed():
    source = GROUPED.replace("[channels, groups, weight_shape]", "[groups, channels, weight_shape]")
    assert "`groups` as the constructor's `channels`" in problem(source).doubt


def test_constants_passed_as_their_own_parameters_are_in_no_doubt():
    assert (problem(GROUPED).trouble, problem(GROUPED).doubt) == (None, None)


def test_a_problem_file_may_lie_anywhere(tmp_path):
    path = tmp_path / "7_Mine.py"
    path.write_text(LINEAR)
    ((name, found),) = read_problems(path).items()
    assert (name, found.level, found.number, found.trouble) == ("level0/7", 0, 7, None)
