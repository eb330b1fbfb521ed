"""A finding is found by its ID, or the beginning of it, in the runs at hand."""

import os
from pathlib import Path

import pytest

from kerneltruth.errors import UserError
from kerneltruth.runs.lookup import located, run_parents


def finding(run, name, *, at=1):
    path = Path(run) / "findings" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{}")
    os.utime(path, ns=(at, at))
    return path


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    return tmp_path


def test_an_id_is_looked_for_in_the_runs_that_commands_make():
    first, second = run_parents()
    below = [finding(first / "check-1", "a"), finding(second / "check-1", "b")]
    assert [located(Path(name)) for name in "ab"] == below


def test_a_beginning_that_no_other_finding_has_is_enough():
    relu = finding("runs/check-1", "relu-1a2b3c")
    finding("runs/check-1", "gelu-1a2b3c")
    assert located(Path("relu-1a")) == relu


def test_a_whole_id_is_meant_though_others_begin_so():
    short = finding("runs/check-1", "relu-1a")
    finding("runs/check-1", "relu-1a2b3c")
    assert located(Path("relu-1a")) == short


def test_the_name_of_a_file_is_an_id_too():
    relu = finding("runs/check-1", "relu-1a")
    assert located(Path("relu-1a.json")) == relu


def test_the_same_finding_of_several_runs_is_taken_from_the_newest():
    newest = finding("runs/check-1", "relu-1a", at=3)
    finding("runs/check-2", "relu-1a", at=2)
    assert located(Path("relu-1a")) == newest


def test_a_path_that_is_there_is_itself(here):
    finding("runs/check-1", "relu-1a")
    (here / "relu-1a").write_text("{}")
    assert located(Path("relu-1a")) == Path("relu-1a")
    assert located(Path("elsewhere/relu-1a")) == Path("elsewhere/relu-1a")


@pytest.mark.parametrize("run", ["other/check-1", "other"])
def test_a_named_run_or_folder_of_runs_is_searched_alone(run):
    finding("runs/check-1", "relu-1a")
    assert located(Path("relu-1a"), Path("runs")).parts[0] == "runs"
    other = finding("other/check-1", "relu-1a")
    assert located(Path("relu-1a"), Path(run)) == other


def test_a_beginning_of_several_findings_names_them():
    for digit in "12345":
        finding("runs/check-1", f"relu-{digit}")
    with pytest.raises(UserError) as refused:
        located(Path("relu"))
    assert str(refused.value) == (
        "relu: 5 findings match (relu-1, relu-2, relu-3, relu-4 and 1 more); give more of the ID"
    )


def test_an_unknown_id_says_where_it_was_looked_for():
    finding("runs/check-1", "relu-1a")
    with pytest.raises(UserError, match=r"^gelu-1: neither a file nor the ID of one of the 1 find"):
        located(Path("gelu-1"))


def test_a_run_that_is_not_there_is_refused():
    with pytest.raises(UserError, match=r"^--run nowhere: there is no such folder; name a run"):
        located(Path("relu-1a"), Path("nowhere"))


def test_runs_of_other_users_are_not_searched(monkeypatch):
    finding("runs/check-1", "relu-1a")
    monkeypatch.setattr(os, "getuid", lambda: -1)
    with pytest.raises(UserError, match="of the 0 findings"):
        located(Path("relu-1a"))
