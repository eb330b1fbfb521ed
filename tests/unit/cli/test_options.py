"""The seed of a run: given, recorded or drawn."""

import json

import pytest

from kerneltruth.cli.options import settled_seed


def test_a_given_seed_counts_whatever_is_recorded(tmp_path):
    (tmp_path / "run.json").write_text('{"seed": 7}')
    assert settled_seed(3, tmp_path) == 3


@pytest.mark.parametrize(
    ("name", "manifest"),
    [("run.json", {"seed": 7}), ("generation.json", {"feedback": {"seed": 7, "cases": 3}})],
)
def test_what_goes_on_keeps_its_seed(tmp_path, name, manifest):
    (tmp_path / name).write_text(json.dumps(manifest))
    assert settled_seed(None, tmp_path) == 7


def test_a_seed_is_drawn_where_none_is_known(tmp_path):
    (tmp_path / "run.json").write_text("torn")
    (tmp_path / "generation.json").write_text('{"feedback": null}')
    drawn = {settled_seed(None, out) for out in (None, tmp_path, tmp_path / "new") for _ in "123"}
    assert len(drawn) > 1
    assert all(0 <= seed < 2**64 for seed in drawn)
