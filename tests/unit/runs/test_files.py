"""The folders of the user's cache, and files that are written whole."""

import os
from pathlib import Path

import pytest

from kerneltruth.engine.devices import cache_root
from kerneltruth.errors import EnvironmentFault
from kerneltruth.runs.files import cache_folder, new_folder, write_whole


def test_caches_lie_where_the_environment_says(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_root() == tmp_path / "kerneltruth" / "compiled"
    assert cache_folder("schemas") == tmp_path / "kerneltruth" / "schemas"


@pytest.mark.parametrize("unset", [None, ""])
def test_caches_lie_in_the_home_folder_otherwise(unset, tmp_path, monkeypatch):
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    if unset is not None:
        monkeypatch.setenv("XDG_CACHE_HOME", unset)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder("compiled") == tmp_path / ".cache" / "kerneltruth" / "compiled"


def test_nothing_is_cached_for_a_user_without_a_home(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # Python expands `~` to itself where there is no home.
    assert cache_root(Path("~/.cache/kerneltruth/compiled")) is None
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_asks_for_another(tmp_path):
    (tmp_path / "runs").write_text("a file")
    with pytest.raises(EnvironmentFault, match=r"no run directory .* name one with --out"):
        new_folder("check", [tmp_path / "runs", tmp_path / "runs" / "below"])


def test_a_folder_lies_where_it_can_be_made(tmp_path):
    (tmp_path / "runs").write_text("a file")
    made = new_folder("check", [tmp_path / "runs", tmp_path / "other"])
    assert made.parent == tmp_path / "other"
    assert made.is_dir()


def test_nothing_is_written_through_a_link_that_lies_in_the_way(tmp_path):
    other = tmp_path / "other"
    other.write_text("kept")
    (tmp_path / f".new.{os.getpid()}").symlink_to(other)
    write_whole(tmp_path / "new", b"data")

    assert (other.read_text(), (tmp_path / "new").read_text()) == ("kept", "data")
