"""Which level children get, and when a command refuses."""

import pytest

from kerneltruth.cli.options import isolate_at
from kerneltruth.errors import EnvironmentFault, UserError
from kerneltruth.runner.containment import levels


@pytest.fixture(autouse=True)
def _nothing_asked(monkeypatch):
    monkeypatch.setenv(levels.VARIABLE, "")


def middle():
    """What a machine offers that has the middle level."""
    return levels.OfferedLevel("syscalls", "this kernel has no Landlock", 0)


def test_the_best_level_is_the_default_and_a_runner_may_have_less():
    assert levels.chosen(offers=middle) == "syscalls"
    assert levels.chosen("process", offers=middle) == "process"


@pytest.mark.parametrize("level", ["process", "syscalls", None])
def test_a_level_that_is_offered_is_the_one_that_children_get(level):
    assert isolate_at(level, offers=middle) == level
    assert levels.chosen(offers=middle) == (level or "syscalls")


def test_a_stronger_level_than_offered_is_refused_in_one_line_with_the_reason():
    with pytest.raises(EnvironmentFault, match="only 'syscalls': this kernel has no Landlock"):
        isolate_at("strict", offers=middle)
    with pytest.raises(EnvironmentFault):
        levels.chosen("strict", offers=middle)


def test_a_level_that_does_not_exist_is_the_users_mistake():
    with pytest.raises(UserError, match="must be one of process, syscalls, strict"):
        isolate_at("bubblewrap", offers=middle)
