"""Random bits: published answers, independence of how they are drawn, exact distributions."""

import pytest
import torch

from kerneltruth.cases.philox import Stream, derive, philox4x32, philox4x32_numpy, stream
from kerneltruth.errors import InternalError

KNOWN_ANSWERS = [
    (
        "00000000 00000000 00000000 00000000",
        "00000000 00000000",
        "6627e8d5 e169c58d bc57ac4c 9b00dbd8",
    ),
    (
        "ffffffff ffffffff ffffffff ffffffff",
        "ffffffff ffffffff",
        "408f276d 41c83b0e a20bc7c6 6d5451fd",
    ),
    (
        "243f6a88 85a308d3 13198a2e 03707344",
        "a4093822 299f31d0",
        "d16cfe09 94fdcceb 5001e420 24126ea1",
    ),
]


def _words(text):
    return [int(word, 16) for word in text.split()]


@pytest.mark.parametrize(("counter", "key", "output"), KNOWN_ANSWERS)
def test_philox_gives_the_published_known_answers(counter, key, output):
    block = torch.tensor(_words(counter), dtype=torch.int64).unsqueeze(1)
    assert philox4x32(block, tuple(_words(key))).squeeze(1).tolist() == _words(output)


def test_many_counters_give_what_each_gives_alone():
    counters = torch.tensor([_words(c) for c, _, _ in KNOWN_ANSWERS], dtype=torch.int64).t()
    together = philox4x32(counters, (7, 9))
    for i in range(3):
        assert torch.equal(together[:, i : i + 1], philox4x32(counters[:, i : i + 1], (7, 9)))


def test_a_stream_starts_with_the_block_of_counter_zero():
    assert Stream(0).words(4).tolist() == _words(KNOWN_ANSWERS[0][2])


def test_a_long_draw_begins_with_the_short_one():
    assert torch.equal(stream(5, "a").words(100_003)[:37], stream(5, "a").words(37))


def test_two_draws_of_whole_blocks_equal_one_long_draw():
    twice = stream(5, "a")
    assert torch.equal(
        torch.cat((twice.words(40_000), twice.words(8))), stream(5, "a").words(40_008)
    )


def test_a_counter_beyond_32_bits_carries_into_the_second_word():
    far = Stream(0, counter=2**32 - 1)
    counter = torch.tensor([[2**32 - 1, 0], [0, 1], [0, 0], [0, 0]], dtype=torch.int64)
    assert torch.equal(far.words(8), philox4x32(counter, (0, 0)).t().reshape(-1))


def test_purposes_are_told_apart_by_their_words_not_their_letters():
    assert (
        len({derive(1, "ab", "c"), derive(1, "a", "bc"), derive(1, "abc"), derive(2, "abc")}) == 4
    )


def test_the_derived_seed_is_fixed_for_good():
    assert derive(0) == 0xDD35217B3E2875F5
    assert derive(42, "values", "x") == 0x263F53C35FF59BB3


def test_a_seed_beyond_64_bits_is_refused():
    with pytest.raises(InternalError, match=r"18446744073709551616"):
        derive(2**64)


def test_uniform_values_survive_float32():
    values = stream(3, "u").uniform(10_000)
    assert torch.equal(values.float().double(), values)
    assert values.min() >= 0
    assert values.max() < 1
    assert abs(values.mean().item() - 0.5) < 0.01


def test_normal_values_have_mean_zero_and_unit_variance():
    values = stream(3, "n").normal(50_000)
    assert abs(values.mean().item()) < 0.02
    assert abs(values.var().item() - 1) < 0.02
    assert abs((values**4).mean().item() - 2.85) < 0.1


def test_integers_reach_both_ends_and_nothing_else():
    assert set(stream(3, "i").integers(500, -2, 3).tolist()) == {-2, -1, 0, 1, 2}


def test_integers_cover_a_span_wider_than_a_word():
    values = stream(3, "i").integers(1000, -(2**63), 2**63)
    assert values.min() < -(2**62)
    assert values.max() > 2**62
    wide = stream(3, "i").integers(1000, -5, 2**40)
    assert wide.min() >= -5
    assert wide.max() < 2**40
    assert wide.max() > 2**39


def test_an_empty_draw_is_empty():
    assert stream(1, "x").words(0).shape == (0,)


def test_an_empty_range_is_refused():
    with pytest.raises(InternalError, match="no integer"):
        stream(1, "x").integers(1, 4, 4)


@pytest.mark.gpu
def test_words_are_the_same_on_cuda():
    host, device = stream(9, "w").words(50_001), stream(9, "w", device="cuda").words(50_001)
    assert torch.equal(host, device.cpu())
    assert torch.equal(stream(9, "n").normal(999), stream(9, "n", device="cuda").normal(999).cpu())


@pytest.mark.parametrize("first", [0, 5, 2**32 - 3])
def test_the_numpy_rounds_give_the_words_of_the_torch_rounds(first):
    position = torch.arange(first, first + 9, dtype=torch.int64)
    counter = torch.zeros((4, 9), dtype=torch.int64)
    counter[0], counter[1] = position & 0xFFFFFFFF, position >> 32
    key = (0x243F6A88, 0xFFFFFFFF)
    ours = torch.from_numpy(philox4x32_numpy(first, 9, key))
    assert torch.equal(ours.t(), philox4x32(counter, key))
