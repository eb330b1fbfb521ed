"""The judge keeps a device's memory: what a child patches there changes nothing that it reads."""

import struct
import subprocess
import sys
import time

import pytest
import torch

from kerneltruth.corpus.exploit import exploits, sources
from kerneltruth.documents.verdict import Passed
from kerneltruth.engine.evaluator import EvaluationRequest, Evaluator
from kerneltruth.oracle.bounds import Policy
from kerneltruth.oracle.plan import Plan
from kerneltruth.runner.arguments import TensorArgument
from kerneltruth.runner.candidate import read_candidate
from kerneltruth.runner.containment import LEVELS, levels
from kerneltruth.runner.device_memory import why_not
from kerneltruth.runner.host import Runner

pytestmark = pytest.mark.gpu

DEVICE, POISON = "cuda:0", b"0123456789abcdef"
SETUP = "import torch\nfrom kerneltruth.runner.child import guards, placing\n"


class Unkept(Runner):
    """A runner without memory of the judge's on its device."""

    def memory_of(self, where, mode):
        return None


@pytest.fixture(scope="module", autouse=True)
def _skip_without_kept_memory():
    if why := why_not(DEVICE):
        pytest.skip(f"the judge keeps no memory of this device: {why}")


@pytest.fixture(scope="module")
def runner():
    with Runner(device=DEVICE) as made:
        yield made


def vector(*values, name="x"):
    buffer = struct.pack(f"<{len(values)}f", *values)
    return TensorArgument(
        name=name, dtype="float32", shape=(len(values),), strides=(1,), offset=0, buffer=buffer
    )


def floats(data):
    return struct.unpack(f"<{len(data) // 4}f", data)


def call(session, *arguments, poison=POISON):
    seen = session.call(arguments, poison=poison, deadline_s=60)
    assert seen.ended == "returned", seen
    return seen


def shipped(level):
    """What is said of a contained process that maps memory of another."""
    command = [sys.executable, "-m", "kerneltruth.runner.device_keeper", "--device", "0"]
    ran = subprocess.run([*command, "--try", level], capture_output=True, text=True, check=False)
    return ran.returncode, ran.stdout.strip()


def test_a_contained_process_maps_the_memory_under_every_level():
    offered = levels.on_cuda(levels.offered()).level
    tried = LEVELS[: LEVELS.index(offered) + 1]
    assert {level: shipped(level) for level in tried} == dict.fromkeys(tried, (0, ""))


def test_an_overwritten_input_is_seen_though_the_child_shows_another(opened):
    session = opened(
        f"{SETUP}placing.raw_bytes = lambda tensor: bytes(8)\ndef f(x): return x.zero_().clone()"
    )
    assert floats(call(session, vector(1.0, 2.0)).buffers["x"]) == (0.0, 0.0)


def test_a_shared_memory_is_named_though_the_child_hides_it(opened):
    session = opened(f"{SETUP}placing._alias = lambda *a: None\ndef f(x): return x[1:]")
    assert call(session, vector(1.0, 2.0)).results[0].alias == "x"


@pytest.mark.parametrize(
    "patch",
    [
        "",
        "guards.Guard.hits = lambda self: ()",
        "guards.ribbon = lambda *a, **k: bytes(2**17)",
        "guards.fill = lambda *a: None",
    ],
)
def test_a_write_beyond_an_allocation_is_seen_though_the_childs_guards_are_patched(opened, patch):
    session = opened(
        f"""
        import torch
        from kerneltruth.runner.child import guards
        {patch}
        def f(x):
            y = torch.empty(4, device=x.device)
            y.as_strided((1,), (1,), y.storage_offset() + 4).zero_()
            return y.zero_()
        """
    )
    seen = call(session, vector(0.0))
    assert len(seen.guards_hit) == 1
    assert seen.guards_hit[0].startswith("float32[4] #0, ")


@pytest.mark.parametrize(
    "returned",
    ["x.clone()", "x", "x + 0", "(x + 0).requires_grad_()", "(x.new_ones(3) * x)[::2][:1]"],
)
def test_the_judge_reads_a_result_itself_wherever_it_was_allocated(opened, returned):
    lying = f"{SETUP}placing.raw_bytes = lambda tensor: bytes(4)\n"
    seen = call(opened(f"{lying}def f(x): return {returned}"), vector(1.0))
    assert seen.results[0].device == DEVICE
    # A child whose threads run on sends bytes as well; the judge then compares them.
    assert floats(seen.results[0].data) == (1.0,) or seen.results_changed


def test_results_and_inputs_hold_what_a_triton_kernel_wrote(opened):
    session = opened(
        """
        import torch, triton
        import triton.language as tl

        @triton.jit
        def k(x, y, n, B: tl.constexpr):
            i = tl.arange(0, B)
            tl.store(y + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)

        def f(x):
            y = torch.empty_like(x)
            k[(1,)](x, y, x.numel(), B=16)
            return y
        """
    )
    for values in ((1.0, 2.0, 3.0), (5.0, 6.0)):
        seen = call(session, vector(*values))
        assert floats(seen.results[0].data) == tuple(v + 1 for v in values)
        assert (seen.guards_hit, floats(seen.buffers["x"])) == ((), values)


def test_one_memory_for_the_results_of_all_calls_is_seen(opened):
    session = opened("made = []\ndef f(x):\n    made.append(x + 0)\n    return made[0].copy_(x)")
    assert [call(session, vector(n)).reused for n in (1.0, 2.0, 3.0)] == [(), (0,), (0,)]


def test_memory_may_be_kept_for_what_is_not_returned(opened):
    session = opened(
        "made = []\ndef f(x):\n    made.append(x + 0)\n    return made[0].copy_(x) + 0"
    )
    for n in (1.0, 2.0, 3.0):
        seen = call(session, vector(n))
        assert (floats(seen.results[0].data), seen.reused) == ((n,), ())
        assert (seen.inputs_changed, seen.results_changed) == ((), False)


def test_what_is_written_long_after_a_call_is_seen_before_the_next(opened):
    session = opened(
        """
        import threading
        def f(x):
            y = x.clone()
            if float(x) == 1:
                threading.Timer(0.4, lambda: (x.zero_(), y.zero_())).start()
            return y
        """
    )
    seen = call(session, vector(1.0))
    assert (seen.inputs_changed, seen.results_changed) == ((), False)
    time.sleep(0.6)
    seen = call(session, vector(2.0))
    assert (seen.inputs_changed, seen.results_changed) == (("x",), True)


def test_what_is_kept_leaves_room_for_later_calls_and_is_freed_with_the_child(opened):
    torch.zeros(1, device=DEVICE)
    before = torch.cuda.mem_get_info()[0]
    session = opened(
        """
        import torch
        kept = []
        def f(x):
            kept.append(torch.full((2**23,), float(x), device=x.device))
            return torch.stack([t[-1] for t in kept] + [x[0]]).clone()
        """
    )
    for n in range(1, 10):
        seen = call(session, vector(float(n)))
        assert floats(seen.results[0].data) == (*map(float, range(1, n + 1)), float(n))
    assert before - torch.cuda.mem_get_info()[0] > 2**28
    session.close()
    until = time.monotonic() + 10
    while before - torch.cuda.mem_get_info()[0] > 2**26 and time.monotonic() < until:
        time.sleep(0.1)
    assert before - torch.cuda.mem_get_info()[0] <= 2**26


def test_a_captured_graph_writes_to_no_later_calls_memory(opened):
    session = opened(
        """
        import torch
        made = []
        def f(x):
            if not made:
                given = torch.empty(4, device=x.device)
                torch.cuda.synchronize()
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph):
                    twice = torch.empty_like(given)
                    out = torch.mul(given, 2, out=twice) + 1
                made.extend([graph, given, out])
            graph, given, out = made
            given.copy_(x)
            graph.replay()
            return out.clone()
        """
    )
    for n in (1.0, 2.0, 3.0):
        seen = call(session, vector(n, n, n, n))
        assert floats(seen.results[0].data) == (2 * n + 1,) * 4
        assert (seen.guards_hit, seen.inputs_changed) == ((), ())


# Each with what its source has in place of a CPU's addresses.
TRIED = {
    "alias_hidden": {},
    "guards_patched": {
        "ctypes.memset(out.data_ptr() + out.numel() * out.element_size(), 0, 256)": (
            "out.as_strided((64,), (1,), out.storage_offset() + out.numel()).zero_()"
        )
    },
    "one_result_for_all": {"dtype=input.dtype)": "dtype=input.dtype, device=input.device)"},
    "overwritten_input_hidden": {},
    "poison_patched": {},
    "result_of_an_operator_written_later": {},
}


@pytest.fixture(scope="module")
def evaluators(runner):
    """A judge that keeps the device's memory, and one that leaves it to the child."""
    with Unkept(device=DEVICE) as unkept:
        made = [Evaluator(policy=Policy(), runner=each) for each in (runner, unkept)]
        yield made
        for evaluator in made:
            evaluator.eager_checks.close()


def attempt_at(evaluator, exploit, source):
    name = exploit.task.rpartition("/")[2]
    candidate = read_candidate(source, f"{name}.py", task_names=(name,), task=name)
    plan = Plan(cases=16, compile=False, deadline_s=60.0)
    job = EvaluationRequest(name=name, task=exploit.task, candidate=candidate, plan=plan)
    return evaluator.evaluate(job).attempt


@pytest.mark.parametrize("name", TRIED)
def test_an_exploit_fails_where_the_judge_keeps_the_memory_and_there_alone(evaluators, name):
    exploit = next(each for each in exploits() if each.name == name)
    text, honest = sources(exploit)
    for before, after in TRIED[name].items():
        assert before in text
        text, honest = text.replace(before, after), honest.replace(before, after)
    kept, unkept = evaluators
    assert attempt_at(kept, exploit, honest).verdict == Passed()
    assert attempt_at(kept, exploit, text).verdict.word in ("fail", "hack")
    assert attempt_at(unkept, exploit, text).verdict == Passed()
