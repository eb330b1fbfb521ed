"""Convolutions and what follows them against loops."""

import numpy as np
import pytest
import torch

from kerneltruth.tasks.kernelbenchx.fusion_z_convolution import TASKS as DECLARED

TASKS = {t.name: t for t in DECLARED}
DRAW = np.random.default_rng(17)
X, W, B = DRAW.normal(size=(2, 4, 7, 6)), DRAW.normal(size=(6, 2, 3, 2)), DRAW.normal(size=6)
LAYER = {"stride": (1, 2), "padding": (2, 0), "dilation": 2, "groups": 2}


def convolved(x, weight, bias, stride, padding, dilation, groups):
    """The convolution by its definition; padding and stride are pairs."""
    padded = np.pad(x, ((0, 0), (0, 0), (padding[0],) * 2, (padding[1],) * 2))
    count, per_group, kh, kw = weight.shape
    rows = (padded.shape[2] - dilation * (kh - 1) - 1) // stride[0] + 1
    columns = (padded.shape[3] - dilation * (kw - 1) - 1) // stride[1] + 1
    out = np.zeros((x.shape[0], count, rows, columns))
    for o, i, j in np.ndindex(count, rows, columns):
        first = o // (count // groups) * per_group
        top, left = i * stride[0], j * stride[1]
        window = padded[
            :,
            first : first + per_group,
            top : top + dilation * (kh - 1) + 1 : dilation,
            left : left + dilation * (kw - 1) + 1 : dilation,
        ]
        out[:, o, i, j] = (window * weight[o]).sum((1, 2, 3)) + bias[o]
    return out


CONV = convolved(X, W, B, **LAYER)


def tensors():
    return {"input": torch.tensor(X), "weight": torch.tensor(W), "bias": torch.tensor(B)}


def prefixed():
    return {f"conv_{name}": value for name, value in LAYER.items()}


def assert_close(result, expected):
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-11, atol=1e-13)


def test_relu_of_the_convolution():
    result = TASKS["fused_relu_conv2d"].reference(**tensors(), **LAYER, inplace=False)
    assert_close(result, np.maximum(CONV, 0))


def test_leaky_relu_of_the_convolution():
    result = TASKS["fused_leaky_relu_conv2d"].reference(
        **tensors(), **LAYER, negative_slope=0.25, inplace=True
    )
    assert_close(result, np.where(CONV > 0, CONV, 0.25 * CONV))


def test_pixel_shuffle_spreads_channels_over_rows_and_columns():
    weight, bias = DRAW.normal(size=(8, 4, 1, 1)), np.zeros(8)
    conv = convolved(X, weight, bias, (1, 1), (0, 0), 1, 1)
    expected = np.zeros((2, 2, 14, 12))
    for c, h, w, i, j in np.ndindex(2, 7, 6, 2, 2):
        expected[:, c, 2 * h + i, 2 * w + j] = conv[:, 4 * c + 2 * i + j, h, w]
    result = TASKS["fused_pixel_shuffle_conv2d"].reference(
        input=torch.tensor(X),
        weight=torch.tensor(weight),
        bias=None,
        stride=1,
        padding=0,
        dilation=1,
        groups=1,
        upscale_factor=2,
    )
    assert_close(result, expected)


@pytest.mark.parametrize("training", [False, True])
def test_batch_norm_stands_between_convolution_and_relu(training):
    mean, var, gain, shift = DRAW.normal(size=6), DRAW.uniform(0.5, 2, 6), *DRAW.normal(size=(2, 6))
    axes, shape = (0, 2, 3), (1, 6, 1, 1)
    used_mean, used_var = (CONV.mean(axes), CONV.var(axes)) if training else (mean, var)
    normalized = (CONV - used_mean.reshape(shape)) / np.sqrt(used_var.reshape(shape) + 0.25)
    expected = np.maximum(normalized * gain.reshape(shape) + shift.reshape(shape), 0)
    outputs = TASKS["fused_relu_batch_norm_conv2d"].reference(
        **tensors(),
        **LAYER,
        running_mean=torch.tensor(mean),
        running_var=torch.tensor(var),
        bn_weight=torch.tensor(gain),
        bn_bias=torch.tensor(shift),
        training=training,
        momentum=0.1,
        eps=0.25,
        inplace=False,
    )
    assert_close(outputs[0], expected)
    assert len(outputs) == (3 if training else 1)
    if training:
        assert_close(outputs[1], 0.9 * mean + 0.1 * CONV.mean(axes))
        assert_close(outputs[2], 0.9 * var + 0.1 * CONV.var(axes, ddof=1))


def test_the_pool_takes_the_largest_of_dilated_windows():
    padded = np.pad(CONV, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=-np.inf)
    expected = np.zeros((*CONV.shape[:2], padded.shape[2] - 2, padded.shape[3] - 2))
    for i, j in np.ndindex(*expected.shape[2:]):
        expected[..., i, j] = padded[..., i : i + 3 : 2, j : j + 3 : 2].max((2, 3))
    result = TASKS["fused_relu_max_pool2d_conv2d"].reference(
        **tensors(),
        **prefixed(),
        pool_kernel_size=2,
        pool_stride=1,
        pool_padding=1,
        pool_dilation=2,
        pool_ceil_mode=False,
        inplace=False,
    )
    assert_close(result, np.maximum(expected, 0))


def test_layer_norm_goes_over_channels_rows_and_columns():
    axes = (1, 2, 3)
    centered = CONV - CONV.mean(axes, keepdims=True)
    normalized = centered / np.sqrt((centered**2).mean(axes, keepdims=True) + 0.25)
    result = TASKS["fused_silu_layer_norm_conv2d"].reference(
        x=torch.tensor(X),
        weight=None,
        conv_weight=torch.tensor(W),
        conv_bias=torch.tensor(B),
        **prefixed(),
        ln_eps=0.25,
    )
    assert_close(result, normalized / (1 + np.exp(-normalized)))
