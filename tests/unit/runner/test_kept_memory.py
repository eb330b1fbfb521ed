"""Children that lie about their memory, and honest ones that keep some from call to call."""

import time

import pytest
from children import call, floats, vector
from fake_device import FakeDriver, serving

from kerneltruth.runner.candidate import read_candidate
from kerneltruth.runner.device_memory import KeptDeviceMemory
from kerneltruth.runner.host import Runner
from kerneltruth.runner.kept_memory import MemoryLost
from kerneltruth.runner.session import LATE_S

pytestmark = pytest.mark.processes


class Mirroring(Runner):
    """A runner whose memory is a device's: the judge sees what it fetches."""

    def __init__(self, keeper):
        super().__init__(device="cpu", targets=())
        self._keeper = keeper

    def memory_of(self, where, mode):
        return lambda size: KeptDeviceMemory(self._keeper, size)


@pytest.fixture(scope="module")
def device():
    driver = FakeDriver()
    with serving(driver) as keeper, Mirroring(keeper) as runner:
        yield driver, runner


@pytest.fixture(scope="module", params=["host", "device"])
def runner(request, runner):
    return runner if request.param == "host" else request.getfixturevalue("device")[1]


BEYOND = """
    y = torch.empty(4)
    y.as_strided((1,), (1,), y.storage_offset() + 4).zero_()
    return y.zero_()
"""
SETUP = "import torch\nfrom kerneltruth.runner.child import guards, placing\n"


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
        "guards.Guard.hits = lambda self: ()",
        "guards.ribbon = lambda *a, **k: bytes(2**17)",
        "guards.fill = lambda *a: None",
    ],
)
def test_a_write_beyond_an_allocation_is_seen_though_the_childs_guards_are_patched(opened, patch):
    seen = call(opened(f"{SETUP}{patch}\ndef f(x):{BEYOND}"), vector(0.0))
    assert len(seen.guards_hit) == 1
    assert seen.guards_hit[0].startswith("float32[4] #0, ")


LYING = f"{SETUP}placing.raw_bytes = lambda tensor: bytes(4)\n"


@pytest.mark.parametrize(
    "returned",
    ["x.clone()", "x", "x + 0", "(x + 0).requires_grad_()", "(x.new_ones(3) * x)[::2][:1]"],
)
def test_the_judge_reads_a_result_itself_wherever_it_was_allocated(opened, returned):
    seen = call(opened(f"{LYING}def f(x): return {returned}"), vector(1.0))
    assert floats(seen.results[0].data) == (1.0,)


def test_a_result_whose_elements_overlap_comes_as_bytes(opened):
    session = opened("def f(x): return (x + 0).expand(2)")
    assert floats(call(session, vector(1.0)).results[0].data) == (1.0, 1.0)


def test_a_result_moves_with_its_strides_and_stays_its_tensor(opened):
    session = opened(
        """
        kept = []
        def f(x):
            kept.append((x + 0).view(2, 2).t())
            return kept[-1], (kept[0] + 0 if len(kept) > 1 else x + 0)
        """
    )
    first = call(session, vector(1.0, 2.0, 3.0, 4.0)).results[0]
    assert (floats(first.data), first.strides) == ((1.0, 3.0, 2.0, 4.0), (1, 2))
    assert floats(call(session, vector(*[0.0] * 4)).results[1].data) == (1.0, 3.0, 2.0, 4.0)


def test_a_result_that_has_moved_may_grow_in_a_later_call(opened):
    session = opened(
        """
        import torch
        kept = []
        def f(x):
            kept.append(x + 0)
            return kept[0] if len(kept) == 1 else torch.add(x, 1, out=kept[0]) + 0
        """
    )
    call(session, vector(1.0))
    assert floats(call(session, vector(1.0, 2.0)).results[0].data) == (2.0, 3.0)


def test_one_memory_for_the_results_of_all_calls_is_seen(opened):
    session = opened(
        "made = []\ndef f(x):\n    made.append(x.clone())\n    return made[0].copy_(x)"
    )
    assert [call(session, vector(n)).reused for n in (1.0, 2.0, 3.0)] == [(), (0,), (0,)]


@pytest.mark.parametrize("returned", ["pool.copy_(x)", "pool.copy_(x)[:]", "pool.copy_(x).view(1)"])
def test_one_memory_made_before_all_calls_is_seen(opened, returned):
    session = opened(f"import torch\npool = torch.ones(1)\ndef f(x): return {returned}")
    assert [call(session, vector(n)).reused for n in (1.0, 2.0, 3.0)] == [(), (0,), (0,)]


ARRAY = """
import numpy as np
made = np.ones(1, "f4")
def f(x):
    np.copyto(made, x)
    return {}
"""


@pytest.mark.parametrize("returned", ["made", "made[:]", "made.view()"])
def test_one_array_for_the_results_of_all_calls_is_seen(opened, returned):
    session = opened(ARRAY.format(returned))
    seen = [call(session, vector(n)) for n in (1.0, 2.0, 3.0)]
    assert [s.reused for s in seen] == [(), (0,), (0,)]
    assert [floats(s.results[0].data) for s in seen] == [(1.0,), (2.0,), (3.0,)]


@pytest.mark.parametrize("returned", ["made.copy()", "made + 0", "made.copy()[:]"])
def test_an_array_may_be_kept_for_what_is_not_returned(opened, returned):
    session = opened(ARRAY.format(returned))
    assert [call(session, vector(n)).reused for n in (1.0, 2.0, 3.0)] == [()] * 3


@pytest.mark.parametrize("returned", ["made[0].copy_(x).clone()", "made[0].copy_(x) + 0"])
def test_memory_may_be_kept_for_what_is_not_returned(opened, returned):
    session = opened(f"made = []\ndef f(x):\n    made.append(x.clone())\n    return {returned}")
    for n in (1.0, 2.0, 3.0):
        seen = call(session, vector(n))
        assert (floats(seen.results[0].data), seen.reused) == ((n,), ())
        assert (seen.inputs_changed, seen.results_changed) == ((), False)


def test_what_is_kept_of_earlier_calls_holds_what_it_held(opened):
    session = opened(
        """
        import torch
        kept = []
        def f(x):
            kept.extend([x, x.clone(), torch.full((3000,), float(x))])
            return torch.stack([t.flatten()[-1] for t in kept])
        """
    )
    expected = ()
    for n in (1.0, 2.0, 3.0, 4.0):
        expected += (n,) * 3
        assert floats(call(session, vector(n)).results[0].data) == expected


def test_much_that_is_kept_leaves_room_for_later_calls(opened):
    session = opened(
        """
        import torch
        kept = []
        def f(x):
            kept.append(torch.full((2**23,), float(x)))
            return torch.stack([t[-1] for t in kept] + [x[0]]).clone()
        """
    )
    for n in range(1, 10):
        seen = call(session, vector(float(n)))
        assert floats(seen.results[0].data) == (*map(float, range(1, n + 1)), float(n))


def test_what_is_written_long_after_a_call_is_seen_before_the_next(opened):
    session = opened(
        """
        import threading
        def f(x):
            y = x.clone()
            if float(x) == 1:
                threading.Timer(0.3, lambda: (x.zero_(), y.zero_())).start()
            return y
        """
    )
    seen = call(session, vector(1.0))
    assert (seen.inputs_changed, seen.results_changed) == ((), False)
    time.sleep(0.4)
    seen = call(session, vector(2.0))
    assert (seen.inputs_changed, seen.results_changed) == (("x",), True)


def test_a_child_cannot_cut_the_memory_off(opened):
    session = opened(
        """
        import os
        def f(x):
            for name in os.listdir("/proc/self/fd"):
                try:
                    os.ftruncate(int(name), 0)
                except OSError:
                    pass
            return x.clone()
        """
    )
    for n in (1.0, 2.0):
        assert floats(call(session, vector(n)).results[0].data) == (n,)


def test_a_process_that_a_call_leaves_behind_cannot_change_what_was_read(opened):
    session = opened(
        """
        import os, time
        def f(x):
            y = x.clone()
            if os.fork() == 0:
                time.sleep(0.1)
                y.zero_()
                os._exit(0)
            return y
        """
    )
    seen = call(session, vector(1.0))
    time.sleep(0.2)
    assert floats(seen.results[0].data) == (1.0,)
    assert call(session, vector(1.0)).results_changed


def test_a_candidate_loaded_after_another_gets_memory_of_its_own(opened):
    from dataclasses import replace

    session = opened("def f(x): return x.clone()")
    call(session, vector(1.0))
    session.load_instead(replace(session.candidate, source="def f(x): return x.clone() * 2"))
    assert floats(call(session, vector(2.0)).results[0].data) == (4.0,)


LEAVING = {
    "a thread": "threading.Timer(0.3, lambda: y.{}()).start()",
    "a process": """
            if os.fork() == 0:
                time.sleep(0.3)
                y.{}()
                os._exit(0)""",
}


@pytest.mark.parametrize("left", LEAVING)
@pytest.mark.parametrize(("does", "changed"), [("zero_", True), ("sum", False)])
def test_what_is_written_long_after_the_last_call_is_waited_for(opened, left, does, changed):
    session = opened(
        f"""
        import os, threading, time
        def f(x):
            y = x.clone()
            {LEAVING[left].format(does)}
            return y
        """
    )
    seen = call(session, vector(1.0))
    assert (floats(seen.results[0].data), seen.results_changed) == ((1.0,), False)
    assert session.after_last().results_changed == changed


@pytest.mark.parametrize(
    ("leaves", "waits"),
    [
        ("", False),
        ("threading.Thread(target=threading.Event().wait, daemon=True).start()", True),
    ],
)
def test_only_a_child_that_has_left_something_is_waited_for(opened, leaves, waits):
    session = opened(f"import threading\n{leaves}\ndef f(x): return x.clone()")
    call(session, vector(1.0))
    start = time.monotonic()
    seen = session.after_last()
    assert (time.monotonic() - start >= LATE_S) == waits
    assert (seen.inputs_changed, seen.results_changed) == ((), False)


@pytest.fixture
def on_device(device):
    driver, runner = device
    source = "def f(x): return x.clone()"
    with runner.open(read_candidate(source, "f.py", task_names=("f",), task="f")) as session:
        yield driver, session
    driver.room, driver.broken = 2**30, False


def test_a_device_without_room_is_tried_again_with_a_fresh_child(on_device):
    driver, session = on_device
    driver.room = 2**20
    seen = call(session, vector(1.0))
    assert (seen.ended, session.lost) == ("lost", 1)
    assert seen.message == "the device's memory: cuMemCreate: CUDA_ERROR_OUT_OF_MEMORY"
    driver.room = 2**30
    assert floats(call(session, vector(1.0)).results[0].data) == (1.0,)


def test_what_cannot_be_read_any_more_is_no_result(on_device):
    driver, session = on_device
    call(session, vector(1.0))
    driver.broken = True
    with pytest.raises(MemoryLost):
        session.after_last()
    assert call(session, vector(1.0)).ended == "lost"
