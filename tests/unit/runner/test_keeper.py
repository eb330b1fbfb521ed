"""The judge's memory: what it gives a call, and what it believes of an answer."""

from dataclasses import replace

import numpy as np
import pytest
from children import POISON, floats, vector
from fake_device import FakeDriver, serving

from kerneltruth.runner.device_memory import KeptDeviceMemory
from kerneltruth.runner.keeper import Keeper
from kerneltruth.runner.kept_memory import KeptHostMemory
from kerneltruth.runner.observation import ITEMSIZE, GuardedAllocation, Observation, TensorResult
from kerneltruth.runner.poison import BAND_AFTER, BAND_BEFORE, phase_after, ribbon
from kerneltruth.runner.protocol import Call, ProtocolError, TooLarge

LIMIT, SIZE = 2**20, 2**21


class Child:
    """The other side: writes to the memory, and says what a child would."""

    def __init__(self, make):
        self.keeper = Keeper(make, least_bytes=SIZE)
        self.memory = None

    def begin(self, *arguments):
        call = self.keeper.lay_out(Call(arguments=arguments, poison=POISON))
        if call.memory.descriptor is not None:
            self.memory = np.memmap(
                f"/proc/self/fd/{call.memory.descriptor}", np.uint8, "r+", shape=call.memory.size
            )
        return call

    def allocate(self, start, count):
        """A guarded allocation of `count` floats, its bands filled, holding zeros."""
        size = 4 * count
        band = np.frombuffer(ribbon(POISON, "float32"), np.uint8)
        end = start + BAND_BEFORE + size
        self.memory[start : start + BAND_BEFORE] = band[:BAND_BEFORE]
        phase = phase_after(size)
        self.memory[end : end + BAND_AFTER] = band[phase : phase + BAND_AFTER]
        return GuardedAllocation(name="y", dtype="float32", start=start, size=size)

    def returns(self, *results, allocations=(), used=(), **more):
        answer = Observation(
            ended="returned", results=results, allocations=allocations, used=used, **more
        )
        return self.keeper.read(answer, limit=LIMIT)


def result(place, *shape, strides=None, data=b""):
    if strides is None:
        strides = np.zeros(shape, "u1").strides
    return TensorResult(
        dtype="float32",
        shape=shape,
        strides=tuple(strides),
        device="cpu",
        data=data,
        place=place,
    )


@pytest.fixture(params=["host", "device"])
def child(request):
    """A child in either memory: what the judge does not fetch from a device, it does not see."""
    if request.param == "host":
        yield Child(KeptHostMemory)
        return
    with serving(FakeDriver()) as keeper:
        yield Child(lambda size: KeptDeviceMemory(keeper, size))


def test_inputs_lie_where_the_call_says(child):
    call = child.begin(vector(1.0, 2.0), vector(3.0, name="y"))
    there = [floats(child.memory[a.start : a.start + a.size].tobytes()) for a in call.arguments]
    assert there == [(1.0, 2.0), (3.0,)]
    assert all(a.start % 512 == 0 for a in call.arguments)


def test_a_written_input_is_read_back(child):
    call = child.begin(vector(1.0, 2.0))
    child.memory[call.arguments[0].start] = 7
    seen = child.returns()
    assert seen.buffers["x"][0] == 7
    assert seen.buffers["x"][1:] == vector(1.0, 2.0).buffer[1:]


def test_a_result_is_read_as_it_lies_there(child):
    start = child.begin().memory.room[0]
    child.memory[start : start + 24] = np.arange(6, dtype="f4").view("u1")
    seen = child.returns(result(start + 4, 2, 2, strides=(1, 3)))
    assert floats(seen.results[0].data) == (1.0, 4.0, 2.0, 5.0)


@pytest.mark.parametrize("shape", [(1, 3), (3, 1)])
def test_the_stride_of_a_single_element_may_be_any_number(child, shape):
    start = child.begin().memory.room[0]
    child.memory[start : start + 12] = np.arange(3, dtype="f4").view("u1")
    strides = tuple(1 if n > 1 else 2**62 for n in shape)
    seen = child.returns(result(start, *shape, strides=strides))
    assert floats(seen.results[0].data) == (0.0, 1.0, 2.0)


def test_a_result_in_an_input_is_named_whatever_the_child_says(child):
    call = child.begin(vector(1.0), vector(2.0, 3.0, name="y"))
    seen = child.returns(result(call.arguments[1].start + 4, 1))
    assert seen.results[0].alias == "y"
    assert seen.reused == ()


@pytest.mark.parametrize(
    ("at", "hit"),
    [
        (BAND_BEFORE - 1, ("y, before it",)),
        (BAND_BEFORE + 12, ("y, after it",)),
        (BAND_BEFORE + 11, ()),
        (BAND_BEFORE + 12 + BAND_AFTER - 1, ("y, after it",)),
    ],
)
def test_a_band_that_is_not_the_poison_is_named(child, at, hit):
    start = child.begin().memory.room[0]
    allocation = child.allocate(start, 3)
    child.memory[start + at] ^= 1
    assert child.returns(allocations=(allocation,)).guards_hit == hit


@pytest.mark.parametrize(
    "said",
    [
        {"results": (result(SIZE - 4, 2),)},
        {"results": (result(0, 2, strides=(-1,)),)},
        {"results": (result(2**62, 1, strides=(2**62,)),)},
        {"results": (result(0, *(1,) * 70, strides=(1,) * 70),)},
        {"used": (0, SIZE + 1)},
        {"used": (8, 4)},
        {"used": (-8, 4)},
        {"allocations": (GuardedAllocation(name="y", dtype="int8", start=SIZE - 100, size=4),)},
        {"allocations": (GuardedAllocation(name="y", dtype="int8", start=-4, size=4),)},
        {"allocations": (GuardedAllocation(name="y", dtype="int8", start=0, size=-4),)},
        {"allocations": (GuardedAllocation(name="y", dtype="int8", start=0, size=4),) * 2},
    ],
)
def test_what_cannot_be_true_of_the_memory_is_no_answer(child, said):
    child.begin()
    answer = Observation(ended="returned", **said)
    with pytest.raises(ProtocolError):
        child.keeper.read(answer, limit=LIMIT)


def test_a_small_result_that_claims_to_be_large_is_not_read(child):
    child.begin()
    with pytest.raises(TooLarge, match=r"an answer of 4398046511104 bytes is over 1048576"):
        child.returns(result(0, 2**40, strides=(0,)))


def test_a_result_where_an_earlier_one_still_lies_is_named(child):
    start = child.begin().memory.room[0]
    assert child.returns(result(start, 4), used=(start, start + 16)).reused == ()
    child.begin()
    assert child.returns(used=(start, start + 16)).reused == ()
    child.begin()
    assert child.returns(result(start + 8, 2), used=()).reused == (0,)


def test_memory_that_nothing_uses_any_more_is_given_again(child):
    first = child.begin(vector(1.0)).memory.room[0]
    child.returns(result(first, 4))
    second = child.begin(vector(1.0)).memory.room[0]
    child.returns(result(second, 4))
    third = child.begin(vector(1.0)).memory.room[0]
    assert (first, second > first, third) == (512, True, first)
    assert child.returns(result(third, 4)).reused == ()


def test_memory_in_use_is_given_to_no_other_call(child):
    call = child.begin(vector(1.0))
    kept = call.arguments[0].start
    child.returns(used=(kept, kept + 4, 2048, 4096))
    call = child.begin(vector(2.0))
    assert call.arguments[0].start == 512
    assert call.memory.room == (1024, 2048, 4096, SIZE)
    assert floats(child.memory[kept : kept + 4].tobytes()) == (1.0,)


def test_memory_that_is_mostly_in_use_is_replaced(child):
    child.begin()
    child.returns(used=(0, SIZE - 1024))
    call = child.begin(vector(1.0))
    assert call.memory.descriptor is not None
    assert call.arguments[0].start == 0


def test_large_inputs_get_larger_memory(child):
    large = replace(vector(1.0), buffer=bytes(range(256)) * 2**13)
    call = child.begin(large)
    assert call.memory.size == 4 * len(large.buffer)
    assert child.returns().buffers["x"] == large.buffer


def test_what_changes_after_a_call_was_read_is_seen_before_the_next(child):
    call = child.begin(vector(1.0))
    start = call.memory.room[0]
    child.returns(result(start, 1))
    child.memory[call.arguments[0].start] ^= 1
    child.memory[start] ^= 1
    child.begin(vector(1.0))
    seen = child.returns()
    assert (seen.inputs_changed, seen.results_changed) == (("x",), True)
    child.begin(vector(1.0))
    seen = child.returns()
    assert (seen.inputs_changed, seen.results_changed) == ((), False)


def test_a_call_that_changes_the_result_of_the_call_before_is_seen(child):
    start = child.begin().memory.room[0]
    child.returns(result(start, 4), used=(start, start + 16))
    child.begin()
    child.memory[start] ^= 1
    seen = child.returns(used=(start, start + 16))
    assert (seen.earlier_changed, seen.results_changed) == (True, False)
    child.begin()
    assert not child.returns().earlier_changed


def test_what_changed_between_two_calls_is_no_work_of_the_second(child):
    start = child.begin().memory.room[0]
    child.returns(result(start, 4), used=(start, start + 16))
    child.memory[start] ^= 1
    child.begin()
    seen = child.returns(used=(start, start + 16))
    assert (seen.earlier_changed, seen.results_changed) == (False, True)


def test_a_result_in_an_input_may_be_overwritten_by_the_next_call(child):
    call = child.begin(vector(1.0, 2.0))
    child.returns(result(call.arguments[0].start, 2))
    child.begin(vector(3.0, 4.0))
    assert not child.returns().earlier_changed


def test_results_in_memory_that_was_replaced_are_compared_no_more(child):
    start = child.begin().memory.room[0]
    child.memory[start] = 1
    child.returns(result(start, 4), used=(0, SIZE))
    assert child.begin().memory.descriptor is not None
    assert not child.returns().earlier_changed


def test_what_threads_change_after_the_child_made_copies_is_seen(child):
    call = child.begin(vector(1.0))
    start = call.memory.room[0]
    child.memory[call.arguments[0].start] ^= 1
    early = bytes(4)
    child.memory[start] = 1
    seen = child.returns(result(start, 1, data=early), buffers={"x": vector(1.0).buffer})
    assert (seen.inputs_changed, seen.results_changed) == (("x",), True)
    assert seen.results[0].data == early


def test_a_call_that_did_not_return_leaves_nothing_to_compare(child):
    call = child.begin(vector(1.0))
    child.memory[call.arguments[0].start] ^= 1
    child.keeper.read(Observation(ended="raised"), limit=LIMIT)
    child.begin(vector(1.0))
    assert child.returns().inputs_changed == ()


@pytest.mark.parametrize("dtype", ["complex128", "complex64", "float64", "bfloat16", "bool"])
def test_elements_of_every_size_are_read_and_compared_by_their_bits(child, dtype):
    start = child.begin().memory.room[0]
    child.memory[start : start + 96] = 0xFF
    child.memory[start : start + 32] = range(32)
    size = ITEMSIZE[dtype]
    named = replace(result(start, 2, strides=(2,)), dtype=dtype)
    seen = child.returns(named)
    there = bytes(child.memory[start : start + 96])
    assert seen.results[0].data == there[:size] + there[2 * size : 3 * size]
    child.begin()
    assert not child.returns().results_changed
