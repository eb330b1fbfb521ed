"""Simulated: the intervals cover what they claim, and outcomes are as often right as stated.

A simulated share may fall short of the true one by three standard errors before a test fails.
"""

import math

import numpy as np
import pytest

from kerneltruth.clock.statistics.summary import (
    Block,
    Interval,
    enough,
    noise_floor,
    outcome,
    ratio_interval,
    slope,
    time_interval,
)

pytestmark = pytest.mark.sweep

TRIALS = 1000


def least(share, trials):
    """What a simulated share must reach if the true one is `share`."""
    return share - 3 * math.sqrt(share * (1 - share) / trials)


def calm(rng, shape):
    return rng.normal(0, 0.01, shape)


def spikes(rng, shape):
    """One side of 5% of the blocks is disturbed, by a lognormal factor of 14% in the middle."""
    hit = rng.random(shape[:2]) < 0.05
    size = hit * rng.lognormal(-2, 1, shape[:2])
    on_baseline = rng.random(shape[:2]) < 0.5
    sides = np.stack([~on_baseline, on_baseline, on_baseline, ~on_baseline], axis=-1)
    return rng.normal(0, 0.01, shape) + size[..., None] * sides


def drift(rng, shape):
    """AR(1) drift of 6% that both sides share, call after call, and noise of each call."""
    steps = rng.normal(0, 0.02, (shape[0], shape[1] * shape[2]))
    walk = np.zeros_like(steps)
    walk[:, 0] = steps[:, 0] / math.sqrt(1 - 0.95**2)
    for i in range(1, steps.shape[1]):
        walk[:, i] = 0.95 * walk[:, i - 1] + steps[:, i]
    return walk.reshape(shape) + rng.normal(0, 0.01, shape)


def heavy(rng, shape):
    return 0.01 * rng.standard_t(2, shape)


def ticks(rng, shape):
    """Times of 100 ticks of the timer."""
    return np.log(np.round(100 * np.exp(rng.normal(0, 0.01, shape))) / 100)


NOISES = [calm, spikes, drift, heavy, ticks]


def experiments(noise, *, blocks, trials=TRIALS, log_ratio=0.0, seed=0):
    """Lists of blocks: A B B A of 50 us, with the baseline slower by that log ratio."""
    rng = np.random.default_rng(seed)
    times = 50e-6 * np.exp(noise(rng, (trials, blocks, 4)))
    times[..., 1:3] *= math.exp(log_ratio)
    return [
        [Block(candidate_s=(a, d), baseline_s=(b, c)) for a, b, c, d in one]
        for one in times.tolist()
    ]


def covers(interval: Interval, ratio: float) -> bool:
    # A rounding error beside the end of an interval of ticks is no miss.
    return interval.low <= ratio * (1 + 1e-12) and interval.high >= ratio * (1 - 1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("blocks", [3, 6, 8, 12, 40])
def test_the_interval_of_the_ratio_covers_it(noise, blocks):
    hits = [
        covers(ratio_interval(one), 1.25)
        for one in experiments(noise, blocks=blocks, log_ratio=math.log(1.25))
    ]
    assert np.mean(hits) >= least(0.95, TRIALS)


@pytest.mark.slow
@pytest.mark.parametrize("noise", [calm, spikes, drift])
def test_a_percentile_bootstrap_of_eight_blocks_would_not(noise):
    rng = np.random.default_rng(10)
    hits = 0
    for one in experiments(noise, blocks=8):
        logs = np.array([block.log_ratio for block in one])
        medians = np.median(logs[rng.integers(0, 8, (400, 8))], axis=1)
        low, high = np.quantile(medians, [0.025, 0.975])
        hits += low <= 0 <= high
    assert 0.88 < hits / TRIALS < 0.94


@pytest.mark.slow
@pytest.mark.parametrize("noise", [calm, spikes])
@pytest.mark.parametrize("precision", [0.004, 0.006, 0.008])
@pytest.mark.parametrize("fewest", [6, 8])
def test_it_still_does_when_its_width_ended_the_measurement(noise, precision, fewest):
    trials = 300
    hits, counts = [], []
    for one in experiments(noise, blocks=60, trials=trials, seed=1):
        narrow = (
            n for n in range(fewest, 60) if enough(one[:n], precision=precision, least=fewest)
        )
        n = next(narrow, 60)
        hits.append(covers(ratio_interval(one[:n]), 1))
        counts.append(n)
    assert np.mean(hits) >= least(0.95, trials)
    assert min(counts) < 60


def test_without_the_reserve_for_stopping_it_would_not():
    # The same data judged at the level itself, as if the number of blocks had been settled before.
    trials, hits = 600, 0
    level = 1 - 0.05 / 0.625
    for one in experiments(calm, blocks=40, trials=trials, seed=2):
        n = next((n for n in range(8, 40) if enough(one[:n], precision=0.005, level=level)), 40)
        hits += covers(ratio_interval(one[:n], level=level), 1)
    assert hits / trials < 0.95


def test_the_interval_is_as_narrow_as_the_noise_allows():
    # Normal noise: Student's t interval of the mean at the same error is the shortest there is.
    from scipy import stats

    found = [ratio_interval(one).half_width for one in experiments(calm, blocks=40, trials=200)]
    best = stats.t.ppf(1 - 0.05 * 0.625 / 2, 39) * 0.01 / math.sqrt(40)
    assert np.median(found) < 1.06 * best


def test_a_planted_two_percent_is_called_and_never_the_wrong_way():
    # 0.2% of noise per call, 10 blocks: half-widths near 0.15%.
    trials = 500
    slower = experiments(
        lambda rng, shape: rng.normal(0, 0.002, shape),
        blocks=10,
        trials=trials,
        log_ratio=-math.log(1.02),
    )
    said = [outcome(ratio_interval(one)) for one in slower]
    assert said.count("slower") >= 0.95 * trials
    assert said.count("faster") == 0


def test_two_percent_is_called_at_half_widths_of_half_a_percent():
    trials = 600
    said = []
    for one in experiments(calm, blocks=60, trials=trials, log_ratio=-math.log(1.02), seed=4):
        n = next(n for n in range(8, 61) if n == 60 or enough(one[:n], precision=0.0045))
        said.append(outcome(ratio_interval(one[:n])))
    assert said.count("slower") / trials >= least(0.95, trials)
    assert said.count("faster") == 0


@pytest.mark.parametrize("noise", NOISES)
def test_a_kernel_against_itself_is_a_tie(noise):
    said = [outcome(ratio_interval(one)) for one in experiments(noise, blocks=12, seed=5)]
    assert said.count("tie") / TRIALS >= least(0.95, TRIALS)


def test_a_difference_of_the_minimum_is_rarely_called_more():
    trials = 600
    said = [
        outcome(ratio_interval(one))
        for one in experiments(calm, blocks=20, trials=trials, log_ratio=math.log(1.01), seed=6)
    ]
    assert said.count("faster") / trials <= 0.025 + 3 * math.sqrt(0.025 / trials)


@pytest.mark.parametrize(("pairs", "claimed"), [(6, 0.95), (19, 0.95), (60, 0.95)])
def test_a_noise_floor_lets_the_next_null_pair_hold_one(pairs, claimed):
    # Processes differ by 0.5% that no block can see; blocks say plus or minus 0.3%.
    rng = np.random.default_rng(7)
    trials, hits = 600, 0
    for _ in range(trials):
        estimates = np.exp(rng.normal(0, 0.005, pairs + 1) + rng.normal(0, 0.0015, pairs + 1))
        null = [Interval(estimate=e, low=e / 1.003, high=e * 1.003) for e in estimates.tolist()]
        hits += covers(null[-1].widened(noise_floor(null[:-1])), 1)
    assert hits / trials >= least(claimed, trials)


def null_pairs(scatters, blocks):
    """Copies of kernels whose ratios differ by a quarter of what a block scatters, and by 0.1%."""
    rng = np.random.default_rng(8)
    for scatter in scatters:
        between = rng.normal(0, math.hypot(0.001, scatter / 4))
        logs = between + rng.normal(0, scatter, blocks)
        yield [Block(candidate_s=(1e-5,), baseline_s=(1e-5 * math.exp(x),)) for x in logs]


@pytest.mark.parametrize("blocks", [8, 12, 40])
@pytest.mark.parametrize(("low", "high"), [(0.001, 0.006), (0.006, 0.03)])
def test_processes_that_differ_as_their_blocks_scatter_still_hold_one(low, high, blocks):
    trials = 400
    pairs = null_pairs(np.geomspace(low, high, trials), blocks)
    hits = [covers(ratio_interval(one, noise_floor=0.003), 1) for one in pairs]
    assert np.mean(hits) >= least(0.95, trials)


def test_with_the_same_noise_for_all_kernels_they_would_not():
    trials = 400
    pairs = null_pairs(np.geomspace(0.006, 0.03, trials), 40)
    hits = [covers(ratio_interval(one).widened(0.003), 1) for one in pairs]
    assert np.mean(hits) < 0.9


@pytest.mark.parametrize("times", [4, 12, 101])
def test_the_interval_of_the_median_time_covers_it(times):
    rng = np.random.default_rng(8)
    draws = 1e-5 * rng.lognormal(0, 0.05, (TRIALS, times))
    hits = [covers(time_interval(one), 1e-5) for one in draws.tolist()]
    assert np.mean(hits) >= least(0.95, TRIALS)


@pytest.mark.parametrize("batches", [8, 20])
def test_the_interval_of_the_slope_covers_it(batches):
    rng = np.random.default_rng(9)
    trials, hits = 400, 0
    for _ in range(trials):
        counts = rng.integers(20, 400, batches)
        late = rng.lognormal(-8, 1, batches) * (rng.random(batches) < 0.1)
        line = slope(
            counts.tolist(), (1e-3 + 5e-5 * counts + rng.normal(0, 2e-5, batches) + late).tolist()
        )
        hits += line.low <= 5e-5 <= line.high
    assert hits / trials >= least(0.95, trials)
