"""The judge's memory in the child: allocations come from it as far as it has room."""

import os

import pytest
import torch

from kerneltruth.runner.child.guards import Guard
from kerneltruth.runner.child.shared_memory import HostMapping, SharedMemory
from kerneltruth.runner.poison import BAND_AFTER, BAND_BEFORE, phase_after, ribbon

pytestmark = pytest.mark.processes

POISON, SIZE = b"0123456789abcdef", 2**20
BANDS = BAND_BEFORE + BAND_AFTER
# So many floats reach beyond a band.
BEYOND = BAND_AFTER


@pytest.fixture
def file():
    descriptor = os.memfd_create("memory")
    os.ftruncate(descriptor, SIZE)
    yield descriptor
    os.close(descriptor)


@pytest.fixture
def memory(file):
    shared = SharedMemory(HostMapping(file, SIZE))
    shared.begin((0, SIZE))
    return shared


def test_an_allocation_lies_there_between_bands_of_its_dtypes_poison(file, memory):
    with Guard(POISON, memory=memory) as guard:
        torch.zeros(1)
        tensor = torch.full((3,), 7, dtype=torch.int16)
    second = guard.shared[1]
    assert (second.name, second.dtype, second.size) == ("int16[3] #1", "int16", 6)
    assert memory.place_of(tensor.data_ptr()) == second.start + BAND_BEFORE
    there, pattern = os.pread(file, BANDS + 6, second.start), ribbon(POISON, "int16")
    phase = phase_after(6)
    assert there[:BAND_BEFORE] == pattern[:BAND_BEFORE]
    assert there[BAND_BEFORE : BAND_BEFORE + 6] == b"\7\0" * 3
    assert there[BAND_BEFORE + 6 :] == pattern[phase : phase + BAND_AFTER]


def test_uninitialized_memory_there_is_poisoned(memory):
    with Guard(POISON, memory=memory):
        assert not (torch.empty(1000).abs() < 1e37).any()


def test_what_has_no_room_is_guarded_here(memory):
    with Guard(POISON, memory=memory) as guard:
        large = torch.zeros(SIZE // 4)
        small = torch.zeros(4)
        large.as_strided((1,), (1,), large.storage_offset() + SIZE // 4).fill_(5)
    assert memory.place_of(large.data_ptr()) is None
    assert memory.place_of(small.data_ptr()) is not None
    assert guard.hits() == (f"float32[{SIZE // 4}] #0, after it",)
    assert [each.name for each in guard.shared] == ["float32[4] #1"]


def test_memory_is_in_use_as_long_as_a_tensor_or_a_view_of_it_lives(memory):
    with Guard(POISON, memory=memory):
        view = torch.zeros(4)[1:]
        torch.zeros(4)
    assert memory.used() == (0, BANDS + 16)
    del view
    assert memory.used() == ()


def bands(file, allocation):
    there = os.pread(file, BANDS + allocation.size, allocation.start)
    return there[:BAND_BEFORE], there[-BAND_AFTER:]


GROWING = {
    "resize_": lambda tensor: tensor.resize_(100).fill_(1.0),
    "resize_ by much": lambda tensor: tensor.resize_(BEYOND).fill_(1.0),
    "out": lambda tensor: torch.ones(100, out=tensor.resize_(0)),
    "out of an operator": lambda tensor: torch.add(torch.ones(BEYOND), 0, out=tensor),
    "two results": lambda tensor: torch.max(
        torch.ones(BEYOND, 2), 1, out=(tensor, torch.zeros(0, dtype=torch.int64))
    ),
}


@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
@pytest.mark.parametrize("grow", GROWING.values(), ids=GROWING)
def test_a_tensor_there_may_grow_and_leaves_its_bands(file, memory, grow):
    with Guard(POISON, memory=memory) as guard:
        tensor = torch.zeros(4)
        assert memory.place_of(tensor.data_ptr()) is not None
        bands_before = bands(file, guard.shared[0])
        grow(tensor)
    assert len(tensor) in (100, BEYOND)
    assert (tensor == 1).all()
    assert bands(file, guard.shared[0]) == bands_before


# The overload with a generator resizes its result by an operator of its own.
KEEPING = {
    "resize_": lambda tensor: tensor.resize_(2, 2),
    "out": lambda tensor: torch.rand(4, generator=None, out=tensor),
    "out of other dims": lambda tensor: torch.rand(2, 2, generator=None, out=tensor),
}


@pytest.mark.parametrize("resize", KEEPING.values(), ids=KEEPING)
def test_a_tensor_that_keeps_its_size_stays_there(memory, resize):
    with Guard(POISON, memory=memory):
        tensor = torch.zeros(4)
        start = tensor.data_ptr()
        resize(tensor)
    assert tensor.data_ptr() == start
    assert memory.place_of(start) is not None


def test_a_tensor_that_grows_keeps_its_elements(memory):
    with Guard(POISON, memory=memory):
        tensor = torch.arange(4.0).clone()
        tensor.resize_(40)
    assert tensor[:4].tolist() == [0.0, 1.0, 2.0, 3.0]


def test_gradients_flow_through_copies_there(memory):
    x = torch.ones(3, requires_grad=True)
    with Guard(POISON, memory=memory):
        y = x.clone().mul_(2.0)
        (y.to(torch.float64).contiguous() * torch.full((3,), 3.0)).sum().backward()
    assert x.grad.tolist() == [6.0, 6.0, 6.0]


@pytest.mark.parametrize(
    ("device", "own"), [("cuda", True), ("cuda:1", True), ("cuda:0", False), ("cpu", False)]
)
def test_memory_serves_allocations_of_its_own_device_alone(device, own):
    class Elsewhere(HostMapping):
        device = torch.device("cuda:1")

    assert SharedMemory(Elsewhere.__new__(Elsewhere)).is_of(torch.device(device)) is own
