"""Averages against loops over the windows."""

import math

import pytest
import torch

from kerneltruth.tasks.kernelbenchx.pooling import TASKS as DECLARED

TASKS = {t.name: t for t in DECLARED}


@pytest.mark.parametrize(
    ("kernel_size", "stride", "padding"), [(3, None, 0), (2, 1, 1), (5, 7, 2), (4, 2, 2)]
)
def test_padding_counts_in_the_mean_of_a_window(kernel_size, stride, padding):
    row = [float(i * i) for i in range(13)]
    step = stride or kernel_size
    padded = [0.0] * padding + row + [0.0] * padding
    starts = range(0, len(padded) - kernel_size + 1, step)
    want = [sum(padded[s : s + kernel_size]) / kernel_size for s in starts]
    got = TASKS["avg_pool1d"].reference(
        input=torch.tensor([row], dtype=torch.float64),
        kernel_size=kernel_size,
        stride=stride,
        padding=padding,
    )
    torch.testing.assert_close(got, torch.tensor([want], dtype=torch.float64))


@pytest.mark.parametrize(
    ("output_size", "grid"), [((3, 4), (3, 4)), (2, (2, 2)), ((None, 7), (5, 7))]
)
def test_adaptive_windows_go_from_floor_to_ceiling(output_size, grid):
    image = torch.arange(30.0, dtype=torch.float64).reshape(1, 5, 6) ** 2

    def windows(size, count):
        return [range(i * size // count, math.ceil((i + 1) * size / count)) for i in range(count)]

    want = [
        [
            sum(float(image[0, i, j]) for i in rows for j in columns) / (len(rows) * len(columns))
            for columns in windows(6, grid[1])
        ]
        for rows in windows(5, grid[0])
    ]
    got = TASKS["adaptive_avg_pool2d"].reference(input=image, output_size=output_size)
    torch.testing.assert_close(got, torch.tensor([want], dtype=torch.float64))
