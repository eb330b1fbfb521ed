"""Which level children get, and when a command refuses."""

import pytest

from kerneltruth.cli.options import isolate_at
from kerneltruth.errors import EnvironmentFault, UserError
from kerneltruth.runner.containment import levels


@pytest.fixture(autouse=True)
def weak(monkeypatch):
    """A machine that offers the middle level."""
    here = levels.OfferedLevel("syscalls", "this kernel has no Landlock", 0)
    monkeypatch.setattr(levels, "offered", lambda: here)
    monkeypatch.setenv(levels.VARIABLE, "")


def test_the_best_level_is_the_default_and_a_runner_may_have_less():
    assert levels.chosen() == "syscalls"
    assert levels.chosen("process") == "process"


@pytest.mark.parametrize("level", ["process", "syscalls", None])
def test_a_level_that_is_offered_is_the_one_that_children_get(level):
    assert isolate_at(level) == level
    assert levels.chosen() == (level or "syscalls")


def test_a_stronger_level_than_offered_is_refused_in_one_line_with_the_reason():
    with pytest.raises(EnvironmentFault, match="only 'syscalls': this kernel has no Landlock"):
        isolate_at("strict")
    with pytest.raises(EnvironmentFault):
        levels.chosen("strict")


def test_a_level_that_does_not_exist_is_the_users_mistake():
    with pytest.raises(UserError, match="must be one of process, syscalls, strict"):
        isolate_at("bubblewrap")
