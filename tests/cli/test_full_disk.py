"""A disk that fills up, at every point of a run: told in one line, and nothing is lost."""

import contextlib
import json
import os
import resource
import subprocess

import pytest

KERNEL = "def relu(x):\n    return None\n"


@pytest.fixture
def tiny_disk(tmp_path):
    """A file system of 256 KiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)]
    try:
        mounted = subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        mounted = False
    if not mounted:
        pytest.skip("mounting a file system is not allowed here; RLIMIT_FSIZE is tested instead")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def fill(folder, *, leave):
    """Write until this many bytes are free."""
    free = os.statvfs(folder)
    size = free.f_bavail * free.f_frsize - leave
    (folder / "filling").write_bytes(bytes(max(size, 0)))


def test_a_full_disk_is_reported_before_anything_is_judged(kt, candidate, tiny_disk):
    fill(tiny_disk, leave=0)
    ran = kt("check", candidate(KERNEL), "--device", "cpu", "--out", tiny_disk / "run")
    assert ran.code == 3
    assert "No space left on device; free some space" in ran.err
    assert len(ran.err.splitlines()) == 1


def test_a_disk_that_fills_up_leaves_a_run_that_goes_on(kt, candidate, tiny_disk):
    fill(tiny_disk, leave=8192)
    arguments = ("check", candidate(KERNEL), "--device", "cpu", "--out", tiny_disk / "run")
    ran = kt(*arguments)
    assert ran.code == 3
    assert "No space left on device" in ran.err
    assert "Traceback" not in ran.err
    assert kt("compare", tiny_disk / "run", tiny_disk / "run").code == 0
    (tiny_disk / "filling").unlink()
    again = kt(*arguments, "--json")
    assert (again.code, json.loads(again.out)["kind"]) == (1, "type")


@contextlib.contextmanager
def largest_file(size):
    """Let this process write no file larger than a number of bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_limit_on_file_sizes_is_reported_in_one_line(kt, candidate, tmp_path):
    run = tmp_path / "run"
    with largest_file(1200):
        ran = kt("check", candidate(KERNEL), "--device", "cpu", "--out", run, "--json")
    assert (ran.code, ran.out) == (3, ""), ran.err
    assert "File too large" in ran.err
    assert "Traceback" not in ran.err
    assert json.loads((run / "run.json").read_text())["ended"] is None


def test_a_full_standard_output_is_reported_and_the_run_is_kept(process, failed_run):
    with open("/dev/full", "w") as full:
        ran = process("compare", failed_run, failed_run, stdout=full, stderr=subprocess.PIPE)
    assert ran.code == 3
    assert ran.err.splitlines() == [
        "kerneltruth: cannot write to standard output: No space left on device"
    ]
