"""What namespaces keep a child from, by themselves and at the level that is made of them."""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import textwrap
import time
from pathlib import Path

import pytest
from children import CPU, call, is_running, processes_named, vector, zygote_of

from kerneltruth.runner.candidate import read_candidate
from kerneltruth.runner.containment import landlock, levels, namespaces, probe
from kerneltruth.runner.containment.landlock import READ, READ_DIR
from kerneltruth.runner.containment.libc import prctl
from kerneltruth.runner.host import Runner
from kerneltruth.runner.sandbox import make_folders

pytestmark = pytest.mark.processes
NAME = f"kt-{os.getpid()}"
NAMESPACES = ("ipc", "mnt", "net", "pid")


def needs_namespaces():
    here = levels.offered()
    if here.level != "namespaces":
        pytest.skip(f"no isolation 'namespaces' here: {here.limited_by}")


def test_the_level_is_offered_where_the_system_makes_such_namespaces():
    needed = ["cat", "unshare"]
    if not all(map(shutil.which, needed)) or landlock.abi() < probe.LEAST_ABI:
        pytest.skip("needs Landlock, cat and unshare")
    made = subprocess.run(["unshare", "-Urnpimf", "--mount-proc", "true"], check=False)
    if made.returncode != 0:
        pytest.skip("the system forbids namespaces")
    assert levels.offered() == levels.OfferedLevel("namespaces", None, landlock.abi())


def apart(work, folder, *, kept=((namespaces.FOLDER, ()),), user=None):
    """What work returns in namespaces, with neither Landlock nor a filter of system calls."""
    reader, writer = os.pipe()
    warden = os.fork()
    if warden == 0:
        try:
            if user is not None:
                os.setgroups([])
                os.setresgid(user, user, user)
                os.setresuid(user, user, user)
                prctl(4, 1)
                namespaces.own_user.cache_clear()
            namespaces.enter()
            if os.fork() == 0:
                namespaces.settle(folder, None, kept)
                os.write(writer, json.dumps(work()).encode())
                os._exit(0)
            os.wait()
        except BaseException as error:
            os.write(writer, json.dumps(repr(error)).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as said:
        found = said.read()
    os.waitpid(warden, 0)
    assert not found.startswith('"'), found
    return json.loads(found)


@pytest.fixture(params=[None, 12345], ids=["the user", "an ordinary user"])
def user(request):
    needs_namespaces()
    if request.param is not None and os.geteuid() != 0:
        pytest.skip("only root may become another user")
    return request.param


@pytest.fixture
def folder(user):
    with tempfile.TemporaryDirectory(dir="/tmp") as outside:
        os.chmod(outside, 0o755)
        make_folders(Path(outside, "own"), user)
        Path(outside, "answer").write_text("answer")
        Path(outside, "lib").mkdir()
        Path(outside, "lib", "module.py").write_text("kept")
        yield Path(outside, "own")


def ending_of(attempt):
    try:
        attempt()
    except OSError as error:
        return type(error).__name__
    return "done"


def test_namespaces_alone_keep_from_networks_processes_and_others_memory(folder, user):
    judge, answer = os.getpid(), folder.parent / "answer"
    shared = Path("/dev/shm", NAME)
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(socket.AF_UNIX) as local:
        local.bind(f"\0{NAME}")
        local.listen()
        shared.write_text("left")

        def connect_to_tcp():
            with socket.socket() as one:
                one.settimeout(1)
                one.connect(tcp.getsockname())

        def connect_to_local():
            with socket.socket(socket.AF_UNIX) as one:
                one.connect(f"\0{NAME}")

        attacks = {
            "tcp": connect_to_tcp,
            "abstract": connect_to_local,
            "signal": lambda: os.kill(judge, 0),
            "look": lambda: os.listdir(f"/proc/{judge}"),
            "look at the first": lambda: os.listdir("/proc/1/fd"),
            "read": lambda: answer.read_text(),
            "read shared memory": lambda: shared.read_text(),
            "leave shared memory": lambda: Path("/dev/shm", f"{NAME}-left").touch(),
        }
        try:
            found = apart(lambda: {n: ending_of(a) for n, a in attacks.items()}, folder, user=user)
        finally:
            shared.unlink()
    assert found.pop("tcp") in ("OSError", "ConnectionRefusedError")
    assert found.pop("abstract") == "ConnectionRefusedError"
    assert found.pop("signal") == "ProcessLookupError"
    assert found.pop("leave shared memory") in ("OSError", "PermissionError")
    assert found.pop("look at the first") in ("FileNotFoundError", "PermissionError", "done")
    assert set(found.values()) == {"FileNotFoundError"}


def test_what_rules_open_stays_where_it_is_below_a_folder_that_is_replaced(folder, user):
    library = folder.parent / "lib"
    kept = namespaces.kept([(str(library), READ), (str(folder.parent), READ_DIR), ("/usr", READ)])
    assert dict(kept)[namespaces.FOLDER] == (library,)

    def look():
        return (library / "module.py").read_text(), sorted(os.listdir(folder.parent))

    assert apart(look, folder, kept=kept, user=user) == ["kept", ["lib"]]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")
def test_a_folder_that_nobody_may_pass_holds_only_what_rules_open(folder):
    with tempfile.TemporaryDirectory(dir="/var/tmp") as closed:
        inside = Path(closed, "python", "lib")
        inside.mkdir(parents=True)
        (inside / "module.py").write_text("kept")
        Path(closed, "key").write_text("secret")
        kept = namespaces.kept([(str(inside), READ)])
        assert dict(kept)[Path(closed)] == (inside,)

        def look():
            os.setresuid(namespaces.NOBODY, namespaces.NOBODY, namespaces.NOBODY)
            return (inside / "module.py").read_text(), os.listdir(closed)

        assert apart(look, folder, kept=kept) == ["kept", ["python"]]


def test_all_in_a_namespace_ends_when_the_process_that_entered_it_is_killed():
    needs_namespaces()
    reader, writer = os.pipe()
    warden = os.fork()
    if warden == 0:
        with contextlib.suppress(BaseException):
            held = namespaces.enter()
            if os.fork() == 0:
                os.close(held)
                os.setsid()
                prctl(15, NAME.encode())
                os.write(writer, b"x")
            time.sleep(600)
        os._exit(1)
    os.close(writer)
    try:
        assert os.read(reader, 1) == b"x"
        (left,) = processes_named(NAME)
    finally:
        os.kill(warden, signal.SIGKILL)
        os.waitpid(warden, 0)
    end = time.monotonic() + 10
    while time.monotonic() < end and is_running(left):
        time.sleep(0.01)
    assert not is_running(left)


LOOKING = """
import os, re

def f():
    status = dict(line.split(":", 1) for line in open("/proc/self/status"))
    networks = re.findall(r"^ *(\\w+):", open("/proc/net/dev").read(), re.MULTILINE)
    return (
        repr(sorted(set(os.getresuid() + os.getresgid() + tuple(os.getgroups())))),
        repr({status[name].strip().strip("0") for name in ("CapEff", "CapPrm", "CapBnd")}),
        repr([name for name in os.listdir("/proc") if name.isdigit()] == [str(os.getpid())]),
        repr(networks),
        repr({name: os.readlink(f"/proc/self/ns/{name}") for name in ("ipc", "mnt", "net", "pid")}),
    )
"""


@pytest.fixture(scope="module")
def strongest():
    needs_namespaces()
    with Runner(device=CPU, isolation="namespaces") as runner:
        yield runner


def opened_in(runner, source):
    text = textwrap.dedent(source)
    return runner.open(read_candidate(text, "f.py", task_names=("f",), task="f"))


def test_a_candidate_has_a_user_processes_and_a_network_of_its_own(strongest):
    with opened_in(strongest, LOOKING) as session:
        seen = call(session)
    assert seen.ended == "returned", seen
    users, capabilities, alone, networks, apart_ = (
        eval(eval(result.text)) for result in seen.results
    )
    nobody = namespaces.own_user()
    assert users == ([nobody] if nobody is not None else sorted({os.getuid(), os.getgid()}))
    assert capabilities <= {""} or nobody is None
    assert (alone, networks) == (True, ["lo"])
    assert {n: apart_[n] == os.readlink(f"/proc/self/ns/{n}") for n in apart_} == dict.fromkeys(
        NAMESPACES, False
    )


def test_nothing_of_a_candidate_is_left_alive_on_disk_or_in_memory(strongest):
    source = f"""
        import ctypes, os, time
        def f(x):
            for _ in range(5):
                if os.fork() == 0:
                    os.setsid()
                    if os.fork() == 0:
                        ctypes.CDLL(None).prctl(15, b"{NAME}")
                        open("/tmp/{NAME}", "w").close()
                        time.sleep(600)
                    os._exit(0)
            while not os.path.exists("/tmp/{NAME}"):
                time.sleep(0.01)
    """
    with opened_in(strongest, source) as session:
        assert call(session, vector(1.0)).ended == "returned"
        zygote = zygote_of(session.pid)
        assert processes_named(NAME)
        assert [*Path(tempfile.gettempdir()).glob(f"kerneltruth-*/child-*/{NAME}")]
    assert not processes_named(NAME)
    assert not [*Path(tempfile.gettempdir()).glob(f"kerneltruth-*/child-*/{NAME}")]
    assert not [*Path("/tmp").glob(NAME)]
    groups = [*Path("/sys/fs/cgroup").glob(f"**/kerneltruth-{zygote}-*")]
    # Those of the child which waits for the next request.
    assert [path for path in groups if not (path / "cgroup.procs").read_text()] == []
