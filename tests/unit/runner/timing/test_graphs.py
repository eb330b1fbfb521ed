"""Captured calls, with graphs that tape operators and play them again: no device is here."""

import contextlib
import struct
from functools import partial
from types import SimpleNamespace

import pytest
import torch
from children import floats
from torch.utils._python_dispatch import TorchDispatchMode

from kerneltruth.runner.timing import timed_worker
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

POOL = tuple(float(i) for i in range(100))
STOCK = PrepareInputs(
    arguments=(
        Supply(
            name="x", dtype="float32", shape=(3,), pool=struct.pack("<100f", *POOL), shown=False
        ),
    )
)
# Two groups, one whose calls share a row, and one whose calls are sampled.
GROUPS = ((4, 9), (7, 5), (0, 0), (8, 6))
ORDER = (3, 0, 2, 1)
SAMPLED = SpotCheck(buffers=(8, 6), sources=(0, 1), elements=(3,), spots=((2, 0),))


class Tape(TorchDispatchMode):
    """A graph: what is called while it is captured happens again, in the same memory."""

    def __init__(self, made):
        super().__init__()
        self.calls = []
        made.append(self)

    def capture_begin(self, pool, capture_error_mode):
        self.__enter__()

    def capture_end(self):
        self.__exit__(None, None, None)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        self.calls.append((func, args, kwargs or {}, result))
        return result

    def replay(self):
        for func, args, named, result in self.calls:
            again = func(*args, **named)
            if isinstance(result, torch.Tensor) and result.data_ptr() != again.data_ptr():
                result.copy_(again)


@pytest.fixture
def tapes():
    """The graphs in the order in which they were made."""
    return []


@pytest.fixture
def captured(tapes):
    """A track whose calls are captured."""
    cuda = SimpleNamespace(
        CUDAGraph=lambda: Tape(tapes),
        Stream=lambda device: None,
        stream=lambda stream: contextlib.nullcontext(),
        graph_pool_handle=lambda: None,
    )

    def capture(entry, *, spot_check=SAMPLED):
        made = timed_worker.TimedWorker(
            STOCK,
            torch.device("cpu"),
            lambda buffers: [partial(entry, buffer[0].value) for buffer in buffers],
            cuda=cuda,
            # The tape is a mode; a device sees what the host does with modes switched off.
            unwatched=torch.no_grad,
        )
        made.do(AllocateBuffers(count=10))
        made.do(FillBuffers(buffers=tuple(range(10)), windows=(tuple(range(10)),)))
        made.do(RunBatch(buffers=(0, 1)))
        if spot_check is not None:
            made.do(spot_check)
        made.do(CaptureGraphs(groups=GROUPS, order=ORDER))
        return made

    return capture


def doubled(x):
    return x * 2


def batch(captured, *groups, starts):
    """Fresh contents, which begin at these numbers, and a batch over the groups."""
    captured.do(FillBuffers(buffers=tuple(range(10)), windows=(starts,)))
    captured.do(RunBatch(buffers=groups, graphs=True))


STARTS = tuple(range(50, 60))


def test_a_batch_over_groups_repeats_their_calls_on_fresh_contents(captured):
    made = captured(doubled)
    batch(made, 1, 0, starts=STARTS)
    # The last call of group 0 is that on row 9.
    assert floats(made.do(ShowResult()).results[0].data) == (118.0, 120.0, 122.0)
    batch(made, 0, 1, starts=STARTS)
    assert floats(made.do(ShowResult()).results[0].data) == (110.0, 112.0, 114.0)


def test_groups_are_captured_in_the_requested_order(captured, tapes):
    buffers = []

    def entry(x):
        buffers.append(x.storage_offset() // 128)
        return x * 2

    made = captured(entry)
    assert buffers[2:] == [8, 6, 4, 9, 0, 0, 7, 5]
    assert len(tapes) == len(GROUPS)
    batch(made, 2, starts=STARTS)
    assert floats(made.do(ShowResult()).results[0].data) == (100.0, 102.0, 104.0)


def test_checked_calls_of_a_graph_get_known_contents(captured):
    made = captured(doubled)
    for first in (50, 20):
        starts = (first, first + 5, *range(70, 78))
        batch(made, 1, 3, 0, starts=starts)
        (kept,) = made.do(ShowResult(spot_checks=True)).results
        assert kept.shape == (2, 2)
        expected = (first + 2, first, first + 7, first + 5)
        assert floats(kept.data) == tuple(2.0 * v for v in expected)


def test_other_groups_keep_their_inputs(captured):
    made = captured(doubled)
    batch(made, 3, 1, starts=STARTS)
    assert floats(made.do(ShowResult()).results[0].data) == (110.0, 112.0, 114.0)


def test_a_call_whose_work_was_left_out_when_it_was_captured_is_seen(captured):
    calls = []

    def entry(x):
        calls.append(1)
        return torch.zeros(3) if len(calls) == 4 else x * 2

    made = captured(entry)
    batch(made, 3, starts=STARTS)
    (kept,) = made.do(ShowResult(spot_checks=True)).results
    assert floats(kept.data) == (104.0, 100.0, 0.0, 0.0)


def test_results_computed_together_when_a_group_begins_are_of_other_inputs(captured):
    made = []

    def entry(x):
        buffer = x.storage_offset() // 128
        if len(made) % 2 == 0:
            every = x._base.view(-1, 128)[:, :3] * 2
            made.append(every)
        else:
            made.append(made[-1])
        return made[-1][buffer]

    captured_one = captured(entry)
    batch(captured_one, 3, starts=STARTS)
    (kept,) = captured_one.do(ShowResult(spot_checks=True)).results
    first, second = floats(kept.data)[:2], floats(kept.data)[2:]
    assert first == (104.0, 100.0)
    # What lay in row 6 when the group began; row 1's contents were due.
    assert second == (116.0, 112.0)


def test_without_spot_checks_contents_stay_as_they_were(captured):
    made = captured(doubled, spot_check=None)
    batch(made, 3, starts=STARTS)
    assert floats(made.do(ShowResult()).results[0].data) == (112.0, 114.0, 116.0)
    assert made.do(ShowResult(spot_checks=True)).results == ()
