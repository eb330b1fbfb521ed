"""Layouts: every one holds the same values, and every stray write is seen."""

import numpy as np
import pytest
import torch

from kerneltruth.cases.layouts import LAYOUTS, inspect, place, poison, strides_like
from kerneltruth.errors import InternalError

DTYPES = (
    "float64",
    "float32",
    "float16",
    "bfloat16",
    "float8_e4m3fn",
    "float8_e5m2",
    "int64",
    "int32",
    "int16",
    "int8",
    "uint8",
    "bool",
)
SHAPES = ((3, 5), (7,), (), (2, 3, 4), (0, 4), (1, 1), (6, 1))


def _tensor(shape, dtype="float32"):
    count = int(np.prod(shape))
    return torch.arange(count).remainder(100).reshape(shape).to(getattr(torch, dtype))


def _as_torch(placed):
    whole = torch.frombuffer(bytearray(placed.buffer), dtype=getattr(torch, placed.dtype))
    return whole.as_strided(placed.shape, placed.strides, placed.offset)


def _same_bits(a, b):
    flat = [t.flatten().clone(memory_format=torch.contiguous_format) for t in (a, b)]
    return a.shape == b.shape and torch.equal(*(f.view(torch.uint8) for f in flat))


def _changed(placed, byte):
    after = bytearray(placed.buffer)
    after[byte] ^= 0x55
    return inspect(placed, bytes(after))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_holds_the_values_it_was_given(layout, dtype):
    for shape in SHAPES:
        tensor = _tensor(shape, dtype)
        placed = place(tensor, layout, seed=3)
        assert _same_bits(_as_torch(placed), tensor)
        assert _same_bits(inspect(placed, placed.buffer).tensor, tensor)


@pytest.mark.parametrize(
    ("layout", "strides"),
    [
        ("contiguous", (15, 5, 1)),
        ("transposed", (15, 1, 3)),
        ("strided", (30, 10, 2)),
        ("row_gaps", (30, 10, 1)),
        ("offset", (15, 5, 1)),
        ("misaligned", (15, 5, 1)),
    ],
)
def test_layouts_have_their_strides(layout, strides):
    assert place(_tensor((2, 3, 5)), layout, seed=1).strides == strides


@pytest.mark.parametrize("dtype", DTYPES)
def test_only_the_misaligned_layout_is_off_16_bytes(dtype):
    itemsize = getattr(torch, dtype).itemsize
    starts = {
        layout: place(_tensor((2, 3), dtype), layout, seed=1).offset * itemsize
        for layout in LAYOUTS
    }
    assert starts["contiguous"] % 256 == 0
    assert starts["offset"] % 256 == 16
    assert starts.pop("misaligned") % 16 == itemsize % 16
    assert all(start % 16 == 0 for start in starts.values())


def test_a_vector_is_strided_where_a_matrix_would_be_transposed():
    assert place(_tensor((7,)), "transposed", seed=1).strides == (2,)
    assert place(_tensor((7,)), "row_gaps", seed=1).strides == (2,)


def test_expanded_takes_the_first_dim_along_which_nothing_varies():
    row = _tensor((1, 5)).expand(3, 5)
    assert place(row, "expanded", seed=1).strides == (0, 1)
    assert place(row.t(), "expanded", seed=1).strides == (1, 0)
    assert place(_tensor((3, 5)), "expanded", seed=1).strides == (5, 1)


def test_expanding_a_dim_that_varies_is_refused():
    with pytest.raises(InternalError, match="vary along dim 0"):
        place(_tensor((3, 5)), "expanded", seed=1, expand=0)


def test_a_write_before_or_behind_the_elements_is_a_broken_guard():
    placed = place(_tensor((3, 5)), "contiguous", seed=1)
    for byte in (0, 255, 256 + 60, len(placed.buffer) - 1):
        seen = _changed(placed, byte)
        assert (seen.guards_intact, seen.gaps_intact, seen.elements_intact) == (False, True, True)


@pytest.mark.parametrize(("layout", "gap"), [("strided", 1), ("row_gaps", 5)])
def test_a_write_between_elements_is_a_broken_gap(layout, gap):
    placed = place(_tensor((3, 5)), layout, seed=1)
    seen = _changed(placed, 4 * (placed.offset + gap))
    assert (seen.guards_intact, seen.gaps_intact, seen.elements_intact) == (True, False, True)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_write_to_an_element_is_a_changed_input(layout):
    placed = place(torch.ones(3, 5), layout, seed=1)
    seen = _changed(placed, 4 * placed.offset + 3)
    assert (seen.guards_intact, seen.gaps_intact, seen.elements_intact) == (True, True, False)
    assert seen.tensor[0, 0] != 1


def test_a_buffer_of_another_size_is_refused():
    placed = place(_tensor((3, 5)), "contiguous", seed=1)
    with pytest.raises(InternalError, match="came back with 4"):
        inspect(placed, placed.buffer[:4])


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_float_poison_is_nan_or_huge_of_either_sign(dtype):
    bits = poison(4000, dtype, seed=7)
    values = torch.from_numpy(bits.view(f"i{bits.itemsize}")).view(getattr(torch, dtype)).double()
    huge = values[~values.isnan()]
    assert 0.3 < values.isnan().double().mean() < 0.7
    assert huge.isfinite().all()
    assert huge.abs().min() > torch.finfo(getattr(torch, dtype)).max / 300
    assert huge.min() < 0 < huge.max()


def test_integer_poison_lies_at_the_ends_and_bool_poison_is_valid():
    assert set(np.abs(poison(500, "int8", 1).view(np.int8).astype(int)) >= 96) == {True}
    assert set(poison(500, "bool", 1).tolist()) == {0, 1}


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_small_poison_is_finite_of_either_sign_and_nowhere_what_it_was(dtype):
    small, wild = (poison(4000, dtype, seed=7, small=s) for s in (True, False))
    values = torch.from_numpy(small.view(f"i{small.itemsize}")).view(getattr(torch, dtype)).double()
    assert ((values.abs() >= 1) & (values.abs() < 2)).all()
    assert values.min() < 0 < values.max()
    assert not (small == wild).any()


@pytest.mark.parametrize("dtype", ["int64", "int8", "uint8", "bool"])
def test_small_poison_of_integers_is_near_zero_and_nowhere_what_it_was(dtype):
    small, wild = (poison(4000, dtype, seed=7, small=s) for s in (True, False))
    assert small.max() <= (67 if dtype == "uint8" else 3)
    assert not (small == wild).any()


def test_poison_is_fresh_for_each_seed_and_the_same_for_one():
    assert poison(64, "float32", 1).tobytes() != poison(64, "float32", 2).tobytes()
    assert poison(50_000, "float32", 1).tobytes() == poison(50_000, "float32", 1).tobytes()


def test_a_guard_that_would_break_alignment_is_refused():
    with pytest.raises(InternalError, match="multiple of 256"):
        place(_tensor((3,)), "contiguous", seed=1, guard_bytes=100)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int8", "bool"])
def test_the_ends_of_a_large_buffer_are_poisoned_as_those_of_a_small_one(dtype):
    tensor = torch.ones(300, 257).to(getattr(torch, dtype))
    assert place(tensor, "offset", seed=5) == place(tensor, "offset", seed=5, large=2**30)


def _example(tensor):
    return tuple(zip(tensor.shape, tensor.stride(), strict=True))


EXAMPLES = {
    "transposed": torch.empty(4, 6).T,
    "permuted": torch.empty(4, 6, 8).permute(1, 0, 2),
    "sliced": torch.empty(6, 12)[:, :4],
    "part of three": torch.empty(5, 3, 4)[:, 1],
    "every other": torch.empty(6, 8)[:, ::2],
    "channels last": torch.empty(2, 3, 4, 5).contiguous(memory_format=torch.channels_last),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_tensor_of_the_examples_size_has_its_strides(name):
    example = EXAMPLES[name]
    assert strides_like(tuple(example.shape), _example(example)) == example.stride()


@pytest.mark.parametrize(
    ("name", "shape", "strides"),
    [
        ("transposed", (10, 3), (1, 10)),
        ("permuted", (7, 5, 3), (3, 21, 1)),
        ("sliced", (2, 10), (30, 1)),
        ("part of three", (9, 7), (21, 1)),
        ("every other", (3, 5), (10, 2)),
        ("channels last", (3, 2, 7, 7), (98, 1, 14, 2)),
    ],
)
def test_a_tensor_of_another_size_has_the_examples_order_and_gaps(name, shape, strides):
    assert strides_like(shape, _example(EXAMPLES[name])) == strides


@pytest.mark.parametrize(
    "example",
    [
        torch.empty(4, 6),
        torch.empty(1, 6).T,
        torch.empty(10).unfold(0, 3, 1),
        torch.empty(6, 4096)[:, :2],
    ],
)
def test_what_is_contiguous_overlaps_or_has_vast_gaps_has_no_strides_of_its_own(example):
    assert strides_like(tuple(example.shape), _example(example)) == ()


def test_no_strides_are_made_up_without_an_example_or_elements():
    assert strides_like((3, 4), ()) == ()
    assert strides_like((0, 4), _example(EXAMPLES["transposed"])) == ()
