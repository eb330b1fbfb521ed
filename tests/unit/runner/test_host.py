"""What children answer."""

import struct
from dataclasses import replace

import pytest
from children import OTHER, POISON, call, floats, vector

from kerneltruth.runner.arguments import RepeatedArgument, ScalarArgument, TensorArgument
from kerneltruth.runner.candidate import read_candidate
from kerneltruth.runner.host import Runner, context_environment
from kerneltruth.runner.observation import OtherResult
from kerneltruth.runner.protocol import Rehearse, Rows, Unload
from kerneltruth.runner.timing.messages import (
    AllocateBuffers,
    PrepareInputs,
    RunBatch,
    ShowResult,
    Supply,
)

pytestmark = pytest.mark.processes


def test_outputs_come_back_as_bytes(opened):
    session = opened("import torch\ndef f(x): return x * 2, (x > 1).sum()")
    seen = call(session, vector(1.0, 2.0, 3.0))
    assert session.loaded.ended == seen.ended == "returned"
    double, count = seen.results
    assert (double.dtype, double.shape, double.strides) == ("float32", (3,), (1,))
    assert double.device == session.device == "cpu"
    assert floats(double.data) == (2.0, 4.0, 6.0)
    assert (count.dtype, count.shape, count.data) == ("int64", (), struct.pack("<q", 2))


def _repeated(*shape, block):
    return RepeatedArgument(
        name="x", dtype="float32", shape=shape, block=struct.pack(f"<{len(block)}f", *block)
    )


def test_a_repeated_input_holds_its_block_again_and_again(opened):
    session = opened("def f(x): return x, x.is_contiguous()")
    x, contiguous = call(session, _repeated(2, 4, block=(1.0, 2.0, 3.0))).results
    assert x.shape == (2, 4)
    assert floats(x.data) == (1.0, 2.0, 3.0, 1.0, 2.0, 3.0, 1.0, 2.0)
    assert contiguous.text == "True"


def test_only_the_requested_rows_of_a_result_come_back(opened):
    session = opened("def f(x): return x * 2, x[:4], x.sum(), None")
    rows = Rows(total=5, starts=(0, 3), counts=(1, 2))
    seen = session.call([_repeated(5, 2, block=range(10))], poison=POISON, rows=rows)
    double, *others = seen.results
    assert double.shape == (3, 2)
    assert floats(double.data) == (0.0, 2.0, 12.0, 14.0, 16.0, 18.0)
    texts = [other.text for other in others]
    assert texts == ["a tensor of the shape [4, 2]", "a tensor of the shape []", "None"]
    assert seen.buffers == {}


def test_a_child_that_was_started_ahead_loads_on_request(runner, tmp_path):
    log = tmp_path / "log"
    source = f"open({str(log)!r}, 'a').write('loaded')\ndef f(x): return x * 2"
    candidate = read_candidate(source, "f.py", task_names=("f",), task="f")
    with runner.open(replace(candidate, trusted=True), ahead=True) as session:
        for _ in range(2):
            session.prepared()
        assert not log.exists()
        assert floats(call(session, vector(1.0)).results[0].data) == (2.0,)
    assert log.read_text() == "loaded"


def test_a_call_without_waiting_for_the_start_gives_the_right_answers(runner):
    candidate = read_candidate("def f(x): return x * 3", "f.py", task_names=("f",), task="f")
    with runner.open(candidate, ahead=True) as session:
        session.load()
        assert session.loaded.ended == "returned"
        assert floats(call(session, vector(1.0)).results[0].data) == (3.0,)


SAYING = "def f():\n    return {}\n"


def pid_and_number(session):
    (result,) = session.call([], poison=POISON).results
    return session.pid, int(result.text)


def test_another_candidate_is_loaded_in_the_same_child(opened):
    session = opened(SAYING.format(1))
    pid, one = pid_and_number(session)
    session.load_instead(replace(session.candidate, source=SAYING.format(2)))
    assert (one, pid_and_number(session)) == (1, (pid, 2))
    session.load_instead(replace(session.candidate, source="no Python"))
    assert session.loaded.ended == "load_failed"
    session.load_instead(replace(session.candidate, source=SAYING.format(3)))
    fresh, three = pid_and_number(session)
    assert (fresh != pid, three) == (True, 3)


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


@pytest.mark.parametrize(
    ("overwritten", "inputs", "result"), [("x", ("x",), False), ("y", (), True), ("z", (), False)]
)
def test_what_a_thread_that_is_left_behind_overwrites_is_named(opened, overwritten, inputs, result):
    session = opened(
        f"""
        import threading
        def f(x):
            y, z = x + 1, x + 2
            threading.Timer(0.02, {overwritten}.zero_).start()
            return y
        """
    )
    seen = call(session, vector(1.0))
    assert (seen.inputs_changed, seen.results_changed) == (inputs, result)
    assert floats(seen.results[0].data) == (2.0,)


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
    assert kinds == ["int", "float32", "str", "Sly", "sparse_coo tensor", "ndarray"]


def test_a_dtype_outside_of_the_protocol_travels_without_data(opened):
    session = opened("import torch\ndef f(x): return x.to(torch.complex32)")
    (result,) = call(session, vector(1.0)).results
    assert (result.dtype, result.shape, result.data) == ("complex32", (1,), b"")


def test_a_complex_result_travels_with_its_parts(opened):
    session = opened("import torch\ndef f(x): return torch.complex(x, -x).conj()")
    (result,) = call(session, vector(1.5)).results
    assert (result.dtype, result.shape) == ("complex64", (1,))
    assert struct.unpack("<2f", result.data) == (1.5, 1.5)


def test_an_exception_is_an_observation(opened):
    seen = call(opened("def f(x): raise ValueError('no such luck')"), vector(1.0))
    assert (seen.ended, seen.error, seen.message) == ("raised", "ValueError", "no such luck")


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


def test_one_hardware_queue_is_enough_unless_the_source_speaks_of_streams():
    plain = read_candidate("import torch\ndef f(x): return x", "f.py", task_names=("f",))
    streams = read_candidate(
        "import torch\ndef f(x):\n    with torch.cuda.Stream(): return x", "f.py", task_names=("f",)
    )
    assert context_environment(plain) == {"CUDA_DEVICE_MAX_CONNECTIONS": "1"}
    assert context_environment(streams) == {}


def test_a_rehearsal_calls_the_entry_on_zeros_of_that_form(opened):
    session = opened("""
        seen = []
        def f(x, params=(), eps=1e-6, odd=None):
            seen.append((x.tolist(), x.dtype, [tuple(p.shape) for p in params], eps, odd))
            return [repr(each) for each in seen[0]]
    """)
    blank = Supply(name="x", dtype="float16", shape=(2, 1))
    one, other = (replace(blank, name=f"p{n}", shape=(n,), member_of="params") for n in (2, 3))
    eps = ScalarArgument(name="eps", value=0.5, default=1e-6)
    done = session.request(Rehearse(arguments=(blank, one, other, eps)))
    assert (done.ended, done.results) == ("returned", ())
    seen = call(session, vector(1.0)).results
    assert [s.text.strip("'") for s in seen] == [
        "[[0.0], [0.0]]",
        "torch.float16",
        "[(2,), (3,)]",
        "0.5",
        "None",
    ]


def test_a_rehearsal_holds_what_is_given_and_tells_no_result(opened):
    session = opened("seen = []\ndef f(x):\n    seen.append(x.tolist())\n    return repr(seen[0])")
    given = Supply(name="x", dtype="int64", shape=(2,), pool=struct.pack("<3q", 5, 7, 9))
    done = session.request(Rehearse(arguments=(given,)))
    assert (done.ended, done.results, done.launches) == ("returned", (), ())
    assert call(session, vector(1.0)).results[0].text == "'[5, 7]'"


def test_a_rehearsal_that_raises_leaves_the_child_as_it_is(opened):
    session = opened("def f(x):\n    if not x.any(): raise ValueError('nothing')\n    return x")
    blank = Supply(name="x", dtype="float32", shape=(2,))
    seen = session.request(Rehearse(arguments=(blank,)))
    assert (seen.ended, seen.message) == ("raised", "nothing")
    assert floats(call(session, vector(2.0)).results[0].data) == (2.0,)


def test_an_autotuned_kernel_is_rehearsed_in_the_configuration_that_is_asked_for(opened):
    session = opened("""
        import torch, triton
        import triton.language as tl

        sizes = []

        @triton.autotune(
            [triton.Config({"B": 2}), triton.Config({"B": 4}, pre_hook=lambda of: sizes.append(4))],
            key=["n"],
        )
        @triton.jit
        def kernel(x, y, n, B: tl.constexpr):
            at = tl.program_id(0) * B + tl.arange(0, B)
            tl.store(y + at, tl.load(x + at, at < n), at < n)

        def f(x):
            y = torch.empty_like(x)
            kernel[lambda of: (triton.cdiv(x.numel(), of["B"]),)](x, y, x.numel())
            return y, len(sizes)
    """)
    for config in (0, 1, 1):
        blank = Supply(name="x", dtype="float32", shape=(5,))
        done = session.request(Rehearse(arguments=(blank,), config=config))
        assert {launch.configs for launch in done.launches} == {2}
    assert call(session, vector(1.0, 2.0)).results[1].text == "2"


LEAVING = """
import gc, os, weakref
import torch

class Held:
    pass

torch.backends.cudnn.benchmark = True
torch.set_default_dtype(torch.float64)
torch.set_float32_matmul_precision("high")
torch.set_default_device("meta")
held = Held()
held.itself = held
open(LOG, "a").write("begins ")
weakref.finalize(held, lambda: open(LOG, "a").write("is gone "))
del held

def f():
    return 1
"""
SETTINGS = """
import os, torch
def f():
    b = torch.backends.cudnn.benchmark
    made = torch.zeros(1)
    return os.getpid(), str((b, torch.get_float32_matmul_precision(), made.dtype, made.device.type))
"""


@pytest.mark.slow
def test_a_candidate_loaded_after_another_finds_default_pytorch_settings(runner, tmp_path):
    log = tmp_path / "log"
    source = f"LOG = {str(log)!r}\n{LEAVING}"
    first = read_candidate(source, "f.py", task_names=("f",), task="f")
    then = read_candidate(SETTINGS, "f.py", task_names=("f",), task="f")
    with runner.open(replace(first, trusted=True), mode="time") as session:
        assert session.loaded.ended == "returned"
        pid = session.pid
        assert session.request(Unload()).ended == "returned"
        # Objects that hold each other are gone, too.
        assert log.read_text() == "begins is gone "
        session.load_instead(then)
        assert session.request(PrepareInputs(arguments=())).ended == "returned"
        session.request(AllocateBuffers(count=1))
        session.request(RunBatch(buffers=(0,)))
        shown = session.request(ShowResult())
    assert [result.text for result in shown.results] == [
        str(pid),
        repr("(False, 'highest', torch.float32, 'cpu')"),
    ]


@pytest.mark.slow
def test_a_cache_may_be_shared(tmp_path):
    source = "import os\ndef f(): os.makedirs(os.environ['TRITON_CACHE_DIR'], exist_ok=True)"
    with Runner(device="cpu", cache_root=tmp_path) as runner:
        candidate = read_candidate(source, "f.py", task_names=("f",), task="f")
        for cache in (None, "all"):
            with runner.open(candidate, cache=cache) as session:
                assert session.call([], poison=POISON).ended == "returned"
    assert {path.parent.name for path in tmp_path.glob("*/triton")} == {candidate.sha256, "all"}


HEADERS = """
import os
from torch._inductor import codecache

def f():
    return codecache._HEADER_DIR, os.environ["TORCHINDUCTOR_CACHE_DIR"]
"""


@pytest.mark.slow
def test_torch_compile_keeps_precompiled_headers_in_the_cache_of_what_it_compiles(runner):
    candidate = read_candidate(HEADERS, "f.py", task_names=("f",), task="f")
    with runner.open(candidate, mode="time_compiled") as session:
        session.request(PrepareInputs(arguments=(), compiled="default"))
        session.request(AllocateBuffers(count=1))
        session.request(RunBatch(buffers=(0,)))
        headers, cache = (result.text for result in session.request(ShowResult()).results)
    assert headers.strip("'").startswith(cache.strip("'") + "/")


COMPILING = """
import sys, types
from torch._inductor.codecache import PyCodeCache

made = types.ModuleType("made")
sys.modules["made"] = made
PyCodeCache.modules.append(made)

def f():
    return 1
"""
COMPILED = """
import sys
from torch._inductor.codecache import PyCodeCache

def f():
    return len(PyCodeCache.modules), "made" in sys.modules
"""


@pytest.mark.slow
def test_an_unloaded_candidate_takes_its_compiled_code_with_it(runner):
    first, then = (
        read_candidate(source, "f.py", task_names=("f",), task="f")
        for source in (COMPILING, COMPILED)
    )
    with runner.open(first, mode="time") as session:
        assert session.request(Unload()).ended == "returned"
        session.load_instead(then)
        for message in (
            PrepareInputs(arguments=()),
            AllocateBuffers(count=1),
            RunBatch(buffers=(0,)),
        ):
            assert session.request(message).ended == "returned"
        shown = session.request(ShowResult())
    assert [result.text for result in shown.results] == ["0", "False"]


def test_a_candidate_may_make_locks_although_it_has_no_shared_memory(opened):
    source = (
        "import multiprocessing\n"
        "LOCK, PLACES = multiprocessing.Lock(), multiprocessing.Semaphore(3)\n"
        "def f(x):\n"
        "    with LOCK, PLACES:\n"
        "        assert not LOCK.acquire(block=False)\n"
        "        return x + PLACES.get_value()\n"
    )
    (result,) = call(opened(source), vector(1.0)).results
    assert floats(result.data) == (3.0,)
