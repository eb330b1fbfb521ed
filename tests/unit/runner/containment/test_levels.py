"""Which level children get, and when a command refuses."""

import json
import os
import subprocess
import sys

import click
import pytest

from kerneltruth.cli.options import isolate_at
from kerneltruth.errors import EnvironmentFault, UserError
from kerneltruth.runner.containment import levels
from kerneltruth.runner.import_path import import_path


@pytest.fixture(autouse=True)
def _nothing_asked(monkeypatch):
    monkeypatch.setenv(levels.VARIABLE, "")


def middle():
    """What a machine offers that has the middle level."""
    return levels.OfferedLevel("syscalls", "this kernel has no Landlock", 0)


def full():
    """What a machine offers that has all levels."""
    return levels.OfferedLevel("namespaces", None, 7)


@pytest.fixture
def command():
    """What a command's options are read in."""
    with click.Context(click.Command("check")) as context:
        yield context


def test_the_best_level_is_the_default_and_a_runner_may_have_less():
    assert levels.chosen(offers=middle) == "syscalls"
    assert levels.chosen("process", offers=middle) == "process"


@pytest.mark.parametrize("level", ["process", "syscalls", None])
def test_a_level_that_is_offered_is_the_one_that_children_get(command, level):
    assert isolate_at(command, level, offers=middle) == level
    assert levels.chosen(offers=middle) == (level or "syscalls")


@pytest.mark.parametrize("before", ["", "strict"])
def test_a_level_is_asked_for_as_long_as_one_command_lasts(command, before, monkeypatch):
    monkeypatch.setenv(levels.VARIABLE, before)
    isolate_at(command, "process", offers=middle)
    assert os.environ[levels.VARIABLE] == "process"
    command.close()
    assert os.environ[levels.VARIABLE] == before


def test_a_stronger_level_than_offered_is_refused_in_one_line_with_the_reason(command):
    with pytest.raises(EnvironmentFault, match="only 'syscalls': this kernel has no Landlock"):
        isolate_at(command, "strict", offers=middle)
    assert not os.environ[levels.VARIABLE]
    with pytest.raises(EnvironmentFault):
        levels.chosen("strict", offers=middle)
    with pytest.raises(EnvironmentFault):
        isolate_at(command, "namespaces", offers=middle)


def test_a_child_on_a_cuda_device_gets_no_more_than_is_tried_there():
    assert levels.chosen(offers=full) == "namespaces"
    assert levels.chosen(device="cuda:0", offers=full) == "strict"
    assert levels.chosen(device="cuda:0", offers=middle) == "syscalls"
    with pytest.raises(EnvironmentFault, match="only 'strict': more than 'strict' is not yet"):
        levels.chosen("namespaces", device="cuda:0", offers=full)


def test_a_machine_with_no_first_process_for_a_namespace_offers_less_and_says_why(tmp_path):
    command = [sys.executable, "-P", "-m", "kerneltruth.runner.containment.probe"]
    environment = {"PATH": str(tmp_path), "PYTHONPATH": import_path()}
    ran = subprocess.run(command, env=environment, capture_output=True, check=True)
    level, limited_by, abi = json.loads(ran.stdout)
    assert level == ("strict" if abi >= 3 else "syscalls")
    assert "Landlock" in limited_by or "there is no `cat` on PATH" in limited_by


def test_a_level_that_does_not_exist_is_the_users_mistake(command):
    with pytest.raises(UserError, match="must be one of process, syscalls, strict, namespaces"):
        isolate_at(command, "bubblewrap", offers=middle)
