"""Options take their defaults from the project around the working directory."""

from pathlib import Path

import pytest

from kerneltruth.cli.settings import defaults, settings_of
from kerneltruth.errors import UserError

FILE = Path("pyproject.toml")
OPTIONS = {
    "check": {"device": "device", "cases": "cases", "timeout": "deadline_s"},
    "run": {"device": "device", "workers": "workers"},
}


def test_a_key_of_the_table_holds_for_each_command_that_has_the_option():
    found = defaults(FILE, {"device": "cpu", "cases": 20}, OPTIONS)
    assert found == {"check": {"device": "cpu", "cases": 20}, "run": {"device": "cpu"}}


def test_a_key_of_a_commands_own_table_goes_before_it():
    found = defaults(FILE, {"device": "cpu", "run": {"device": "cuda"}}, OPTIONS)
    assert (found["check"]["device"], found["run"]["device"]) == ("cpu", "cuda")


def test_a_key_is_an_option_whatever_its_parameter_is_called():
    assert defaults(FILE, {"check": {"timeout": 5.0}}, OPTIONS)["check"] == {"deadline_s": 5.0}


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"devise": "cpu"}, r"\[tool.kerneltruth\] devise: .*; nearest: device"),
        ({"check": {"workers": 2}}, r"\[tool.kerneltruth.check\] workers: there is no such option"),
        ({"check": 3}, r"check: it is a command; begin \[tool.kerneltruth.check\]"),
        ({"chek": {"cases": 2}}, r"\[tool.kerneltruth\] chek: .*; nearest: check"),
    ],
)
def test_an_unknown_key_is_named_with_its_table(table, said):
    with pytest.raises(UserError, match=said):
        defaults(FILE, table, OPTIONS)


def test_the_nearest_project_counts(tmp_path):
    (tmp_path / "pyproject.toml").write_text("[tool.kerneltruth]\nseed = 1\n")
    inner = tmp_path / "inner"
    inner.mkdir()
    assert settings_of(inner) == (tmp_path / "pyproject.toml", {"seed": 1})
    (inner / "pyproject.toml").write_text("[project]\nname = 'other'\n")
    assert settings_of(inner) is None


def test_a_broken_project_file_is_named_in_one_line(tmp_path):
    (tmp_path / "pyproject.toml").write_text("[tool.kerneltruth\n")
    with pytest.raises(UserError, match=r"cannot read .*pyproject.toml: .*; correct the file") as e:
        settings_of(tmp_path)
    assert "\n" not in str(e.value)


def test_what_is_no_table_is_said_or_not_ours(tmp_path):
    path = tmp_path / "pyproject.toml"
    path.write_text("tool = 1\n")
    assert settings_of(tmp_path) is None
    path.write_text("[tool]\nkerneltruth = 3\n")
    with pytest.raises(UserError, match=r"tool.kerneltruth = 3: begin \[tool.kerneltruth\]"):
        settings_of(tmp_path)
