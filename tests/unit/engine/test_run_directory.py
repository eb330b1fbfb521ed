"""Run directories of commands."""

import pytest

from kerneltruth.documents.records import Attempt, CandidateRef
from kerneltruth.documents.verdict import Passed
from kerneltruth.engine.run_directory import findings_in, open_run
from kerneltruth.errors import Interrupted, UserError
from kerneltruth.runs.store import RunStore

WANTED = {"command": "check", "identity": "abc", "device": "cpu", "seed": 0, "keep": dict}


def test_a_new_run_lies_below_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with open_run(None, **WANTED) as store:
        assert store.path.parent.name == "runs"
        assert store.path.name.startswith("check-")


def test_two_runs_of_one_second_have_folders_of_their_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with open_run(None, **WANTED) as one, open_run(None, **WANTED) as other:
        assert one.path != other.path


def test_an_unfinished_run_is_continued(tmp_path):
    with open_run(tmp_path / "run", **WANTED) as store:
        store.append("one", {"name": "one"})
    with open_run(tmp_path / "run", **WANTED) as store:
        assert store.done() == {"one"}


@pytest.mark.parametrize("change", [{"identity": "other"}, {"command": "audit"}, {"seed": 1}])
def test_a_run_of_something_else_is_refused(tmp_path, change):
    with open_run(tmp_path / "run", **WANTED):
        pass
    with (
        pytest.raises(UserError, match="it holds a different run; name a new directory"),
        open_run(tmp_path / "run", **{**WANTED, **change}),
    ):
        pass


def interrupted_after_one_result(folder):
    with open_run(folder, **WANTED) as store:
        store.append("one", {"name": "one"})
        raise KeyboardInterrupt


def test_an_interrupt_says_what_is_kept_and_how_to_go_on(tmp_path):
    folder = tmp_path / "my run"
    with pytest.raises(Interrupted, match=r"1 result kept .* --out '.*my run' to go on"):
        interrupted_after_one_result(folder)
    assert [line["name"] for line in RunStore.open(folder, keep=dict).results()] == ["one"]


def test_a_hazard_without_a_finding_is_kept_as_it_is():
    attempt = Attempt(
        task="relu",
        candidate=CandidateRef(sha256="0" * 64, path="relu.py", language="triton", entry="relu"),
        verdict=Passed(),
        cases=8,
        failed=0,
        hazards={"shapes.large": "wrong at large sizes"},
    )
    found = findings_in(attempt, {})
    assert found.all == ()
    assert found.attempt.hazards == attempt.hazards
