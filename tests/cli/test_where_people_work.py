"""Settings of a project, and runs of what failed last."""

import json
import sys

import pytest

ARGUMENTS = ("--suite", "core", "--cases", "3", "--stage", "exe", "--workers", 1)
RIGHT = "import torch\ndef relu(input):\n    return torch.relu(input)\n"
WRONG = "import torch\ndef relu(input):\n    return input.abs()\n"
RAISES = "def relu(input):\n    raise ValueError('no')\n"


def names(ran):
    return sorted(c["name"].partition("@")[0] for c in json.loads(ran.out)["candidates"])


def test_a_projects_settings_are_defaults_that_the_command_line_replaces(kt, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "relu.py").write_text(RIGHT)
    (tmp_path / "pyproject.toml").write_text(
        '[tool.kerneltruth]\nseed = 5\n[tool.kerneltruth.check]\ncases = 20\ntask = "relu"\n'
    )
    ran = json.loads(kt("check", "relu.py", "--device", "cpu", "--json", fixed=False).out)
    assert (ran["seed"], ran["cases"]) == (5, 20)
    again = kt("check", "relu.py", "--device", "cpu", "--cases", 18, "--json", fixed=False)
    assert json.loads(again.out)["cases"] == 18
    (tmp_path / "pyproject.toml").write_text('[tool.kerneltruth]\nsed = "x"\n')
    ran = kt("check", "relu.py", "--device", "cpu")
    assert ran.code == 2
    assert "[tool.kerneltruth] sed: there is no such option; nearest: seed" in ran.err


def test_a_wrong_value_is_laid_to_where_it_stands(kt, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text('[tool.kerneltruth]\ncases = "many"\n')
    ran = kt("check", "relu.py")
    said = "kerneltruth: [tool.kerneltruth] of pyproject.toml: Invalid value for '--cases': "
    assert (ran.code, ran.err.count("\n"), ran.err.startswith(said)) == (2, 1, True), ran.err
    assert "pyproject" not in kt("check", "relu.py", "--cases", "many").err


@pytest.mark.slow
def test_lf_judges_what_did_not_pass_and_all_when_nothing_fails(kt, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "kernels"
    folder.mkdir()
    for name, source in (("right", RIGHT), ("wrong", WRONG), ("raises", RAISES)):
        (folder / f"relu_{name}.py").write_text(source)
    command = ("run", "--candidates", "kernels", "--device", "cpu", *ARGUMENTS, "--json")
    # A run records the words of its command.
    monkeypatch.setattr(sys, "argv", ["kerneltruth", *map(str, command)])
    assert kt(*command, "--lf").err.startswith("kerneltruth: --lf: there is no run of kernels in")
    everything = ["relu_raises.py", "relu_right.py", "relu_wrong.py"]
    assert names(kt(*command)) == everything
    assert names(kt(*command, "--lf")) == ["relu_raises.py", "relu_wrong.py"]
    for path in folder.iterdir():
        path.write_text(RIGHT + f"# {path.name}\n")
    assert names(kt(*command, "--lf")) == ["relu_raises.py", "relu_wrong.py"]
    assert names(kt(*command, "--lf")) == everything


def test_a_failing_candidate_is_listed_by_file_and_obligation(kt, tmp_path):
    (tmp_path / "relu.py").write_text(WRONG)
    ran = kt("run", "--candidates", tmp_path / "relu.py", "--device", "cpu", *ARGUMENTS)
    (line,) = (line for line in ran.out.splitlines() if line.startswith("FAILED"))
    assert line.startswith("FAILED relu.py  values: torch-only: ")
    assert "input" in line
