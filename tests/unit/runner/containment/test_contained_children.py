"""What a candidate can reach from inside a child."""

import json
import os
import socket
import tempfile
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest
from breakouts import SOURCE
from children import CPU, call, vector

import kerneltruth
from kerneltruth.runner.arguments import ScalarArgument
from kerneltruth.runner.candidate import read_candidate
from kerneltruth.runner.containment import LEVELS, levels
from kerneltruth.runner.host import Runner

pytestmark = pytest.mark.processes

# What the level `process` alone does not stop; as root it would stop more, since a child has none
# of root's capabilities.
OPEN = {
    *("read", "read elsewhere", "append", "truncate", "create", "list", "through a link", "rename"),
    *("rival", "oracle", "corpus", "tasks", "command line", "shared memory", "inet", "netlink"),
    *("abstract", "datagrams", "signal", "signal to the parent", "signal elsewhere"),
}


def needs(level):
    here = levels.offered()
    if LEVELS.index(here.level) < LEVELS.index(level):
        pytest.skip(f"no isolation {level!r} here: {here.limited_by}")


def candidate(source, name="f"):
    return read_candidate(textwrap.dedent(source), "f.py", task_names=(name,), task=name)


@pytest.fixture
def attacked(tmp_path):
    """Run the breakouts in a runner's child, beside a rival's; return what worked."""

    def attack(runner):
        secret = tmp_path / "results.jsonl"
        secret.write_text("the answers")
        listening = socket.socket(socket.AF_UNIX)
        name = f"kerneltruth-test-{os.getpid()}"
        listening.bind("\0" + name)
        listening.listen()
        rival = candidate(f"def f(x): open({name!r}, 'w').close(); return x")
        with runner.open(rival) as other, runner.open(candidate(SOURCE)) as session, listening:
            assert call(other, vector(1.0)).ended == "returned"
            (there,) = Path(tempfile.gettempdir()).glob(f"kerneltruth-*/child-*/work/{name}")
            values = {
                "judge": os.getpid(),
                "secret": str(secret),
                "rival": str(there.parent),
                "package": str(Path(kerneltruth.__file__).parent),
                "abstract": name,
            }
            given = [ScalarArgument(name=name, value=value) for name, value in values.items()]
            seen = call(session, *given)
            assert seen.ended == "returned", seen
            done, refused = json.loads(seen.output)
            shared = Path("/dev/shm/kerneltruth-test")
            if not shared.exists():
                done = [name for name in done if name != "shared memory"]
            shared.unlink(missing_ok=True)
            return set(done), refused

    return attack


def test_a_strictly_contained_candidate_reaches_nothing_but_its_call(runner, attacked):
    needs("strict")
    done, refused = attacked(runner)
    assert done == set(), done
    assert set(refused) >= OPEN - {"shared memory"}


@pytest.mark.slow
def test_without_containment_the_same_attacks_work(attacked):
    with Runner(device=CPU, isolation="process") as weak:
        done, refused = attacked(weak)
    assert done >= OPEN, {name: refused.get(name) for name in OPEN - done}


@pytest.mark.slow
def test_a_filter_of_system_calls_alone_keeps_from_networks_and_others(attacked):
    needs("syscalls")
    with Runner(device=CPU, isolation="syscalls") as middle:
        done, _ = attacked(middle)
    files = {*OPEN, "link", "change the judge", "environment", "descriptors"}
    files -= {"inet", "netlink", "abstract", "datagrams"}
    files -= {name for name in OPEN if name.startswith("signal")}
    assert done <= files


@pytest.mark.slow
def test_an_honest_candidate_works_under_every_level():
    source = """
    import concurrent.futures, ctypes, os, pathlib, subprocess, tempfile, threading

    def f():
        did = []
        with tempfile.NamedTemporaryFile() as file:
            file.write(b"x")
            did.append("temporary")
        os.makedirs("a"), pathlib.Path("a/x.c").write_text("int one(void) { return 41 + 1; }")
        os.replace("a/x.c", "x.c")
        subprocess.run(["cc", "-shared", "-fPIC", "-o", "x.so", "x.c"], check=True)
        did.append(ctypes.CDLL("./x.so").one())
        with concurrent.futures.ThreadPoolExecutor() as pool:
            did.append(sum(pool.map(abs, range(4))))
        if (child := os.fork()) == 0:
            os._exit(7)
        did.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        sleeping = subprocess.Popen(["sleep", "60"])
        try:
            sleeping.kill()
            did.append("killed")
        except PermissionError:
            did.append("let go")
        with open("/proc/self/fd/1", "w") as output:
            did.append(output.write("printed"))
        return did
    """
    for level in LEVELS[: LEVELS.index(levels.offered().level) + 1]:
        with (
            Runner(device=CPU, isolation=level) as runner,
            runner.open(candidate(source)) as session,
        ):
            seen = call(session)
        assert seen.ended == "returned", (level, seen)
        *did, killed, printed = [result.text for result in seen.results]
        assert did == ["'temporary'", "42", "6", "7"]
        assert killed == "'killed'" or level == "syscalls"
        assert printed == "7"


@pytest.mark.slow
def test_no_variable_of_the_judge_reaches_a_child(monkeypatch):
    monkeypatch.setenv("KEY_OF_THE_USER", "s3cret-of-the-user")
    source = """
    import contextlib, os
    def f():
        whole = repr(dict(os.environ))
        with contextlib.suppress(PermissionError):
            whole += open("/proc/self/environ").read()
        return "s3cret" in whole, open("/proc/self/cmdline").read()
    """
    with Runner(device=CPU) as own, own.open(candidate(source)) as session:
        found, _ = (result.text for result in call(session).results)
    assert found == "False"


def test_the_judges_own_programs_read_the_users_files(runner, tmp_path):
    needs("strict")
    (tmp_path / "data").write_text("weights")
    reading = candidate(f"def f(): return open({str(tmp_path / 'data')!r}).read()")
    with runner.open(reading) as session:
        assert call(session).error in ("PermissionError", "FileNotFoundError")
    with runner.open(replace(reading, trusted=True)) as session:
        assert call(session).results[0].text == "'weights'"


def test_two_children_cannot_signal_each_other(runner):
    needs("strict")
    sending = candidate("import os\ndef f(other): os.kill(other, 0)")
    resting = candidate("def f(): return 1")
    with runner.open(sending) as one, runner.open(resting) as other:
        assert call(other).ended == "returned"
        seen = call(one, ScalarArgument(name="other", value=other.pid))
        assert seen.error in ("PermissionError", "ProcessLookupError")
        assert call(other).ended == "returned"
