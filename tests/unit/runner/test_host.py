"""A runner with real children. Each test opens its own session, hence its own child."""

import os
import signal
import struct
import subprocess
import sys
import textwrap
import time
from dataclasses import replace
from pathlib import Path

import pytest

from kerneltruth.runner.candidate import Candidate, read_candidate
from kerneltruth.runner.host import Runner
from kerneltruth.runner.protocol import OtherResult, ScalarArgument, TensorArgument

POISON, OTHER = b"0123456789abcdef", b"fedcba9876543210"
CPU = "cpu"


@pytest.fixture(scope="module")
def runner():
    with Runner(device=CPU) as runner:
        yield runner


@pytest.fixture
def opened(runner):
    """Open a session for a source whose entry is `f`."""
    sessions = []

    def open_session(source):
        text = textwrap.dedent(source)
        candidate = read_candidate(text, "f.py", task_names=("f",), task="f")
        sessions.append(runner.open(candidate))
        return sessions[-1]

    yield open_session
    for session in sessions:
        session.close()


def vector(*values, name="x"):
    buffer = struct.pack(f"<{len(values)}f", *values)
    return TensorArgument(
        name=name, dtype="float32", shape=(len(values),), strides=(1,), offset=0, buffer=buffer
    )


def floats(data):
    return struct.unpack(f"<{len(data) // 4}f", data)


def call(session, *arguments, poison=POISON, deadline_s=20.0):
    return session.call(arguments, poison=poison, deadline_s=deadline_s)


def is_running(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state not in "ZX"


def test_outputs_come_back_as_bytes(opened):
    session = opened("import torch\ndef f(x): return x * 2, (x > 1).sum()")
    seen = call(session, vector(1.0, 2.0, 3.0))
    assert session.loaded.ended == seen.ended == "returned"
    double, count = seen.results
    assert (double.dtype, double.shape, double.strides) == ("float32", (3,), (1,))
    assert double.device == session.device == "cpu"
    assert floats(double.data) == (2.0, 4.0, 6.0)
    assert (count.dtype, count.shape, count.data) == ("int64", (), struct.pack("<q", 2))


def test_a_view_with_gaps_and_an_offset_reaches_the_candidate(opened):
    session = opened("def f(x): return x.clone(), x.stride(), x.is_contiguous()")
    buffer = struct.pack("<8f", *range(8))
    argument = TensorArgument(
        name="x", dtype="float32", shape=(2, 2), strides=(1, 3), offset=2, buffer=buffer
    )
    value, *strides, contiguous = call(session, argument).results
    assert floats(value.data) == (2.0, 5.0, 3.0, 6.0)
    assert [s.text for s in strides] == ["1", "3"]
    assert contiguous.text == "False"


def test_inputs_are_fresh_and_aligned_for_each_call(opened):
    session = opened("def f(x):\n    x += 1\n    return x.data_ptr() % 512, x.clone()")
    for _ in range(2):
        place, value = call(session, vector(1.0)).results
        assert place.text == "0"
        assert floats(value.data) == (2.0,)


def test_a_changed_input_is_visible_in_its_buffer(opened):
    session = opened("def f(x): x[1] = 9")
    seen = call(session, vector(1.0, 2.0))
    assert seen.ended == "returned"
    assert seen.results == ()
    assert floats(seen.buffers["x"]) == (1.0, 9.0)


def test_a_result_in_an_inputs_memory_is_named(opened):
    session = opened("def f(x, y): return y[1:], y + 0")
    view, fresh = call(session, vector(1.0), vector(2.0, 3.0, name="y")).results
    assert (view.alias, fresh.alias) == ("y", None)


def test_memory_that_the_kernel_does_not_write_shows_the_poison(opened):
    session = opened("import torch\ndef f(x):\n    y = torch.empty(64)\n    y[0] = 1\n    return y")
    first = call(session, vector(0.0)).results[0].data
    again = call(session, vector(0.0)).results[0].data
    other = call(session, vector(0.0), poison=OTHER).results[0].data
    assert first == again
    assert first[:4] == other[:4]
    assert all(first[i : i + 4] != other[i : i + 4] for i in range(4, 256, 4))


def test_a_write_beyond_an_allocation_is_named(opened):
    session = opened(
        """
        import torch
        def f(x):
            y = torch.empty(4)
            y.as_strided((1,), (1,), y.storage_offset() + 4).zero_()
            return y
        """
    )
    assert call(session, vector(0.0)).guards_hit == ("float32[4] #0, after it",)


def test_numpy_candidates_get_and_return_arrays(opened):
    session = opened("import numpy as np\ndef f(x):\n    return np.maximum(x, 0), x[:1]")
    seen = call(session, vector(-1.0, 2.0))
    assert floats(seen.results[0].data) == (0.0, 2.0)
    assert [r.alias for r in seen.results] == [None, "x"]


def test_a_dtype_that_numpy_lacks_is_unsupported(opened):
    session = opened("import numpy as np\ndef f(x): return x")
    argument = replace(vector(1.0), dtype="bfloat16", shape=(2,))
    assert call(session, argument).ended == "unsupported"


def test_results_that_are_no_tensors_are_described(opened):
    session = opened(
        """
        import torch, numpy
        class Sly:
            def __repr__(self): raise ValueError
        def f(x): return {"a": 3, "b": [x, "text"]}, Sly(), x.to_sparse(), numpy.zeros(2)
        """
    ).call([vector(1.0)], poison=POISON)
    kinds = [r.type if isinstance(r, OtherResult) else r.dtype for r in session.results]
    assert kinds == ["int", "float32", "str", "Sly", "Tensor", "ndarray"]


def test_a_dtype_outside_of_the_protocol_travels_without_data(opened):
    session = opened("import torch\ndef f(x): return x.to(torch.complex64)")
    (result,) = call(session, vector(1.0)).results
    assert (result.dtype, result.shape, result.data) == ("complex64", (1,), b"")


def test_an_exception_is_an_observation_with_its_trace(opened):
    seen = call(opened("def f(x): raise ValueError('no such luck')"), vector(1.0))
    assert (seen.ended, seen.error, seen.message) == ("raised", "ValueError", "no such luck")
    assert seen.trace.splitlines()[1].strip() == 'File "candidate_f.py", line 1, in f'


def test_random_numbers_repeat_from_call_to_call(opened):
    session = opened("import torch\ndef f(x): return torch.rand(3)")
    assert call(session, vector(1.0)).results == call(session, vector(1.0)).results


@pytest.mark.parametrize("word", ["SystemExit", "KeyboardInterrupt"])
def test_leaving_by_exception_is_no_success(opened, word):
    session = opened(f"def f(x): raise {word}(0)")
    assert (call(session, vector(1.0)).ended, session.loaded.ended) == ("raised", "returned")


def test_attributes_are_bound_by_name_or_left_out(opened):
    session = opened("def f(x): return x")
    eps = ScalarArgument(name="eps", value=1e-6, default=1e-6)
    assert call(session, vector(1.0), eps).ended == "returned"
    seen = call(session, vector(1.0), replace(eps, value=0.5))
    assert (seen.ended, seen.error) == ("raised", "SignatureMismatch")


def test_lists_of_integers_arrive_as_tuples(opened):
    session = opened("def f(x, stride=(1, 1)): return x, str(stride)")
    seen = call(session, vector(1.0), ScalarArgument(name="stride", value=(2, 1), default=(1, 1)))
    assert seen.results[1].text == "'(2, 1)'"


def test_a_model_class_is_built_and_called(runner):
    source = """
import torch
class ModelNew(torch.nn.Module):
    def __init__(self, scale=1.0):
        super().__init__()
        self.scale = scale
    def forward(self, x):
        return x * self.scale
"""
    candidate = read_candidate(source, "m.py", task_names=("f",), task="f")
    with runner.open(candidate) as session:
        seen = call(session, vector(2.0), ScalarArgument(name="scale", value=3.0, default=1.0))
    assert floats(seen.results[0].data) == (6.0,)


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


def test_a_load_that_hangs_is_not_tried_again(opened, monkeypatch):
    monkeypatch.setattr("kerneltruth.runner.host.LOAD_S", 0.3)
    session = opened("while True: pass\ndef f(x): pass")
    assert session.loaded.ended == "timeout"
    start = time.monotonic()
    assert call(session, vector(1.0)).ended == "timeout"
    assert time.monotonic() - start < 0.2


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


def test_a_death_while_loading_is_told_by_load(opened):
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


DAEMON = """
    import os, time
    def f(x):
        read, write = os.pipe()
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                os.write(write, str(os.getpid()).encode())
                time.sleep(600)
            os._exit(0)
        os.wait()
        return int(os.read(read, 20)), os.getpid(), os.getppid()
"""


def test_a_daemon_ends_with_its_session(opened):
    session = opened(DAEMON)
    pids = [int(r.text) for r in call(session, vector(1.0)).results]
    assert all(is_running(pid) for pid in pids)
    session.close()
    assert not any(is_running(pid) for pid in pids[:2])


def test_a_daemon_ends_when_the_child_dies(opened):
    source = DAEMON.replace("return int(", "print(int(").replace(
        ", os.getpid(), os.getppid()", ", flush=True); os._exit(1)"
    )
    seen = call(opened(source), vector(1.0))
    assert seen.ended == "died"
    daemon = int(seen.output)
    assert not is_running(daemon)


def test_a_child_that_kills_its_warden_takes_nothing_along(opened, runner):
    session = opened(
        "import os, signal, time\ndef f(x):\n"
        "    print(os.getpid(), flush=True); os.kill(os.getppid(), signal.SIGKILL); time.sleep(60)"
    )
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
def test_nonsense_on_the_wire_is_a_death(opened, nonsense):
    session = opened(
        f"""
        import os, socket, stat, time
        from kerneltruth.runner.protocol import *
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
    assert int(descriptors) <= 5


def test_the_child_has_neither_tasks_nor_cases_nor_oracle(opened):
    session = opened("import sys\ndef f(x): return [m for m in sys.modules if 'kerneltruth' in m]")
    names = {r.text.strip("'") for r in call(session, vector(1.0)).results}
    assert "kerneltruth.runner.worker" in names
    layers = {n.split(".")[1] for n in names if "." in n}
    assert layers == {"runner"}


def test_memory_beyond_the_limit_is_refused(opened):
    seen = call(opened("def f(x): return len(bytearray(64 * 2**30))"), vector(1.0))
    assert (seen.ended, seen.error) == ("raised", "MemoryError")


def test_one_candidate_does_not_see_anothers_files(runner):
    source = (
        "import os\ndef f(x): return os.getcwd(), os.path.exists('left'), open('left', 'w').close()"
    )
    candidate = read_candidate(source, "f.py", task_names=("f",))
    folders = set()
    for _ in range(2):
        with runner.open(candidate) as session:
            folder, there, _ = call(session, vector(1.0)).results
        assert there.text == "False"
        folders.add(folder.text.strip("'"))
    assert len(folders) == 2
    assert not any(os.path.exists(f) for f in folders)


def test_a_compile_cache_outlives_the_runner_and_its_folder_does_not(tmp_path):
    source = "import os\ndef f(x): return os.environ['TRITON_CACHE_DIR']"
    candidate = read_candidate(source, "f.py", task_names=("f",))
    with Runner(device=CPU, cache_root=tmp_path) as own, own.open(candidate) as session:
        place = call(session, vector(1.0)).results[0].text.strip("'")
        root = own._zygotes[True].root
        assert root.is_dir()
    assert place == str(tmp_path / candidate.sha256 / "triton")
    assert (tmp_path / candidate.sha256).is_dir()
    assert not root.exists()


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


def test_a_lost_zygote_is_replaced():
    with Runner(device=CPU) as own:
        candidate = read_candidate("def f(x): return x", "f.py", task_names=("f",))
        with own.open(candidate) as session:
            assert call(session, vector(1.0)).ended == "returned"
            zygote, child = own._zygotes[True]._process.pid, session._link.pid
            os.kill(zygote, signal.SIGKILL)
            end = time.monotonic() + 10
            while is_running(child) and time.monotonic() < end:
                time.sleep(0.05)
            assert not is_running(child)
            assert call(session, vector(1.0)).ended == "returned"
            assert own._zygotes[True]._process.pid != zygote


HOST = """
import sys, time
sys.path[:0] = {path!r}
from kerneltruth.runner.host import Runner
from kerneltruth.runner.candidate import read_candidate
source = "import os, time\\ndef f():\\n    print(os.getpid(), flush=True)\\n    time.sleep(600)"
runner = Runner(device="cpu")
session = runner.open(read_candidate(source, "f.py", task_names=("f",)))
assert session.loaded.ended == "returned"
print(runner._zygotes[True]._process.pid, session._link.pid, runner._zygotes[True].root, flush=True)
session.call([], poison=bytes(16), deadline_s=600)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_the_end_of_the_host_is_the_end_of_everything(number):
    command = [sys.executable, "-c", HOST.format(path=sys.path)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as host:
        zygote, child, root = host.stdout.readline().split()
        time.sleep(0.2)
        host.send_signal(number)
        host.wait(20)
    end = time.monotonic() + 10
    while time.monotonic() < end and (is_running(zygote) or is_running(child)):
        time.sleep(0.05)
    assert not is_running(zygote)
    assert not is_running(child)
    assert not os.path.exists(root)


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
