import numpy as np
import pytest
import torch

from kerneltruth.runner.child.guards import ALIGNMENT, Guard, numpy_poisoned
from kerneltruth.runner.poison import poison_bytes

pytestmark = pytest.mark.processes

POISON, OTHER = b"0123456789abcdef", b"fedcba9876543210"
FLOATS = ["float64", "float32", "float16", "bfloat16", "float8_e5m2", "float8_e4m3fn"]


def pattern(name, poison=POISON):
    dtype = getattr(torch, name)
    return torch.frombuffer(bytearray(poison_bytes(poison, name)), dtype=dtype)


@pytest.mark.parametrize("name", FLOATS)
def test_poisoned_floats_are_nan_or_huge(name):
    values = pattern(name).double()
    nan = values.isnan()
    largest = torch.finfo(getattr(torch, name)).max
    assert 0.4 < nan.double().mean() < 0.6
    assert values[~nan].isfinite().all()
    assert (values[~nan].abs() >= largest / 4).all()


@pytest.mark.parametrize("name", ["int64", "int32", "int16", "int8"])
def test_poisoned_integers_are_far_from_zero_on_both_sides(name):
    values = pattern(name).double()
    quarter = torch.iinfo(getattr(torch, name)).max // 2
    assert (values.abs() >= quarter).all()
    assert (values > 0).any()
    assert (values < 0).any()


def test_poisoned_bools_are_zero_or_one():
    assert set(poison_bytes(POISON, "bool")) == {0, 1}


def test_the_pattern_is_the_same_for_the_same_poison_and_differs_for_another():
    assert poison_bytes(POISON, "float32") == poison_bytes(POISON, "float32")
    assert poison_bytes(POISON, "float32") != poison_bytes(OTHER, "float32")


def allocations(device="cpu"):
    like = torch.zeros(6, 4, device=device).t()
    return {
        "empty": lambda: torch.empty(5, 3, device=device),
        "channels_last": lambda: torch.empty(
            2, 3, 4, 5, memory_format=torch.channels_last, device=device
        ),
        "empty_like": lambda: torch.empty_like(like),
        "empty_like_dtype": lambda: torch.empty_like(like, dtype=torch.int16),
        "empty_strided": lambda: torch.empty_strided((3, 4), (1, 5), device=device),
        "new_empty": lambda: like.new_empty((2, 3), dtype=torch.bfloat16),
        "new_empty_strided": lambda: like.new_empty_strided((2, 3), (4, 1)),
        "scalar": lambda: torch.empty((), device=device),
        "out_of_cpp": lambda: torch.empty_permuted((2, 3, 4), (2, 0, 1), device=device),
    }


def filled(device="cpu"):
    like = torch.arange(24.0, device=device).reshape(6, 4).t()
    rows = torch.arange(24.0, device=device).reshape(4, 6)[::2, ::2]
    image = torch.arange(120.0, device=device).reshape(2, 3, 4, 5)
    return {
        "zeros": lambda: torch.zeros(5, 3, device=device),
        "zeros of a type": lambda: torch.zeros((), dtype=torch.bool, device=device),
        "zeros_like": lambda: torch.zeros_like(like),
        "new_zeros": lambda: like.new_zeros((2, 3), dtype=torch.int64),
        "ones": lambda: torch.ones(3, dtype=torch.bfloat16, device=device),
        "ones_like": lambda: torch.ones_like(like, dtype=torch.complex64),
        "new_ones": lambda: like.new_ones(3),
        "full": lambda: torch.full((2, 3), 7, device=device),
        "full of floats": lambda: torch.full((2, 3), fill_value=0.5, device=device),
        "full_like": lambda: torch.full_like(image, -1.5, memory_format=torch.channels_last),
        "new_full": lambda: like.new_full((2,), 3.0),
        "clone": lambda: like.clone(),
        "clone of a part": lambda: rows.clone(),
        "clone in a format": lambda: image.clone(memory_format=torch.channels_last),
        "clone of an expanded one": lambda: like[:1].expand(4, 6).clone(),
        "conjugate": lambda: torch.tensor([1 + 2j], device=device).conj().clone(),
        "contiguous": lambda: like.contiguous(),
        "to a dtype": lambda: like.to(torch.float16),
        "to a copy": lambda: rows.to(device, copy=True),
        "float": lambda: torch.arange(3, device=device).float(),
        "tensor": lambda: torch.tensor([[1.0, 2.0]], device=device),
        "with a gradient": lambda: like.detach().requires_grad_().clone(),
    }


@pytest.mark.parametrize("name", [*allocations(), *filled()])
def test_a_guarded_allocation_has_the_requested_layout_and_is_aligned(name):
    make = {**allocations(), **filled()}[name]
    plain = make()
    with Guard(POISON) as guard:
        guarded = make()
    assert guarded.shape == plain.shape
    assert guarded.stride() == plain.stride()
    assert guarded.dtype == plain.dtype
    assert guarded.data_ptr() % ALIGNMENT == 0 or name == "conjugate"
    assert guard.hits() == ()
    if name in filled():
        assert torch.equal(guarded, plain)
        assert guarded.requires_grad == plain.requires_grad


def test_two_poisons_leave_different_bytes_in_the_same_place():
    seen = []
    for poison in (POISON, OTHER):
        with Guard(poison):
            seen.append(torch.empty(1000))
    assert not torch.equal(seen[0].view(torch.int32), seen[1].view(torch.int32))


def test_requires_grad_is_kept():
    with Guard(POISON):
        assert torch.empty(3, requires_grad=True).requires_grad


def test_empty_and_meta_and_sparse_allocations_pass_through():
    with Guard(POISON) as guard:
        assert torch.empty(0, 3).shape == (0, 3)
        assert torch.empty(3, device="meta").is_meta
        assert torch.empty((2, 2), layout=torch.sparse_coo).is_sparse
    assert guard.hits() == ()


@pytest.mark.parametrize("name", sorted(filled().keys() - {"conjugate"}))
def test_a_write_beyond_an_initialized_allocation_is_seen(name):
    with Guard(POISON) as guard, torch.no_grad():
        tensor = filled()[name]()
        end = sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True)) + 1
        tensor.as_strided((1,), (1,), tensor.storage_offset() + end).fill_(5)
    (hit,) = guard.hits()
    assert hit.endswith("after it")


@pytest.mark.parametrize("make", [torch.empty_like, torch.zeros_like])
def test_bands_have_small_numbers_apart_from_what_is_uninitialized(make):
    seen = {}
    for small in (False, True):
        with Guard(POISON, small_poison=not small, small_guards=small) as guard:
            tensor = make(torch.zeros(4))
            beyond = tensor.as_strided((8,), (1,), tensor.storage_offset() + 4).clone()
        assert guard.hits() == ()
        seen[small] = tensor.clone(), beyond
    wild, small = seen[False][1], seen[True][1]
    assert ((small.abs() >= 1) & (small.abs() < 2)).all()
    assert not ((wild.abs() >= 1) & (wild.abs() < 2)).any()
    first, second = seen[False][0], seen[True][0]
    assert torch.equal(first, second) == (make is torch.zeros_like)


def test_what_shares_memory_with_an_array_goes_on_sharing_it():
    array = np.zeros(3)
    with Guard(POISON):
        for shared in (torch.from_numpy(array), torch.as_tensor(array), torch.asarray(array)):
            shared += 1
    assert array.tolist() == [3.0, 3.0, 3.0]


def test_gradients_flow_through_guarded_copies():
    x = torch.ones(3, requires_grad=True)
    with Guard(POISON) as guard:
        y = x.clone()
        y.mul_(2.0)
        (y.to(torch.float64).contiguous() * torch.full((3,), 3.0)).sum().backward()
    assert x.grad.tolist() == [6.0, 6.0, 6.0]
    assert guard.hits() == ()


def test_a_tensor_may_grow():
    with Guard(POISON) as guard:
        tensor = torch.zeros(4)
        tensor.resize_(100).fill_(1.0)
    assert guard.hits() == ()


def test_a_hit_is_not_lost_when_its_tensor_grows():
    with Guard(POISON) as guard:
        tensor = torch.zeros(4)
        tensor.as_strided((1,), (1,), tensor.storage_offset() + 4).fill_(5)
        tensor.resize_(100)
    assert guard.hits() == ("float32[4] #0, after it",)


@pytest.mark.parametrize("name", FLOATS)
def test_small_floats_are_from_1_to_2_and_none_is_what_it_was(name):
    dtype = getattr(torch, name)
    small = torch.frombuffer(bytearray(poison_bytes(POISON, name, small=True)), dtype=dtype)
    values = small.double().abs()
    assert ((values >= 1) & (values < 2)).all()
    assert not (small.double() == pattern(name).double()).any()
    assert (small.double() < 0).any()


@pytest.mark.parametrize("name", ["int64", "int32", "int16", "int8", "uint8", "bool"])
def test_small_integers_are_none_of_those_that_they_stand_for(name):
    dtype = getattr(torch, name)
    small = torch.frombuffer(bytearray(poison_bytes(POISON, name, small=True)), dtype=dtype)
    assert not (small == pattern(name)).any()
    assert name == "uint8" or bool(((small >= 0) & (small <= 3)).all())


@pytest.mark.parametrize(("offset", "side"), [(4, "after"), (-1, "before"), (16000, "after")])
def test_a_write_outside_of_an_allocation_is_seen(offset, side):
    with Guard(POISON) as guard:
        tensor = torch.empty(4)
        tensor.as_strided((1,), (1,), tensor.storage_offset() + offset).zero_()
    assert guard.hits() == (f"float32[4] #0, {side} it",)


def test_a_write_inside_is_not_a_hit():
    with Guard(POISON) as guard:
        torch.empty(4).zero_()
    assert guard.hits() == ()


def test_hits_of_memory_that_was_let_go_early_are_kept():
    with Guard(POISON, most_bytes=100_000) as guard:
        tensor = torch.empty(4)
        tensor.as_strided((1,), (1,), tensor.storage_offset() + 4).zero_()
        for _ in range(3):
            torch.empty(4)
        assert guard.held_bytes <= 100_000
    assert guard.hits() == ("float32[4] #0, after it",)


def test_an_operator_that_calls_functions_is_called():
    with Guard(POISON):
        x = torch.cond(torch.tensor(True), lambda y: y + 1, lambda y: y - 1, (torch.ones(3),))
    assert x.tolist() == [2.0, 2.0, 2.0]


@pytest.mark.slow
def test_guards_do_not_import_dynamo():
    import subprocess
    import sys

    code = (
        "import sys, torch\nfrom kerneltruth.runner.child.guards import Guard\n"
        "with Guard(bytes(16)): torch.empty(3)\n"
        "sys.exit('torch._dynamo' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_numpy_empty_is_poisoned_only_inside():
    with numpy_poisoned(POISON):
        inside = np.empty((3, 4), dtype=np.float32)
        like = np.empty_like(np.zeros(5, dtype=np.int64))
    assert (np.isnan(inside) | (abs(inside) > 1e37)).all()
    assert (abs(like) > 2**60).all()
    assert np.empty.__module__ == "numpy"
