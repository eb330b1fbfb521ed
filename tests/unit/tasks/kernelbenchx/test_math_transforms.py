"""Transforms against their definitions and NumPy; the claims about binomial counts."""

import cmath
import math

import numpy as np
import pytest
import torch

from kerneltruth.tasks.claims import Evidence
from kerneltruth.tasks.kernelbenchx.math_transforms import TASKS as DECLARED

TASKS = {t.name: t for t in DECLARED}


@pytest.fixture
def generator():
    return torch.Generator().manual_seed(11)


def draw(generator, *shape):
    return torch.randn(shape, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("size", [1, 2, 7, 12])
def test_a_transformed_line_is_the_sum_of_its_definition(size, generator):
    x = draw(generator, size)
    got = TASKS["fftn"].reference(x, None, None, None)
    want = [
        sum(v * cmath.exp(-2j * math.pi * i * k / size) for i, v in enumerate(x.tolist()))
        for k in range(size)
    ]
    torch.testing.assert_close(got, torch.tensor(want, dtype=torch.complex128))


@pytest.mark.parametrize("norm", [None, "ortho", "forward", "backward"])
@pytest.mark.parametrize(
    ("s", "dim"), [(None, None), ((8, 6), None), ((5, 12), (0, 1)), (None, (0,)), (None, (-2, -1))]
)
def test_fftn_is_that_of_numpy(s, dim, norm, generator):
    x = draw(generator, 2, 5, 9)
    got = TASKS["fftn"].reference(x, s, dim, norm)
    axes = tuple(range(-len(s), 0)) if s and dim is None else dim
    want = np.fft.fftn(x.numpy(), s, axes, norm)
    torch.testing.assert_close(got, torch.from_numpy(want))


@pytest.mark.parametrize("dim", [None, -1, 0, (0, 1), (-2,)])
def test_ifftshift_undoes_a_shift_of_odd_and_even_sizes(dim, generator):
    x = draw(generator, 4, 7)
    axes = dim if dim is not None else (0, 1)
    shifted = torch.from_numpy(np.fft.fftshift(x.numpy(), axes))
    assert torch.equal(TASKS["ifftshift"].reference(shifted, dim), x)


@pytest.mark.parametrize("dim", [-1, 0, 1, -2])
def test_softmax_is_the_share_of_each_exponential(dim, generator):
    x = draw(generator, 3, 4, 5)
    got = TASKS["softmax"].reference(x, dim)
    weights = np.exp(x.numpy())
    want = weights / weights.sum(axis=dim, keepdims=True)
    torch.testing.assert_close(got, torch.from_numpy(want))


def broken(counts, trials, chance):
    """The claims that counts break."""
    task = TASKS["bitwise_and_binomial"]
    evidence = Evidence(
        inputs={"total_count": trials, "probs": chance.double(), "input": None, "other": None},
        scalars={},
        outputs=(counts,),
        reference=(trials * chance,),
        dtype="float32",
        eps=2.0**-23,
    )
    return [claim.name for claim in task.claims(evidence) if not claim.holds]


@pytest.fixture
def game(generator):
    """Trials, chances and counts that are drawn trial by trial."""
    trials = torch.randint(0, 33, (16, 64), generator=generator)
    chance = torch.rand(16, 64, generator=generator)
    rounds = torch.rand(32, 16, 64, generator=generator) < chance
    counts = (rounds & (torch.arange(32).reshape(-1, 1, 1) < trials)).sum(0).float()
    return trials, chance, counts


def test_counts_drawn_trial_by_trial_keep_every_claim(game):
    trials, chance, counts = game
    assert broken(counts, trials, chance) == []


def test_means_in_place_of_draws_are_found(game):
    trials, chance, _ = game
    found = broken((trials * chance).round(), trials, chance)
    assert found == ["surplus of counts near their mean"]


def test_one_number_for_every_element_is_found(game, generator):
    trials, chance, _ = game
    rounds = torch.rand(32, 1, 1, generator=generator) < chance
    counts = (rounds & (torch.arange(32).reshape(-1, 1, 1) < trials)).sum(0).float()
    assert broken(counts, trials, chance) != []


def test_a_forgotten_last_tile_is_found(game):
    trials, chance, counts = game
    counts.reshape(-1)[-16:] = 0
    assert any(name.startswith("excess") for name in broken(counts, trials, chance))


def test_half_the_chance_is_found(game, generator):
    trials, chance, _ = game
    rounds = torch.rand(32, 16, 64, generator=generator) < chance / 2
    counts = (rounds & (torch.arange(32).reshape(-1, 1, 1) < trials)).sum(0).float()
    assert any(name.startswith("excess") for name in broken(counts, trials, chance))


@pytest.mark.parametrize("wrong", [0.5, -1.0, 33.0, math.nan])
def test_an_impossible_count_is_found(game, wrong):
    trials, chance, counts = game
    counts[3, 4] = wrong
    assert "counts outside of what is possible" in broken(counts, trials, chance)


@pytest.mark.parametrize(("chance", "count"), [(0.0, 1.0), (1.0, 2.0)])
def test_certain_outcomes_are_certain(chance, count):
    trials = torch.full((4,), 3)
    certain = torch.full((4,), chance)
    right = torch.full((4,), 3.0 * chance)
    assert broken(right, trials, certain) == []
    right[1] = count
    assert broken(right, trials, certain) == ["counts outside of what is possible"]


def test_no_count_at_all_breaks_nothing():
    nothing = torch.empty(0)
    assert broken(nothing, nothing.long(), nothing) == []
