import numpy as np
import pytest
import torch

from kerneltruth.runner.guards import ALIGNMENT, Guard, numpy_poisoned, poison_bytes

POISON, OTHER = b"0123456789abcdef", b"fedcba9876543210"
FLOATS = ["float64", "float32", "float16", "bfloat16", "float8_e5m2", "float8_e4m3fn"]


def pattern(name, poison=POISON):
    dtype = getattr(torch, name)
    return torch.frombuffer(bytearray(poison_bytes(poison, dtype)), dtype=dtype)


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
    assert set(poison_bytes(POISON, torch.bool)) == {0, 1}


def test_the_pattern_is_the_same_for_the_same_poison_and_differs_for_another():
    assert poison_bytes(POISON, torch.float32) == poison_bytes(POISON, torch.float32)
    assert poison_bytes(POISON, torch.float32) != poison_bytes(OTHER, torch.float32)


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


@pytest.mark.parametrize("name", allocations())
def test_a_guarded_allocation_is_laid_out_as_asked_and_aligned(name):
    make = allocations()[name]
    plain = make()
    with Guard(POISON) as guard:
        guarded = make()
    assert guarded.shape == plain.shape
    assert guarded.stride() == plain.stride()
    assert guarded.dtype == plain.dtype
    assert guarded.data_ptr() % ALIGNMENT == 0
    assert guard.hits() == ()


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


def test_initialized_allocations_are_left_alone():
    with Guard(POISON):
        assert torch.zeros(3).tolist() == [0.0, 0.0, 0.0]
        assert torch.full((2,), 7).tolist() == [7, 7]


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


def test_hits_of_memory_that_was_let_go_early_are_kept(monkeypatch):
    monkeypatch.setattr("kerneltruth.runner.guards._HELD_BYTES", 100_000)
    with Guard(POISON) as guard:
        tensor = torch.empty(4)
        tensor.as_strided((1,), (1,), tensor.storage_offset() + 4).zero_()
        for _ in range(3):
            torch.empty(4)
        assert len(guard._held) == 1
    assert guard.hits() == ("float32[4] #0, after it",)


def test_guards_do_not_import_dynamo():
    import subprocess
    import sys

    code = (
        "import sys, torch\nfrom kerneltruth.runner.guards import Guard\n"
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
