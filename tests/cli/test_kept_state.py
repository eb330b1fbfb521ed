"""A kernel that keeps a result, or changes one later: named so, and shown by its finding."""

import json
import subprocess
import sys

import pytest

KEEPS_THE_FIRST = """
import torch
kept = {}
def relu(input, inplace=False):
    key = tuple(input.shape)
    if key not in kept:
        kept[key] = torch.relu(input).clone()
    return kept[key].clone()
"""


@pytest.fixture
def finding(kt, tmp_path):
    """The finding of a kernel that other cases of the same shapes show to be wrong."""
    kernel = tmp_path / "relu.py"
    kernel.write_text(KEEPS_THE_FIRST)
    ran = kt("check", kernel, "--device", "cpu", "--json", "--out", tmp_path / "run")
    assert json.loads(ran.out)["kind"] == "kept_state", ran.out
    (path,) = (tmp_path / "run" / "findings").glob("*.json")
    return path


def test_a_wrong_value_that_a_fresh_process_has_right_is_kept_state(kt, finding):
    ran = kt("replay", finding, "--device", "cpu", "--json")
    (replayed,) = json.loads(ran.out)["results"]
    assert replayed["reproduced"], replayed
    assert replayed["kind"] == "kept_state"


@pytest.mark.slow
def test_its_script_shows_it_without_kerneltruth(kt, finding):
    assert kt("minimize", finding, "--device", "cpu").code == 0
    script = finding.with_suffix(".py")
    ended = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert ended.stdout.endswith("WRONG\n"), ended.stdout + ended.stderr
    assert ended.returncode == 1


CHANGES_THE_LAST = """
import os, time, torch
kept = []
def relu(input, inplace=False):
    kept.append(torch.relu(input).clone())
    if os.fork() == 0:
        time.sleep(0.3)
        kept[-1].zero_()
        os._exit(0)
    return kept[-1]
"""


@pytest.mark.slow
def test_a_result_that_a_process_changes_after_the_last_call_replays(kt, tmp_path):
    kernel, run = tmp_path / "relu.py", tmp_path / "run"
    kernel.write_text(CHANGES_THE_LAST)
    ran = kt("check", kernel, "--device", "cpu", "--json", "--out", run)
    assert json.loads(ran.out)["kind"] == "changed_later", ran.out
    (replayed,) = json.loads(kt("replay", run, "--device", "cpu", "--json").out)["results"]
    assert (replayed["reproduced"], replayed["kind"]) == (True, "changed_later")
