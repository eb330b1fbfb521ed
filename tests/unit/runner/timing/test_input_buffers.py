"""Rows of inputs, and what is hidden of them until a batch begins."""

from functools import partial

import pytest
import torch
from children import floats

from kerneltruth.runner.timing import timed_worker
from kerneltruth.runner.timing.input_buffers import InputBuffers
from kerneltruth.runner.timing.messages import (
    AllocateBuffers,
    FillBuffers,
    PrepareInputs,
    RunBatch,
    ShowResult,
    Supply,
)

POOL = torch.arange(1.0, 101.0)


def supply(shape=(3,), dtype="float32", pool=POOL):
    return Supply(name="x", dtype=dtype, shape=shape, pool=pool.numpy().tobytes(), shown=False)


def filled_buffers(shape, pool, count=4, **more):
    made = InputBuffers(supply=supply(shape), pool=pool, **more)
    made.make(count)
    made.refill(range(count), [0, 1, 2, 3][:count], ())
    return made


def tracked(entry, **more):
    """A worker on the CPU, with contents in its buffers."""
    made = timed_worker.TimedWorker(
        PrepareInputs(arguments=(supply(),)),
        torch.device("cpu"),
        lambda offered: [partial(entry, buffer[0].value) for buffer in offered],
        **more,
    )
    made.do(AllocateBuffers(count=4))
    made.do(FillBuffers(buffers=(0, 1, 2, 3), windows=((0, 10, 20, 30),)))
    return made


def last(made):
    return floats(made.do(ShowResult()).results[0].data)


@pytest.mark.parametrize(
    "dtype",
    [
        torch.bool,
        torch.uint8,
        torch.float16,
        torch.bfloat16,
        torch.float32,
        torch.int64,
        torch.complex128,
        torch.float8_e4m3fn,
    ],
)
@pytest.mark.parametrize("shape", [(), (1,), (3, 5), (700,)])
def test_any_contents_of_a_buffer_are_hidden_and_come_back_bit_by_bit(dtype, shape):
    pool = (torch.arange(1000) % 7).to(torch.float32).to(dtype)
    made = filled_buffers(shape, pool)
    before = made.slab.clone().view(torch.uint8)
    made.flip()
    assert all(
        (made.slab.view(torch.uint8)[i] != before[i]).any() for i in range(made.slab.shape[0])
    )
    made.flip()
    assert torch.equal(made.slab.view(torch.uint8), before)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.complex64])
@pytest.mark.parametrize(("together", "one_by_one"), [(2**16, 2**22), (2, 2**22), (2, 3)])
def test_buffers_hold_windows_times_factors_however_they_are_filled(dtype, together, one_by_one):
    elements = torch.linspace(-3, 3, 300).to(dtype)
    made = InputBuffers(
        supply=supply((5, 7)), pool=elements, together=together, one_by_one=one_by_one
    )
    made.make(3)
    starts, factors = [0, 9, 18], [33 / 64, 0.5, 61 / 64]
    made.refill((2, 0, 1), starts, factors)
    for buffer, start, factor in zip((2, 0, 1), starts, factors, strict=True):
        window = elements[start : start + 35] * torch.tensor(factor, dtype=dtype)
        assert torch.equal(made.buffer(buffer), window.reshape(5, 7))


def test_small_buffers_are_hidden_completely():
    made = filled_buffers((3, 5), POOL)
    before = made.slab.clone()
    made.flip()
    # A word has two elements, and the mask may leave one as it is in 2**32 draws.
    assert (made.slab[:, :15] != before[:, :15]).all()


def test_an_unpredictable_part_of_large_buffers_is_hidden():
    found = set()
    for _ in range(8):
        made = filled_buffers((50,), POOL, most_hidden=4 * 8 * 10)
        before = made.slab.clone()
        made.flip()
        (first, *_, final) = (made.slab[0] != before[0]).nonzero().flatten().tolist()
        assert final - first == 19
        assert ((made.slab != before).sum(1) == 20).all()
        found.add(first)
    assert len(found) > 1


def test_empty_buffers_have_nothing_to_hide():
    made = filled_buffers((0, 3), POOL)
    made.flip()
    assert made.hidden is None


def test_contents_come_back_after_the_device_was_kept_busy_and_before_the_first_call():
    seen = []
    made = tracked(
        lambda x: x * 2, keep_busy=lambda seconds: seen.append(made.offered(2)[0].value.clone())
    )
    made.do(RunBatch(buffers=(0, 2), head_start_s=1e-3, hidden=True))
    assert len(seen) == 1
    assert not torch.equal(seen[0], POOL[20:23])
    assert last(made) == (42.0, 44.0, 46.0)
    made.do(RunBatch(buffers=(0, 2), head_start_s=1e-3))
    assert torch.equal(seen[1], POOL[20:23])


def test_calls_find_the_right_contents_batch_after_batch():
    made = tracked(lambda x: x * 2)
    for hidden in (True, False, True, True):
        made.do(RunBatch(buffers=(2, 1), hidden=hidden))
        assert last(made) == (22.0, 24.0, 26.0)


@pytest.mark.parametrize("strides", [(1, 3), (12, 2)])
def test_a_buffers_tensor_lies_in_its_window_by_its_strides(strides):
    lies = Supply(name="x", dtype="float32", shape=(3, 4), strides=strides)
    made = InputBuffers(supply=lies, pool=POOL)
    made.make(2)
    made.refill((0, 1), (0, 7), ())
    tensor = made.buffer(1)
    assert tensor.stride() == strides
    assert torch.equal(tensor, POOL[7 : 7 + lies.span].as_strided((3, 4), strides))
