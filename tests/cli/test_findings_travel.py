"""Findings are named by their ID anywhere, and travel as one file."""

import pytest


def refused(ran):
    assert (ran.code, ran.out) == (2, ""), ran
    assert len(ran.err.splitlines()) == 1, ran.err
    return ran.err


@pytest.mark.parametrize("command", ["replay", "minimize"])
def test_a_finding_is_named_by_the_beginning_of_its_id(kt, finding, tmp_path, monkeypatch, command):
    (tmp_path / "runs").mkdir()
    (tmp_path / "failed").rename(tmp_path / "runs" / "check-1")
    monkeypatch.chdir(tmp_path)
    ran = kt(command, finding.stem[:-3], "--device", "cpu", "--json")
    assert ran.code == 0, ran.err
    assert f"runs/check-1/findings/{finding.name}" in ran.out
    assert "neither a file nor the ID" in refused(kt(command, "gelu-12", "--device", "cpu"))
    named = kt(command, finding.stem, "--run", tmp_path / "nowhere", "--device", "cpu")
    assert "there is no such folder" in refused(named)
