"""Adaptive pooling and batch norm, fused with what follows, against loops."""

import math

import numpy as np
import pytest
import torch
from scipy.special import expit

from kerneltruth.tasks.kernelbenchx.fusion_z_pooling import TASKS as DECLARED

TASKS = {t.name: t for t in DECLARED}
DRAW = np.random.default_rng(13)


def pooled(x, rows, columns):
    """Adaptive means by their definition."""
    height, width = x.shape[-2:]
    out = np.zeros((*x.shape[:-2], rows, columns))
    for i in range(rows):
        for j in range(columns):
            down = slice(i * height // rows, math.ceil((i + 1) * height / rows))
            across = slice(j * width // columns, math.ceil((j + 1) * width / columns))
            out[..., i, j] = x[..., down, across].mean(axis=(-2, -1))
    return out


@pytest.mark.parametrize(("size", "rows", "columns"), [(3, 3, 3), ((2, 7), 2, 7), ((1, 1), 1, 1)])
def test_sigmoid_of_the_pooled_means(size, rows, columns):
    x = DRAW.normal(size=(2, 3, 7, 5))
    result = TASKS["fused_sigmoid_adaptive_avg_pool2d"].reference(
        input=torch.tensor(x), output_size=size
    )
    np.testing.assert_allclose(result.numpy(), expit(pooled(x, rows, columns)), rtol=1e-12)


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0])
def test_a_distance_is_over_the_whole_pooled_image(p):
    one, other = DRAW.normal(size=(2, 2, 3, 7, 5))
    gaps = np.abs(pooled(one, 3, 2) - pooled(other, 3, 2)).reshape(2, -1)
    expected = (gaps**p).sum(1) ** (1 / p) + 0.5
    result = TASKS["fused_pairwise_distance_adaptive_avg_pool2d"].reference(
        x1=torch.tensor(one),
        x2=torch.tensor(other),
        output_size=(3, 2),
        p=p,
        eps=0.5,
        keepdim=True,
    )
    assert result.shape == (2, 1, 1, 1)
    np.testing.assert_allclose(result.numpy().reshape(2), expected, rtol=1e-12)


@pytest.mark.parametrize("training", [False, True])
def test_batch_norm_goes_over_all_dims_but_the_channels(training):
    x, mean, weight, bias = DRAW.normal(size=(4, 3, 5)), *DRAW.normal(size=(3, 3))
    var = DRAW.uniform(0.5, 2, size=3)
    used_mean, used_var = (x.mean((0, 2)), x.var((0, 2))) if training else (mean, var)
    shape = (1, 3, 1)
    normalized = (x - used_mean.reshape(shape)) / np.sqrt(used_var.reshape(shape) + 0.25)
    expected = expit(normalized * weight.reshape(shape) + bias.reshape(shape))
    outputs = TASKS["fused_sigmoid_batch_norm"].reference(
        input=torch.tensor(x),
        running_mean=torch.tensor(mean),
        running_var=torch.tensor(var),
        weight=torch.tensor(weight),
        bias=torch.tensor(bias),
        training=training,
        momentum=0.5,
        eps=0.25,
    )
    np.testing.assert_allclose(outputs[0].numpy(), expected, rtol=1e-12)
    assert len(outputs) == (3 if training else 1)
    if training:
        np.testing.assert_allclose(outputs[1].numpy(), (mean + x.mean((0, 2))) / 2, rtol=1e-12)
        unbiased = x.var((0, 2), ddof=1)
        np.testing.assert_allclose(outputs[2].numpy(), (var + unbiased) / 2, rtol=1e-12)
