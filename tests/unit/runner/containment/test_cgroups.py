"""Where a control group for a child is made, and that it holds the child's tree to its limits."""

import contextlib
import os
import signal
import textwrap
import time
from dataclasses import replace
from pathlib import Path

import pytest
from children import CPU, call, state_and_parent, vector

from kerneltruth.runner.candidate import read_candidate
from kerneltruth.runner.containment import cgroups, levels
from kerneltruth.runner.host import Runner
from kerneltruth.runner.sandbox import ResourceLimits

LIMITS = {"memory": 2**28, "tasks": 20}


@pytest.fixture
def tree(tmp_path):
    """Folders as the system shows them, and what /proc/self/cgroup says."""

    def made(memberships, **files):
        for name, text in files.items():
            path = tmp_path / name.replace("__", "/")
            path.mkdir(parents=True)
            (path / "cgroup.subtree_control").write_text(text)
        (tmp_path / "memberships").write_text(textwrap.dedent(memberships))
        return {"root": tmp_path, "memberships": tmp_path / "memberships"}

    return made


def test_version_1_has_a_folder_for_each_controller_below_that_of_this_process(tree, tmp_path):
    here = tree("8:pids:/\n4:cpu,memory:/session\n0::/\n", memory__session="", pids="")
    group = cgroups.make("child", **LIMITS, **here)
    assert group == cgroups.ControlGroup(
        memory=tmp_path / "memory/session/child", tasks=tmp_path / "pids/child"
    )
    assert (group.memory / "memory.limit_in_bytes").read_text() == str(2**28)
    assert (group.tasks / "pids.max").read_text() == "20"


def test_version_2_has_one_folder_where_the_controllers_are_on(tree, tmp_path):
    here = tree("0::/own\n", own="cpu memory pids")
    group = cgroups.make("child", **LIMITS, **here)
    assert group is not None
    assert group.memory == group.tasks == tmp_path / "own/child"
    assert (group.memory / "memory.max").read_text() == str(2**28)


@pytest.mark.parametrize("on", ["", "cpu pids"])
def test_no_group_is_made_where_a_controller_is_off(tree, tmp_path, on):
    here = tree("0::/slice/own\n", slice="cpu memory pids", slice__own=on)
    assert cgroups.make("child", **LIMITS, **here) is None
    assert not [*tmp_path.glob("**/child")]


def test_what_the_system_says_of_a_group_is_read(tmp_path):
    (tmp_path / "memory.events").write_text("low 0\noom 3\noom_kill 0\n")
    (tmp_path / "pids.events").write_text("max 0\n")
    group = cgroups.ControlGroup(memory=tmp_path, tasks=tmp_path)
    assert not group.out_of_memory
    assert not group.out_of_tasks
    (tmp_path / "memory.events").write_text("low 0\noom 3\noom_kill 1\n")
    (tmp_path / "pids.events").write_text("max 2\n")
    assert group.out_of_memory
    assert group.out_of_tasks


@pytest.fixture(scope="module")
def grouped():
    if levels.offered().level != "namespaces" or not cgroups.may_make():
        pytest.skip("no control group for a child may be made here")


@pytest.fixture(scope="module")
def limited(grouped):
    limits = replace(ResourceLimits(), processes=64, memory=2**28)
    with Runner(device=CPU, limits=limits, isolation="namespaces") as runner:
        yield runner


def call_source(runner, source):
    text = textwrap.dedent(source)
    with runner.open(read_candidate(text, "f.py", task_names=("f",), task="f")) as session:
        return call(session, vector(1.0))


@pytest.mark.processes
def test_memory_that_no_process_has_mapped_counts_too(limited):
    seen = call_source(
        limited,
        """
        import os
        def f(x):
            memory = os.memfd_create("kept")
            for _ in range(600):
                os.write(memory, bytes(2**20))
            return os.fstat(memory).st_size
        """,
    )
    assert (seen.ended, seen.message) == (
        "flooded",
        "took more than 256 MiB of memory, with all its processes",
    )


@pytest.mark.processes
def test_there_is_never_one_process_more_than_allowed(limited):
    seen = call_source(
        limited,
        """
        import os, time
        def f(x):
            begun = 0
            try:
                while begun < 200:
                    if os.fork() == 0:
                        time.sleep(60)
                    begun += 1
            except BlockingIOError:
                pass
            return begun
        """,
    )
    assert seen.ended == "flooded" or int(seen.results[0].text) < 64


@pytest.mark.processes
def test_groups_end_with_their_children(limited):
    before = _groups()
    assert call_source(limited, "def f(x): return x").ended == "returned"
    until = time.monotonic() + 10
    while (left := _unused(_groups() - before)) and time.monotonic() < until:
        time.sleep(0.05)
    assert left == set()


@pytest.mark.processes
def test_the_group_of_a_child_that_was_never_requested_ends_with_the_zygote(grouped):
    before = _groups()
    with Runner(device=CPU, isolation="namespaces") as runner:
        assert call_source(runner, "def f(x): return x").ended == "returned"
        ours = _groups() - before
        assert ours
    assert [path for path in ours if path.exists()] == []


@pytest.mark.processes
def test_the_group_of_a_killed_warden_ends_with_the_zygote(grouped):
    before = _groups()
    with (
        Runner(device=CPU, isolation="namespaces") as runner,
        runner.open(read_candidate("def f(x): return x", "f.py", task_names=("f",))) as session,
    ):
        assert call(session, vector(1.0)).ended == "returned"
        ours = _groups() - before
        _, warden = state_and_parent(session.pid)
        os.kill(warden, signal.SIGKILL)
    assert ours
    assert [path for path in ours if path.exists()] == []


def _unused(groups):
    """Those without a process: not that of the child which waits for the next request."""
    return {path for path in groups if path.exists() and not _processes(path)}


def _processes(group):
    with contextlib.suppress(OSError):
        return (group / "cgroup.procs").read_text()
    return ""


def _groups():
    """Groups of children of this process; other tests' children may be among them."""
    return {path for path in Path("/sys/fs/cgroup").glob("**/kerneltruth-*") if _ours(path)}


def _ours(path):
    """Whether the warden that a group is named after was forked from a process of this test's."""
    zygote = path.name.split("-")[1]
    try:
        parent = Path(f"/proc/{zygote}/stat").read_text().rpartition(")")[2].split()[1]
    except OSError:
        return False
    return int(parent) == os.getpid()
