"""How children end, and what they leave: nothing."""

import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from children import CPU, call, is_running, processes_named, vector, zygote_of

from interrupts import heed_interrupts
from kerneltruth.runner.candidate import Candidate, read_candidate
from kerneltruth.runner.host import Runner
from kerneltruth.runner.link import LARGEST_HEADER

pytestmark = pytest.mark.processes


@pytest.mark.parametrize(
    ("source", "error"),
    [
        ("import no_such_module\ndef f(x): pass", "ModuleNotFoundError"),
        ("raise SystemExit\ndef f(x): pass", "SystemExit"),
        ("def f(x): pass\ndel f", "NoEntry"),
        ("f = 3", "NoEntry"),
    ],
)
def test_a_source_that_does_not_load_says_why(opened, source, error):
    session = opened(source)
    assert (session.loaded.ended, session.loaded.error) == ("load_failed", error)
    assert call(session, vector(1.0)) == session.loaded


def test_a_load_that_hangs_is_not_tried_again(opened, runner, monkeypatch):
    monkeypatch.setattr(runner, "load_s", 1.0)
    session = opened("while True: pass\ndef f(x): pass")
    assert session.loaded.ended == "timeout"
    start = time.monotonic()
    assert call(session, vector(1.0)).ended == "timeout"
    assert time.monotonic() - start < 0.9


def test_a_cuda_source_is_unsupported_without_a_device(opened):
    session = opened("from torch.utils.cpp_extension import load_inline\ndef f(x): pass")
    assert session.loaded.ended == "unsupported"


def test_an_endless_loop_ends_at_its_deadline_and_the_next_call_works(opened):
    session = opened("def f(x):\n    while x[0] > 0: pass\n    return x")
    start = time.monotonic()
    assert call(session, vector(1.0), deadline_s=0.5).ended == "timeout"
    assert time.monotonic() - start < 10
    assert call(session, vector(-1.0)).ended == "returned"


@pytest.mark.parametrize(
    ("statement", "number"),
    [
        ("import ctypes; ctypes.string_at(0)", signal.SIGSEGV),
        ("import os; os.kill(os.getpid(), 9)", signal.SIGKILL),
        ("import os; os.abort()", signal.SIGABRT),
    ],
)
def test_a_crash_names_its_signal_and_the_next_call_works(opened, statement, number):
    session = opened(f"def f(x):\n    if x[0] > 0:\n        {statement}\n    return x")
    seen = call(session, vector(1.0))
    assert (seen.ended, seen.signal) == ("died", number)
    assert call(session, vector(-1.0)).ended == "returned"


def test_leaving_with_code_0_is_a_death(opened):
    seen = call(opened("import os\ndef f(x): os._exit(0)"), vector(1.0))
    assert (seen.ended, seen.signal) == ("died", None)
    assert seen.message == "exited on its own with code 0"


def test_a_death_while_loading_is_reported_by_load(opened):
    session = opened("import os\nprint('so long', flush=True)\nos._exit(3)\ndef f(x): pass")
    assert session.loaded.message == "exited on its own with code 3"
    assert session.loaded.output == "so long\n"


def test_what_is_printed_is_kept_from_python_and_from_c(opened):
    session = opened(
        """
        import ctypes, sys
        def f(x):
            print("out"); print("err", file=sys.stderr)
            ctypes.CDLL(None).printf(b"from c\\n")
        """
    )
    assert sorted(call(session, vector(1.0)).output.split("\n")) == ["", "err", "from c", "out"]
    assert len(call(session, vector(1.0)).output) == len("out\nerr\nfrom c\n")


def test_a_lot_of_output_keeps_its_end(opened):
    seen = call(opened("def f(x): print('a' * 10**6 + 'z')"), vector(1.0))
    assert seen.ended == "returned"
    assert len(seen.output) == 8192
    assert seen.output.endswith("az\n")


def test_a_gigabyte_of_output_is_cut_off(opened):
    session = opened("def f(x):\n    for _ in range(1000): print('a' * 10**6)")
    seen = call(session, vector(1.0), deadline_s=60)
    assert seen.ended == "flooded"
    assert len(seen.output) <= 8192


NAME = f"kt-{os.getpid()}"
DAEMON = f"""
    import ctypes, os, time
    def f(x):
        read, write = os.pipe()
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                ctypes.CDLL(None).prctl(15, b"{NAME}")
                os.write(write, b"x")
                time.sleep(600)
            os._exit(0)
        os.wait()
        os.read(read, 1)
"""


def test_a_daemon_ends_with_its_session(opened):
    session = opened(DAEMON)
    call(session, vector(1.0))
    pids = [*processes_named(NAME), session.pid]
    assert [is_running(pid) for pid in pids] == [True, True]
    session.close()
    assert not any(is_running(pid) for pid in pids)


def test_a_daemon_ends_when_the_child_dies(opened):
    seen = call(opened(f"{DAEMON}        print('begun', flush=True); os._exit(1)"), vector(1.0))
    assert (seen.ended, seen.output) == ("died", "begun\n")
    assert not processes_named(NAME)


@pytest.mark.slow
def test_a_child_that_kills_its_warden_harms_no_other_child():
    source = (
        "import os, signal, time\ndef f(x):\n"
        "    print(os.getpid(), flush=True); os.kill(os.getppid(), signal.SIGKILL); time.sleep(60)"
    )
    candidate = read_candidate(source, "f.py", task_names=("f",))
    # Stronger levels let it send no signal.
    with Runner(device=CPU, isolation="process") as weak, weak.open(candidate) as session:
        seen = call(session, vector(1.0))
        assert seen.ended == "lost"
        time.sleep(1.5)
        assert not is_running(int(seen.output))


@pytest.mark.parametrize(
    "nonsense",
    [
        "b'hello, I am no message at all, and long enough to be read as one' * 9",
        "encode(Observation(ended='passed'))",
        "encode(Observation(ended='returned', buffers={'x': b'short'}))",
        "encode(Observation(ended='returned', results=(TensorResult(dtype='float32',"
        " shape=(5,), strides=(1,), device='cpu', data=b''),)))",
        "encode(Load(source='', filename='', language='', entry='', device=''))",
    ],
)
def test_a_malformed_answer_counts_as_a_death(opened, nonsense):
    session = opened(
        f"""
        import os, socket, stat, time
        from kerneltruth.runner.observation import *
        from kerneltruth.runner.protocol import *
        from kerneltruth.runner.wire import encode
        def f(x):
            for fd in range(3, 64):
                try:
                    if stat.S_ISSOCK(os.fstat(fd).st_mode):
                        os.write(fd, {nonsense})
                except OSError:
                    pass
            time.sleep(60)
        """
    )
    seen = call(session, vector(1.0))
    assert seen.ended == "died"
    assert "spoke nonsense" in seen.message


CLAIMING = """
import os, socket, stat, time
from kerneltruth.runner.wire import _PREFIX, MAGIC, VERSION
def f(x):
    for fd in range(3, 64):
        try:
            if stat.S_ISSOCK(os.fstat(fd).st_mode):
                os.write(fd, _PREFIX.pack(MAGIC, VERSION, HEADER, PAYLOAD) + b"{" * 100)
        except OSError:
            pass
    time.sleep(60)
"""


def test_a_length_that_is_only_claimed_takes_no_memory(runner):
    def grown(header, payload):
        source = f"HEADER, PAYLOAD = {header}, {payload}\n{CLAIMING}"
        claiming = read_candidate(source, "f.py", task_names=("f",))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with runner.open(claiming) as session:
            seen = call(session, vector(1.0), deadline_s=1.0)
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return seen, (after - before) * 1024

    seen, grew = grown(100, 2**27)
    assert seen.ended in ("timeout", "died")
    assert grew < 64 * 2**20
    seen, grew = grown(100, 2**31 - 1000)
    assert seen.ended == "flooded"
    assert grew < 64 * 2**20
    seen, grew = grown(LARGEST_HEADER + 1, 0)
    assert "spoke nonsense" in seen.message
    assert grew < 64 * 2**20


@pytest.mark.slow
def test_a_closed_wire_is_a_death(opened):
    session = opened("import os, time\ndef f(x): os.closerange(3, 64); time.sleep(60)")
    seen = call(session, vector(1.0))
    assert (seen.ended, seen.message) == ("died", "closed its connection to the judge")


def test_the_childs_environment_is_clean(opened, monkeypatch):
    session = opened(
        """
        import os, sys, tempfile
        def f(x):
            descriptors = len(os.listdir("/proc/self/fd")) - 1
            mine = os.getcwd().rsplit("/", 1)[0]
            keys = ("HOME", "TMPDIR", "TRITON_CACHE_DIR", "TORCH_EXTENSIONS_DIR")
            inside = all(os.environ[k].startswith(mine) for k in keys)
            temp = tempfile.gettempdir() == os.environ["TMPDIR"]
            threads = os.environ["OMP_NUM_THREADS"]
            return sorted(os.environ), descriptors, inside, temp, sys.stdin.read(), threads
        """
    )
    results = [r.text for r in call(session, vector(1.0)).results]
    *names, descriptors, inside, temp, stdin, threads = results
    known = {"PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "HOME", "TMPDIR", "VIRTUAL_ENV", "CPATH"}
    prefixes = (
        "TRITON_",
        "TORCH",
        "CUDA_",
        "NVIDIA_",
        "OMP_",
        "MKL_",
        "OPENBLAS_",
        "XDG_",
        "PYTHON",
    )
    names = {n.strip("'") for n in names}
    unknown = {n for n in names if not n.startswith(prefixes)} - known - {"LD_LIBRARY_PATH"}
    assert unknown <= {"KMP_DUPLICATE_LIB_OK", "KMP_INIT_AT_FORK"}
    assert "PYTHONPATH" not in names
    assert (inside, temp, stdin, threads) == ("True", "True", "''", "'1'")
    # The standard ones, the wire, and two of the memory that the judge gives this call.
    assert int(descriptors) <= 6


def test_the_child_has_neither_tasks_nor_cases_nor_oracle(opened):
    session = opened("import sys\ndef f(x): return [m for m in sys.modules if 'kerneltruth' in m]")
    names = {r.text.strip("'") for r in call(session, vector(1.0)).results}
    assert "kerneltruth.runner.child.worker" in names
    layers = {n.split(".")[1] for n in names if "." in n}
    assert layers == {"runner"}


def test_memory_beyond_the_limit_is_refused(opened):
    seen = call(opened("def f(x): return len(bytearray(64 * 2**30))"), vector(1.0))
    assert (seen.ended, seen.error) == ("raised", "MemoryError")


def test_one_candidate_does_not_see_anothers_files(runner):
    source = f"import os\ndef f(x): return os.listdir('.'), open({NAME!r}, 'w').close()"
    places = f"kerneltruth-*/child-*/work/{NAME}"
    candidate = read_candidate(source, "f.py", task_names=("f",))
    with runner.open(candidate) as one, runner.open(candidate) as other:
        seen = [call(session, vector(1.0)).results for session in (one, other)]
        left = [*Path(tempfile.gettempdir()).glob(places)]
    assert [there.text.count(NAME) for there, _ in seen] == [0, 0]
    assert len(left) == 2
    assert not any(path.exists() for path in left)


COMPILES = "import os\ndef f(x): os.makedirs(os.environ['TRITON_CACHE_DIR'], exist_ok=True)"


@pytest.mark.slow
@pytest.mark.parametrize("cold", [True, False])
def test_a_child_may_be_kept_from_what_was_compiled_before(tmp_path, cold):
    candidate = read_candidate(COMPILES, "f.py", task_names=("f",), task="f")
    cache = tmp_path / "cache"
    with Runner(device=CPU, cache_root=cache) as own, own.open(candidate, cold=cold) as session:
        assert call(session, vector(1.0)).ended == "returned"
    assert (cache / candidate.sha256 / "triton").exists() is not cold


@pytest.mark.slow
def test_a_compile_cache_outlives_the_runner_and_its_folder_does_not(tmp_path):
    candidate = read_candidate(COMPILES, "f.py", task_names=("f",))
    work, cache = tmp_path / "work", tmp_path / "cache"
    work.mkdir()
    with (
        Runner(device=CPU, cache_root=cache, work_root=work) as own,
        own.open(candidate) as session,
    ):
        assert call(session, vector(1.0)).ended == "returned"
        assert len([*work.iterdir()]) == 1
    assert (cache / candidate.sha256 / "triton").is_dir()
    assert [*work.iterdir()] == []


def test_restart_gives_a_fresh_child(opened):
    session = opened("import os\nN = []\ndef f(x): N.append(1); return len(N), os.getpid()")
    assert [call(session, vector(1.0)).results[0].text for _ in range(2)] == ["1", "2"]
    session.restart()
    assert call(session, vector(1.0)).results[0].text == "1"


def test_many_sessions_leave_no_process_and_no_descriptor(runner):
    candidate = read_candidate("def f(x): return x", "f.py", task_names=("f",))

    def one():
        with runner.open(candidate) as session:
            assert call(session, vector(1.0)).ended == "returned"

    one()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(10):
        one()
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.slow
def test_a_lost_zygote_is_replaced():
    with Runner(device=CPU) as own:
        candidate = read_candidate("def f(x): return x", "f.py", task_names=("f",))
        with own.open(candidate) as session:
            assert call(session, vector(1.0)).ended == "returned"
            child = session.pid
            zygote = zygote_of(child)
            os.kill(zygote, signal.SIGKILL)
            end = time.monotonic() + 10
            while is_running(child) and time.monotonic() < end:
                time.sleep(0.05)
            assert not is_running(child)
            assert call(session, vector(1.0)).ended == "returned"
            assert zygote_of(session.pid) != zygote


HOST = """
import sys, time
from pathlib import Path
sys.path[:0] = {path!r}
from kerneltruth.runner.host import Runner
from kerneltruth.runner.candidate import read_candidate
source = "import os, time\\ndef f():\\n    print(os.getpid(), flush=True)\\n    time.sleep(600)"
runner = Runner(device="cpu", work_root=Path({work!r}))
session = runner.open(read_candidate(source, "f.py", task_names=("f",)))
assert session.loaded.ended == "returned"
print(session.pid, flush=True)
session.call([], poison=bytes(16), deadline_s=600)
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_the_end_of_the_host_is_the_end_of_everything(number, tmp_path):
    command = [sys.executable, "-c", HOST.format(path=sys.path, work=str(tmp_path))]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        preexec_fn=heed_interrupts,
    ) as host:
        try:
            child = int(host.stdout.readline())
            zygote = zygote_of(child)
            assert [*tmp_path.iterdir()]
            time.sleep(0.2)
            host.send_signal(number)
            host.wait(20)
        finally:
            host.kill()
    end = time.monotonic() + 10
    while time.monotonic() < end and (is_running(zygote) or is_running(child)):
        time.sleep(0.05)
    assert not is_running(zygote)
    assert not is_running(child)
    assert [*tmp_path.iterdir()] == []


def test_a_small_call_and_a_fresh_child_are_cheap(runner):
    candidate = Candidate(
        source="def f(x): return x + 1", path="f.py", sha256="0" * 64, language="torch", entry="f"
    )
    fresh, small = [], []
    for _ in range(5):
        start = time.perf_counter()
        with runner.open(candidate) as session:
            assert session.loaded.ended == "returned"
            fresh.append(time.perf_counter() - start)
            call(session, vector(1.0))
            start = time.perf_counter()
            call(session, vector(1.0))
            small.append(time.perf_counter() - start)
    # Generous, for a busy machine; benchmarks measure.
    assert min(fresh) < 0.5
    assert min(small) < 0.05


def test_a_thread_that_waits_for_an_ended_child_gets_an_observation(opened):
    session = opened("import time\ndef f(x): time.sleep(1000)")
    assert session.loaded.ended == "returned"
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(call, session, vector(1.0), deadline_s=100.0)
        time.sleep(0.5)
        began = time.monotonic()
        session.close(wait=False)
        assert waiting.result(timeout=20).ended == "died"
    assert time.monotonic() - began < 20
