"""Ctrl-C in the middle: the run stays readable and goes on, and nothing is left running."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from interrupts import heed_interrupts
from kerneltruth.runs.store import RunStore

PATIENCE_S = 120

# A shell shows 130 for both. Python ends itself by the signal if the interrupt passed through an
# `exec` of its libraries, whatever was done about it since.
INTERRUPTED = (130, -signal.SIGINT)

# Sleeps in its first call, until it is allowed to be quick.
SLOW = """
import pathlib, subprocess, time, torch
FOLDER = pathlib.Path({folder!r})

def relu(x):
    if not (FOLDER / "quick").exists():
        (FOLDER / "child").write_text(str(subprocess.Popen(["sleep", "1000"]).pid))
        time.sleep(1000)
    return torch.relu(x)
"""


@pytest.fixture
def begin(environment):
    """Start a command in a process group of its own, as a shell does."""
    begun = []

    def start(*arguments):
        process = subprocess.Popen(
            [sys.executable, "-m", "kerneltruth", *map(str, arguments)],
            # The candidates here write into a folder of the test's what they started.
            env=environment | {"KERNELTRUTH_ISOLATION": "process"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            preexec_fn=heed_interrupts,
        )
        begun.append(process)
        return process

    yield start
    for process in begun:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=60)


def wait_until(process, happened):
    end = time.monotonic() + PATIENCE_S
    while not happened():
        assert process.poll() is None, process.communicate(timeout=60)
        assert time.monotonic() < end
        time.sleep(0.05)


def strike(process, times=1):
    """Ctrl-C in the process's terminal, and what it says at its end."""
    for _ in range(times):
        os.killpg(process.pid, signal.SIGINT)
        time.sleep(0.1)
    out, err = process.communicate(timeout=60)
    return out, err


def alive(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def started_by(pid):
    """Processes that were begun for the command, in whatever session."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdigit() else []
        except OSError:
            continue
        if b"--host" in words and words[words.index(b"--host") + 1] == str(pid).encode():
            found.append(int(entry.name))
    return found


@pytest.mark.slow
def test_an_interrupted_check_ends_all_and_goes_on_when_repeated(begin, kt, tmp_path):
    kernel, run = tmp_path / "kernel.py", tmp_path / "run"
    kernel.write_text(SLOW.format(folder=str(tmp_path)))
    child = tmp_path / "child"
    arguments = ("check", kernel, "--device", "cpu", "--cases", "2", "--timeout", "300")
    process = begin(*arguments, "--out", run)
    wait_until(process, lambda: child.exists() and child.read_text())
    assert started_by(process.pid)
    out, err = strike(process)
    assert (process.returncode, out) == (130, "")
    assert "Traceback" not in err
    assert f"repeat the command with --out {run}" in err.splitlines()[-1]
    assert started_by(process.pid) == []
    assert not alive(int(child.read_text()))
    assert RunStore.open(run, keep=dict).results() == ()
    (tmp_path / "quick").touch()
    again = kt(*arguments, "--isolation", "process", "--out", run, "--json", fixed=False)
    assert (again.code, json.loads(again.out)["verdict"]) == (0, "pass")


@pytest.mark.slow
def test_an_interrupt_keeps_what_was_printed_of_several_files(begin, good, kt, tmp_path):
    slow, run = tmp_path / "slow.py", tmp_path / "run"
    slow.write_text(SLOW.format(folder=str(tmp_path)))
    child = tmp_path / "child"
    arguments = ("check", good, slow, "--device", "cpu", "--cases", "2", "--timeout", "300")
    process = begin(*arguments, "--out", run)
    wait_until(process, lambda: child.exists() and child.read_text())
    out, err = strike(process)
    assert process.returncode == 130
    assert out.startswith(f"{good}\nverdict    pass")
    assert "interrupted; 1 result kept" in err.splitlines()[-1]
    (tmp_path / "quick").touch()
    again = kt(*arguments, "--isolation", "process", "--out", run, "--json", fixed=False)
    assert json.loads(again.out)["counts"]["passed"] == 2


def test_an_interrupt_while_libraries_load_is_heeded_however_often_it_comes(begin, good, tmp_path):
    run = tmp_path / "run"
    process = begin("check", good, "--device", "cpu", "--out", run)
    wait_until(process, lambda: started_by(process.pid))
    out, err = strike(process, times=3)
    assert process.returncode in INTERRUPTED
    assert out == ""
    assert "Traceback" not in err
    assert "kerneltruth: interrupted" in err
    assert started_by(process.pid) == []


@pytest.mark.slow
def test_an_interrupted_audit_keeps_its_results_and_resumes(begin, kt, tmp_path):
    run = tmp_path / "run"
    log = run / "results.jsonl"
    names = ("relu", "relu_strided", "relu_nan_swallowed", "silu", "softmax")
    only = [word for name in names for word in ("--only", name)]
    options = ("--no-peer-checks", "--device", "cpu", "--cases", "12", "--out", run)
    arguments = ("audit", *only, *options)
    first = begin(*arguments)
    # The second line says that the first is whole: one that is being written may be taken back.
    wait_until(first, lambda: log.exists() and log.read_bytes().count(b"\n") >= 2)
    out, err = strike(first)
    assert (first.returncode, out) == (130, "")
    assert "Traceback" not in err
    assert started_by(first.pid) == []
    before = log.read_bytes()
    kept = [line["name"] for line in RunStore.open(run, keep=dict).results()]
    assert 1 <= len(kept) < len(names)
    again = kt(*arguments, "--json")
    assert again.code == 0, again.err
    assert [k["name"] for k in json.loads(again.out)["kernels"]] == list(names)
    assert log.read_bytes().startswith(before)
    assert len(RunStore.open(run, keep=dict).results()) == len(names)


@pytest.mark.slow
def test_an_interrupted_first_call_that_never_ends_is_not_waited_for(begin, tmp_path):
    kernel, child = tmp_path / "relu.py", tmp_path / "child"
    kernel.write_text(SLOW.format(folder=str(tmp_path)))
    how = ("--task", "kernelbenchx/relu", "--suite", "kernelbenchx", "--against", "eager")
    process = begin("time", kernel, *how, "--device", "cpu", "--budget", "0")
    wait_until(process, lambda: child.exists() and child.read_text())
    out, err = strike(process)
    assert (process.returncode, out) == (130, "")
    assert err.splitlines()[-1] == "kerneltruth: interrupted"
    assert started_by(process.pid) == []
    assert not alive(int(child.read_text()))
