"""Convolutions against loops over every product."""

import itertools

import pytest
import torch

from kerneltruth.tasks.kernelbenchx.convolution import TASKS as DECLARED

TASKS = {t.name: t for t in DECLARED}


def conv2d(x, w, bias, stride, padding, dilation, groups):
    n, c, height, width = x.shape
    o, _, p, q = w.shape
    rows = (height + 2 * padding - dilation * (p - 1) - 1) // stride + 1
    columns = (width + 2 * padding - dilation * (q - 1) - 1) // stride + 1
    out = torch.zeros(n, o, rows, columns, dtype=torch.float64)
    for b, k, i, j in itertools.product(*map(range, out.shape)):
        total = 0.0 if bias is None else float(bias[k])
        first = k // (o // groups) * (c // groups)
        for d, r, s in itertools.product(range(c // groups), range(p), range(q)):
            y = i * stride - padding + r * dilation
            z = j * stride - padding + s * dilation
            if 0 <= y < height and 0 <= z < width:
                total += float(x[b, first + d, y, z] * w[k, d, r, s])
        out[b, k, i, j] = total
    return out


def conv_transpose2d(x, w, bias, stride, padding, output_padding, groups, dilation):
    n, c, height, width = x.shape
    _, o, p, q = w.shape
    rows = (height - 1) * stride - 2 * padding + dilation * (p - 1) + output_padding + 1
    columns = (width - 1) * stride - 2 * padding + dilation * (q - 1) + output_padding + 1
    out = torch.zeros(n, o * groups, rows, columns, dtype=torch.float64)
    if bias is not None:
        out += bias.reshape(1, -1, 1, 1)
    for b, d, i, j in itertools.product(*map(range, x.shape)):
        for k, r, s in itertools.product(range(o), range(p), range(q)):
            y = i * stride - padding + r * dilation
            z = j * stride - padding + s * dilation
            if 0 <= y < rows and 0 <= z < columns:
                out[b, d // (c // groups) * o + k, y, z] += x[b, d, i, j] * w[d, k, r, s]
    return out


@pytest.fixture
def generator():
    return torch.Generator().manual_seed(0)


def normal(generator, *shape):
    return torch.randn(shape, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize(
    ("stride", "padding", "dilation", "groups"),
    [(1, 0, 1, 1), (2, 1, 1, 1), (1, 2, 2, 2), (3, 1, 2, 1)],
)
def test_conv2d_is_a_sum_over_windows(generator, stride, padding, dilation, groups):
    x, w = normal(generator, 2, 4, 6, 5), normal(generator, 2, 4 // groups, 3, 2)
    bias = normal(generator, 2) if stride == 2 else None
    got = TASKS["conv2d"].reference(
        input=x,
        weight=w,
        bias=bias,
        stride=stride,
        padding=padding,
        dilation=dilation,
        groups=groups,
    )
    torch.testing.assert_close(got, conv2d(x, w, bias, stride, padding, dilation, groups))


def test_same_padding_keeps_the_size(generator):
    x, w = normal(generator, 1, 1, 5, 6), normal(generator, 1, 1, 3, 3)
    got = TASKS["conv2d"].reference(
        input=x, weight=w, bias=None, stride=1, padding="same", dilation=1, groups=1
    )
    torch.testing.assert_close(got, conv2d(x, w, None, 1, 1, 1, 1))


@pytest.mark.parametrize(
    ("stride", "padding", "output_padding", "groups", "dilation"),
    [(1, 0, 0, 1, 1), (2, 1, 1, 1, 1), (3, 2, 0, 2, 1), (2, 0, 1, 2, 2)],
)
def test_a_transposed_convolution_spreads_each_element(
    generator, stride, padding, output_padding, groups, dilation
):
    x, w = normal(generator, 2, 2, 3, 4), normal(generator, 2, 2, 3, 2)
    bias = normal(generator, 2 * groups) if padding else None
    options = (stride, padding, output_padding, groups, dilation)
    names = ("stride", "padding", "output_padding", "groups", "dilation")
    got = TASKS["conv_transpose2d"].reference(
        input=x, weight=w, bias=bias, **dict(zip(names, options, strict=True))
    )
    torch.testing.assert_close(got, conv_transpose2d(x, w, bias, *options))
