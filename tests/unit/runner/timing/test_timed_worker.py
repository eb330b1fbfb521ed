"""Timed calls in a real child on the CPU: rows, contents, batches, and what the last call gave."""

import gc
import re
import struct
import textwrap
import weakref
from dataclasses import replace

import pytest
import torch
from children import call, floats, vector

from kerneltruth.cases.philox import stream
from kerneltruth.clock.protocol.effort import Effort
from kerneltruth.clock.protocol.inputs import make_bench_inputs
from kerneltruth.clock.protocol.sides import Side, SideError
from kerneltruth.clock.schedule.benchmark import InterleavedBenchmark
from kerneltruth.clock.schedule.timed_cases import timed_cases
from kerneltruth.documents.case import Case
from kerneltruth.runner.arguments import ScalarArgument
from kerneltruth.runner.candidate import read_candidate
from kerneltruth.runner.observation import OtherResult
from kerneltruth.runner.read_only_memfd import ReadOnlyMemfd
from kerneltruth.runner.timing.messages import (
    AllocateBuffers,
    CaptureGraphs,
    FillBuffers,
    PrepareInputs,
    RunBatch,
    ShowResult,
    SpotCheck,
    Supply,
)
from kerneltruth.runner.timing.timed_worker import pooled
from kerneltruth.tasks.registry import find
from kerneltruth.tasks.spec import task

pytestmark = pytest.mark.processes

POOL = tuple(float(i) for i in range(100))
TORCH = "import torch\ndef f(x):\n    return x * 2\n"


def supply(name="x", pool=POOL, count=3, **more):
    data = struct.pack(f"<{len(pool)}f", *pool)
    return Supply(name=name, dtype="float32", shape=(count,), pool=data, **more)


@pytest.fixture(scope="module")
def timed(runner):
    """Open a timed child for a source whose entry is `f`."""
    sessions = []

    def open_session(source, name="f"):
        text = textwrap.dedent(source)
        candidate = read_candidate(text, f"{name}.py", task_names=(name,), task=name)
        sessions.append(runner.open(candidate, mode="time"))
        return sessions[-1]

    yield open_session
    for session in sessions:
        session.close()


def well(session, *messages, **more):
    """Have it done; the last answer."""
    for message in messages:
        seen = session.request(message, **more)
        assert seen.ended == "returned", seen
    return seen


def stock(session, *arguments, buffers=4, **more):
    well(
        session,
        PrepareInputs(arguments=arguments or (supply(),), **more),
        AllocateBuffers(count=buffers),
    )


def refill(*starts, scales=()):
    return FillBuffers(buffers=tuple(range(len(starts))), windows=(starts,), scales=scales)


def show_result(session, **sizes):
    seen = session.request(ShowResult(), sizes=sizes)
    assert seen.ended == "returned", seen
    return seen


def test_the_result_of_the_last_call_is_shown(timed):
    session = timed(TORCH)
    stock(session)
    well(session, refill(0, 10, 20, 30), RunBatch(buffers=(0, 3, 1)))
    assert floats(show_result(session).results[0].data) == (20.0, 22.0, 24.0)


CONDITIONS = """
import torch
def f(x, scale=2, *, mode="plain"):
    said = (
        torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.is_autocast_enabled(),
        torch.get_default_dtype() == torch.float32, torch.get_default_device().type == "cpu",
        torch.are_deterministic_algorithms_enabled(), torch.backends.cuda.matmul.allow_tf32,
        type(x) is torch.Tensor, x.requires_grad, x.is_leaf, x.is_contiguous(), x.is_inference(),
        x.dtype == torch.float32, torch.get_num_threads(), scale, mode == "plain",
    )
    return torch.tensor([float(s) for s in said])
"""
GRADIENT = """
import torch
def f(x):
    x.requires_grad_()
    (x * x).sum().backward()
    found, x.grad = x.grad, None
    return found
"""


def test_a_call_finds_the_same_conditions_timed_as_it_did_judged(timed, runner):
    judged = runner.open(read_candidate(CONDITIONS, "f.py", task_names=("f",), task="f"))
    before = call(judged, vector(1.0, 2.0), ScalarArgument(name="scale", value=3, default=2))
    judged.close()
    session = timed(CONDITIONS)
    stock(session, supply(count=2), ScalarArgument(name="scale", value=3, default=2))
    well(session, refill(0, 10, 20, 30), RunBatch(buffers=(0, 1)))
    assert floats(show_result(session).results[0].data) == floats(before.results[0].data)


def test_a_candidate_that_asks_for_gradients_is_timed(timed):
    session = timed(GRADIENT)
    stock(session)
    for start in (0, 10):
        well(session, refill(start, 0, 0, 0), RunBatch(buffers=(1, 0)))
        assert floats(show_result(session).results[0].data) == tuple(
            2.0 * (start + i) for i in range(3)
        )


def test_a_numpy_kernel_is_timed_too(timed):
    session = timed("import numpy as np\ndef f(x):\n    return np.sqrt(x * x) + 1\n")
    stock(session)
    well(session, refill(5, 6, 7, 8), RunBatch(buffers=(2,)))
    assert floats(show_result(session).results[0].data) == (8.0, 9.0, 10.0)


def test_each_call_sees_its_own_buffer(timed):
    session = timed(
        """
        import torch
        seen = []
        def f(x):
            seen.append((x.data_ptr(), float(x[0])))
            return torch.tensor([v for _, v in seen] + [float(len({p for p, _ in seen}))])
        """
    )
    stock(session)
    well(session, refill(4, 3, 2, 1), RunBatch(buffers=(0, 1, 2, 3)))
    assert floats(show_result(session).results[0].data) == (4.0, 3.0, 2.0, 1.0, 4.0)


def test_buffers_keep_their_memory_and_get_fresh_contents(timed):
    session = timed(
        """
        import torch
        seen = []
        def f(x):
            seen.append(x.data_ptr())
            return torch.cat([x, torch.tensor([float(len(set(seen)))])])
        """
    )
    stock(session)
    well(
        session,
        refill(0, 0, 0, 0),
        RunBatch(buffers=(1,)),
        refill(9, 9, 9, 9),
        RunBatch(buffers=(1,)),
    )
    assert floats(show_result(session).results[0].data) == (9.0, 10.0, 11.0, 1.0)


def test_buffers_can_be_freed_and_allocated_again_from_the_same_inputs(timed):
    session = timed(TORCH)
    stock(session)
    well(session, refill(0, 10, 20, 30), RunBatch(buffers=(3,)), AllocateBuffers(count=0))
    assert session.request(RunBatch(buffers=(0,))).ended == "raised"
    well(session, AllocateBuffers(count=2), refill(5, 6), RunBatch(buffers=(1,)))
    assert floats(show_result(session).results[0].data) == (12.0, 14.0, 16.0)


def test_what_was_written_in_place_is_shown(timed):
    session = timed("def f(x):\n    x += 0.5\n")
    stock(session, supply(shown=True))
    well(session, refill(0, 10, 20, 30), RunBatch(buffers=(1, 2)))
    seen = show_result(session, x=12)
    assert floats(seen.buffers["x"]) == (20.5, 21.5, 22.5)


def test_an_input_that_is_not_shown_stays_hidden(timed):
    session = timed(TORCH)
    stock(session)
    well(session, refill(0, 0, 0, 0), RunBatch(buffers=(0,)))
    assert show_result(session).buffers == {}


def test_a_buffer_is_aligned_like_an_allocation(timed):
    session = timed("import torch\ndef f(x):\n    return torch.tensor([x.data_ptr() % 16.0])\n")
    stock(session)
    well(session, refill(0, 1, 2, 3), RunBatch(buffers=(3,)))
    assert floats(show_result(session).results[0].data) == (0.0,)


def test_weights_are_the_same_in_all_buffers(timed):
    session = timed("def f(x, w):\n    return x + w\n")
    stock(session, supply(), supply("w", pool=(100.0, 200.0, 300.0), fixed=True))
    well(session, refill(0, 1, 2, 3), RunBatch(buffers=(0, 3)))
    assert floats(show_result(session).results[0].data) == (103.0, 204.0, 305.0)


def test_attributes_reach_the_entry(timed):
    session = timed("def f(x, scale=1.0):\n    return x * scale\n")
    stock(session, supply(), ScalarArgument(name="scale", value=3.0, default=1.0))
    well(session, refill(1, 1, 1, 1), RunBatch(buffers=(0,)))
    assert floats(show_result(session).results[0].data) == (3.0, 6.0, 9.0)


def test_members_of_a_list_are_passed_as_one(timed):
    session = timed("def f(xs):\n    return xs[0] - xs[1]\n")
    stock(session, supply("a", member_of="xs"), supply("b", member_of="xs"))
    well(
        session,
        FillBuffers(buffers=(0, 1), windows=((50, 60), (1, 2))),
        RunBatch(buffers=(0, 1)),
    )
    assert floats(show_result(session).results[0].data) == (58.0, 58.0, 58.0)


@pytest.mark.parametrize("count", [3, 2**16 + 8])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_scaled_contents_are_to_the_bit_those_of_the_judge(timed, count, dtype):
    generator = torch.Generator().manual_seed(5)
    pool = torch.randn(count + 100, generator=generator).to(dtype)
    data = pool.view(torch.uint8).numpy().tobytes()
    name = str(dtype).removeprefix("torch.")
    session = timed("def f(x):\n    return x\n")
    stock(session, Supply(name="x", dtype=name, shape=(count,), pool=data), buffers=2)
    factor = 37 / 64
    well(session, refill(7, 90, scales=((1.0, factor),)), RunBatch(buffers=(0, 1)))
    expected = pool[90 : 90 + count] * torch.tensor(factor, dtype=dtype)
    assert show_result(session).results[0].data == expected.view(torch.uint8).numpy().tobytes()


def test_a_pool_is_read_where_it_lies(timed):
    held = ReadOnlyMemfd(memoryview(struct.pack(f"<{len(POOL)}f", *POOL)))
    session = timed(TORCH)
    stock(session, replace(supply(pool=()), path=held.path))
    well(session, refill(0, 10, 20, 30), RunBatch(buffers=(2,)))
    assert floats(show_result(session).results[0].data) == (40.0, 42.0, 44.0)


def test_a_pool_that_several_benchmarks_share_is_on_the_device_once():
    cpu = torch.device("cpu")
    held = ReadOnlyMemfd(memoryview(struct.pack(f"<{len(POOL)}f", *POOL)))
    given = replace(supply(pool=()), path=held.path)
    first = pooled(given, cpu)
    assert pooled(replace(given, shape=(5,)), cpu) is first
    # A fixed one is what calls get, and they may write to it.
    assert pooled(replace(given, fixed=True), cpu) is not first
    assert pooled(replace(given, dtype="int32"), cpu) is not first
    # Another file may come to lie at the same path.
    path = held.path
    del held, given
    other = ReadOnlyMemfd(memoryview(struct.pack(f"<{len(POOL)}f", *POOL[::-1])))
    assert other.path == path
    assert pooled(replace(supply(pool=()), path=path), cpu).tolist() == list(POOL[::-1])


def test_a_pool_is_freed_with_its_last_user():
    held = ReadOnlyMemfd(memoryview(struct.pack(f"<{len(POOL)}f", *POOL)))
    pool = weakref.ref(pooled(replace(supply(pool=()), path=held.path), torch.device("cpu")))
    gc.collect()
    assert pool() is None


def test_a_candidate_that_writes_to_its_inputs_spoils_no_pool(timed):
    held = ReadOnlyMemfd(memoryview(struct.pack(f"<{len(POOL)}f", *POOL)))
    session = timed("def f(x):\n    x.fill_(7)\n    return x\n")
    stock(session, replace(supply(pool=()), path=held.path))
    well(session, refill(0, 0, 0, 0), RunBatch(buffers=(0, 1, 2, 3)))
    with open(held.path, "rb") as file:
        assert floats(file.read()) == POOL


def test_an_empty_tensor_can_be_timed(timed):
    session = timed(TORCH)
    stock(session, supply(count=0, shown=True))
    well(session, refill(0, 1, 2, 3), RunBatch(buffers=(0, 1)))
    assert show_result(session, x=0).results[0].shape == (0,)


def test_a_batch_reports_its_times(timed):
    session = timed(TORCH)
    stock(session)
    timings = well(session, refill(0, 1, 2, 3), RunBatch(buffers=(0, 1))).timings
    assert {"device_s", "host_s"} <= set(timings)
    assert all(seconds >= 0 for seconds in timings.values())


@pytest.mark.parametrize("claim", ["float('nan')", "-1.0", "'fast'", "None", "[0.1]"])
def test_a_time_that_is_not_a_number_is_malformed(timed, claim):
    """Times are claims: the candidate lives where they are taken."""
    session = timed(
        f"""
        from kerneltruth.runner.timing import timed_worker
        timed_worker.TimedWorker.batch = lambda self, rows, **named: {{"device_s": {claim}}}
        def f(x):
            return x
        """
    )
    stock(session)
    seen = session.request(RunBatch(buffers=(0,)))
    assert seen.ended in ("lost", "died")
    assert seen.timings == {}


@pytest.mark.parametrize("claim", ["float('inf')", "10**400"])
def test_an_infinite_time_is_malformed(timed, claim):
    session = timed(
        f"""
        from kerneltruth.runner.timing import timed_worker
        timed_worker.TimedWorker.batch = lambda self, rows, **named: {{"peak_bytes": {claim}}}
        def f(x):
            return x
        """
    )
    stock(session)
    assert session.request(RunBatch(buffers=(0,))).ended in ("lost", "died")


@pytest.mark.parametrize(
    "message",
    [
        AllocateBuffers(count=2, slot=5),
        refill(0, 1),
        RunBatch(buffers=(0,)),
        ShowResult(),
        CaptureGraphs(groups=((0,),), order=(0,)),
    ],
)
def test_a_batch_before_its_inputs_is_lost(timed, message):
    session = timed(TORCH)
    assert session.request(message).ended == "lost"
    # Nothing is left of what the child held.
    assert session.request(PrepareInputs(arguments=(supply(),))).ended == "lost"


def test_after_a_restart_it_works_again(timed):
    session = timed(TORCH)
    assert session.request(ShowResult()).ended == "lost"
    session.restart()
    stock(session)
    well(session, refill(0, 1, 2, 3), RunBatch(buffers=(0,)))


def test_slots_are_apart(timed):
    session = timed(TORCH)
    for slot, start in ((0, 10), (1, 50)):
        well(
            session,
            PrepareInputs(arguments=(supply(),), slot=slot),
            AllocateBuffers(count=1, slot=slot),
            FillBuffers(buffers=(0,), windows=((start,),), slot=slot),
            RunBatch(buffers=(0,), slot=slot),
        )
    assert floats(well(session, ShowResult(slot=0)).results[0].data) == (20.0, 22.0, 24.0)
    assert floats(well(session, ShowResult(slot=1)).results[0].data) == (100.0, 102.0, 104.0)


def test_an_exception_of_the_candidate_is_reported(timed):
    session = timed("def f(x):\n    raise ValueError('not today')\n")
    stock(session)
    seen = session.request(RunBatch(buffers=(0,)))
    assert (seen.ended, seen.error, seen.message) == ("raised", "ValueError", "not today")


def test_a_source_that_does_not_load_says_so_at_its_first_message(timed):
    seen = timed("def f(x):\n    return x\nraise OSError('no')\n").request(
        PrepareInputs(arguments=())
    )
    assert (seen.ended, seen.message) == ("load_failed", "no")


def test_a_candidate_that_takes_too_long_is_ended(timed):
    session = timed("import time\ndef f(x):\n    time.sleep(600)\n")
    stock(session)
    assert session.request(RunBatch(buffers=(0,)), deadline_s=0.3).ended == "timeout"
    assert session.request(RunBatch(buffers=(0,))).ended == "lost"


def test_a_result_that_is_no_tensor_is_shown_as_what_it_is(timed):
    session = timed("def f(x):\n    return 'done'\n")
    stock(session)
    well(session, RunBatch(buffers=(0,)))
    assert show_result(session).results[0].type == "str"


LATE = """
import torch

class Late({base}):
    def __iter__(self):
        return iter([tuple.__getitem__(self, 0) * 2])

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        raise AssertionError("asked")

def f(x):
    return {result}
"""


@pytest.mark.parametrize(
    ("base", "result"),
    [("tuple", "Late((x,))"), ("list", "Late([x])"), ("torch.Tensor", "x.as_subclass(Late)")],
)
def test_a_result_that_computes_itself_after_the_batch_has_the_wrong_type(timed, base, result):
    session = timed(LATE.format(base=base, result=result))
    stock(session, supply())
    well(session, refill(10, 20, 0, 1), RunBatch(buffers=(0, 1, 2, 3)))
    (found,) = show_result(session).results
    assert found.type == "Late"


def test_work_finished_after_a_batch_does_not_count_in_it(timed):
    session = timed(
        """
        import torch
        from kerneltruth.runner.timing import timed_worker
        out = torch.zeros(3)
        show = timed_worker.TimedWorker.show
        def later(self):
            out.fill_(7)
            return show(self)
        timed_worker.TimedWorker.show = later
        def f(x):
            return out
        """
    )
    stock(session)
    well(session, refill(1, 2, 3, 4), RunBatch(buffers=(0,)))
    assert floats(show_result(session).results[0].data) == (0.0, 0.0, 0.0)


def test_a_model_gets_the_judges_weights(timed):
    session = timed(
        """
        import torch
        class ModelNew(torch.nn.Module):
            def __init__(self, inputs, outputs):
                super().__init__()
                self.layer = torch.nn.Linear(inputs, outputs)
            def forward(self, x):
                return self.layer(x)
        """,
        "ModelNew",
    )
    weight = replace(supply("weights.layer.weight", fixed=True, pool=POOL[:6]), shape=(2, 3))
    bias = supply("weights.layer.bias", fixed=True, pool=(1000.0, 2000.0), count=2)
    built = ScalarArgument(name="get_init_inputs()", value="[3, 2]")
    stock(session, built, supply(), weight, bias)
    well(session, refill(1, 2, 3, 4), RunBatch(buffers=(3, 0)))
    assert floats(show_result(session).results[0].data) == (1008.0, 2026.0)


def spot_checks(*, buffers=(3, 1), sources=(0, 0), elements=(3,), spots=((0, 2),)):
    return SpotCheck(buffers=buffers, sources=sources, elements=elements, spots=spots)


def spot_checked_results(session):
    seen = session.request(ShowResult(spot_checks=True))
    assert seen.ended == "returned", seen
    return seen.results


SAMPLED_LAP = (
    refill(0, 10, 20, 30),
    RunBatch(buffers=(2,)),
    spot_checks(),
    RunBatch(buffers=(1, 2, 3)),
)


def test_some_elements_of_checked_calls_are_kept_on_late_inputs(timed):
    session = timed(TORCH)
    stock(session)
    well(session, *SAMPLED_LAP)
    (result,) = spot_checked_results(session)
    # Rows 1 and 3 got what row 0 holds.
    assert (result.dtype, result.shape) == ("float32", (2, 2))
    assert floats(result.data) == (0.0, 4.0, 0.0, 4.0)
    # The last call, in row 3, is shown as it was.
    assert floats(show_result(session).results[0].data) == (0.0, 2.0, 4.0)


def test_results_computed_ahead_of_time_are_wrong(timed):
    session = timed(
        """
        import torch
        results = None
        def f(x):
            global results
            rows = x._base.view(-1, 128)
            if results is None or x.storage_offset() == 128:
                results = rows[:, :3] * 2
            return results[x.storage_offset() // 128]
        """
    )
    stock(session)
    well(session, *SAMPLED_LAP)
    assert floats(spot_checked_results(session)[0].data) == (60.0, 64.0, 0.0, 4.0)


def test_unchecked_calls_keep_their_own_inputs(timed):
    session = timed(TORCH)
    stock(session)
    well(session, *SAMPLED_LAP, refill(0, 10, 20, 30), SpotCheck(), RunBatch(buffers=(1, 3)))
    assert floats(show_result(session).results[0].data) == (60.0, 62.0, 64.0)
    assert spot_checked_results(session) == ()


@pytest.mark.parametrize(
    ("gives", "dtype", "line"),
    [
        ("x.bool()", "bool", b"\x00\x01"),
        ("x.to(torch.int64)", "int64", struct.pack("<2q", 0, 2)),
        ("x.half()", "float16", struct.pack("<2e", 0, 2)),
        ("torch.complex(x, -x)", "complex64", struct.pack("<4f", 0, -0.0, 2, -2)),
        ("torch.complex(x, x).conj()", "complex64", struct.pack("<4f", 0, -0.0, 2, -2)),
        ("torch.stack([x, x])[0]", "float32", struct.pack("<2f", 0, 2)),
        ("torch.stack([x, x], 1)[:, 0]", "float32", struct.pack("<2f", 0, 2)),
        ("x.clone().requires_grad_()", "float32", struct.pack("<2f", 0, 2)),
        ("x.numpy() + 0", "float32", struct.pack("<2f", 0, 2)),
        ("{'out': [x + 0]}", "float32", struct.pack("<2f", 0, 2)),
        ("(x + 0, None)", "float32", struct.pack("<2f", 0, 2)),
    ],
)
def test_results_are_kept_whatever_their_form(timed, gives, dtype, line):
    session = timed(f"import torch\ndef f(x):\n    return {gives}\n")
    stock(session)
    well(session, *SAMPLED_LAP)
    (result,) = spot_checked_results(session)
    assert (result.dtype, result.data) == (dtype, line * 2)


def test_each_output_has_its_elements(timed):
    session = timed("import torch\ndef f(x):\n    return x + 1, x.sum(), x[:0]\n")
    stock(session)
    spot_check = spot_checks(elements=(3, 1, 0), spots=((2, 2, 0), (0,), ()))
    well(
        session, refill(0, 10, 20, 30), RunBatch(buffers=(2,)), spot_check, RunBatch(buffers=(1, 3))
    )
    elements, total, nothing = spot_checked_results(session)
    assert floats(elements.data) == (3.0, 3.0, 1.0) * 2
    assert floats(total.data) == (3.0, 3.0)
    assert nothing.shape == (2, 0)


@pytest.mark.parametrize(
    ("gives", "said"),
    [
        ("x[:2]", r"tensors of \[2\] elements; expected \[3\]"),
        ("None", r"tensors of \[\] elements"),
        ("(x, x)", r"tensors of \[3, 3\] elements"),
        ("x.to(torch.complex128)", "elements of 16 bytes"),
        ("x.double() if float(x[1]) == 1 else x + 1", "dtypes .*float64.* in one call"),
        ("x[:2] if float(x[1]) == 1 else x + 1", r"tensors of \[2\] elements"),
    ],
)
def test_a_result_of_another_form_is_reported(timed, gives, said):
    session = timed(f"import torch\ndef f(x):\n    return {gives}\n")
    stock(session)
    well(session, *SAMPLED_LAP)
    (result,) = spot_checked_results(session)
    assert isinstance(result, OtherResult)
    assert re.search(said, result.text)


@pytest.mark.slow
def test_a_candidate_that_watches_operators_does_not_see_spot_checks(timed):
    session = timed(
        """
        import torch
        from torch.overrides import TorchFunctionMode
        from torch.utils._python_dispatch import TorchDispatchMode
        heard = []
        class Operators(TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                heard.append(str(func))
                return func(*args, **(kwargs or {}))
        class Functions(TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                heard.append(str(func))
                return func(*args, **(kwargs or {}))
        Operators().__enter__()
        Functions().__enter__()
        def f(x):
            print(" ".join(heard))
            heard.clear()
            return x * 2
        """
    )
    stock(session)
    well(session, *SAMPLED_LAP[:3])
    seen = well(session, RunBatch(buffers=(1, 2, 3, 2)))
    calls = seen.output.splitlines()[-3:]
    assert len({*calls}) == 1, calls
    assert "mul" in calls[0]
    assert floats(spot_checked_results(session)[0].data) == (0.0, 4.0, 0.0, 4.0)


SMALL = Effort(
    batch_s=1e-4,
    graph_batch_s=3e-4,
    blocks=(2, 2),
    budget_s=0.0,
    memory_bytes=2**18,
    shown=1,
    deadline_s=120.0,
)


def benchmarked(session, declared, case, name="candidate"):
    inputs = make_bench_inputs(declared, case)
    benchmark = InterleavedBenchmark(
        sides=[Side(name=name, child=session)],
        inputs=inputs,
        effort=SMALL,
        rng=stream(1, "contest"),
        known=inputs.draw(stream(2, "known"), 1),
        on_gpu=False,
    )
    benchmark.prepare()
    benchmark.run(lambda c: False)
    return benchmark


RELU = task(
    "relu(x[M, N])",
    category="Test",
    dims={"M": "batch", "N": "spatial"},
    reference=torch.relu,
    description="",
    flops="M * N",
    benchmark={"M": 4, "N": 8},
)


def test_a_benchmark_shows_the_candidates_results_on_known_contents(timed):
    session = timed("import torch\ndef relu(x):\n    return x.clamp(min=0)\n", "relu")
    case = Case(task="relu", dims=(("M", 4), ("N", 8)), seed=3)
    benchmark = benchmarked(session, RELU, case)
    assert len(benchmark.blocks) == 2
    (seen,) = benchmark.shown
    x = benchmark.inputs.at(RELU, case, seen.at).tensors["x"]
    assert seen.seen.results[0].data == x.clamp(min=0).numpy().tobytes()


def test_timed_calls_and_what_is_expected_of_them_have_the_examples_layout(timed):
    (x,) = RELU.arguments
    lies = replace(RELU, arguments=(replace(x, example=((4, 1), (8, 4))),))
    session = timed("def relu(x):\n    return x.relu(), x.stride()\n", "relu")
    case = Case(task="relu", dims=(("M", 4), ("N", 8)), seed=3)
    benchmark = benchmarked(session, lies, case)
    (seen,) = benchmark.shown
    result, *strides = seen.seen.results
    x = benchmark.inputs.at(lies, case, seen.at).tensors["x"]
    assert [value.text for value in strides] == ["1", "4"]
    assert result.data == x.relu().contiguous().numpy().tobytes()


def test_a_candidate_that_raises_within_a_benchmark_is_named(timed):
    session = timed(
        """
        calls = []
        def relu(x):
            calls.append(1)
            if len(calls) > 10:
                raise RuntimeError("tired")
            return x.relu()
        """,
        "relu",
    )
    case = Case(task="relu", dims=(("M", 4), ("N", 8)), seed=3)
    with pytest.raises(SideError, match="mine: raised: tired") as error:
        benchmarked(session, RELU, case, name="mine")
    assert error.value.name == "mine"


def test_an_optimizer_is_timed_with_its_steps(timed):
    adam = replace(find("kernelbenchx/Adam"), perf=())
    session = timed(
        """
        class Steps:
            def __init__(self, params, lr):
                self.params, self.lr = params, lr
            def step(self):
                for p in self.params:
                    p.data -= self.lr * p.grad
        def Adam(params, lr=0.001):
            return Steps(params, lr)
        """,
        "Adam",
    )
    case = timed_cases(adam)[0]
    benchmark = benchmarked(session, adam, case)
    (seen,) = benchmark.shown
    given = benchmark.inputs.at(adam, case, seen.at).tensors
    expected = given["p0"] - 0.001 * given["_gradients_of_p0"][0]
    got = torch.frombuffer(bytearray(seen.seen.buffers["p0"]), dtype=torch.float32)
    assert torch.equal(got.view(expected.shape), expected)
