"""Resampling: our sampling against torch's, torch's resizing against loops."""

import math

import pytest
import torch
import torch.nn.functional as F

from kerneltruth.tasks.kernelbenchx.spatial_ops import TASKS as DECLARED

TASKS = {t.name: t for t in DECLARED}
MODES = ["bilinear", "nearest", "bicubic"]
PADDINGS = ["zeros", "border", "reflection"]


@pytest.fixture
def generator():
    return torch.Generator().manual_seed(0)


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("padding_mode", PADDINGS)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("shape", [(2, 3, 7, 9), (1, 2, 1, 1), (2, 1, 1, 5)])
def test_sampling_is_that_of_torch_in_float64(generator, shape, mode, padding_mode, align_corners):
    image = torch.randn(shape, generator=generator, dtype=torch.float64)
    grid = torch.rand(shape[0], 6, 5, 2, generator=generator, dtype=torch.float64) * 5 - 2.5
    theta = torch.randn(shape[0], 2, 3, generator=generator, dtype=torch.float64)
    options = {"mode": mode, "padding_mode": padding_mode, "align_corners": align_corners}
    got = TASKS["grid_sample"].reference(input=image, grid=grid, **options)
    torch.testing.assert_close(got, F.grid_sample(image, grid, **options))
    size = (*shape[:2], 4, 6)
    got = TASKS["grid_sample_with_affine"].reference(input=image, theta=theta, size=size, **options)
    mapped = F.affine_grid(theta, list(size), align_corners)
    torch.testing.assert_close(got, F.grid_sample(image, mapped, **options))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
def test_sampling_in_half_precision_is_bit_for_bit_that_of_torch(generator, dtype, mode):
    image = torch.randn(2, 3, 8, 16, generator=generator).to(dtype)
    grid = (torch.rand(2, 9, 7, 2, generator=generator) * 3 - 1.5).to(dtype)
    options = {"mode": mode, "padding_mode": "zeros", "align_corners": False}
    got = TASKS["grid_sample"].reference(input=image, grid=grid, **options)
    torch.testing.assert_close(got, F.grid_sample(image, grid, **options), rtol=0, atol=0)


def test_a_position_in_the_middle_goes_to_the_even_pixel():
    image = torch.arange(4.0, dtype=torch.float64).reshape(1, 1, 1, 4)
    # Pixel positions 0.5, 1.5 and 2.5, each moved by less than the oracle moves its inputs.
    grid = torch.tensor([-0.5, 0.0, 0.5], dtype=torch.float64) * (1 + 1e-7) + 1e-9
    grid = torch.stack((grid, torch.zeros(3)), -1).reshape(1, 1, 3, 2)
    options = {"mode": "nearest", "padding_mode": "zeros", "align_corners": False}
    got = TASKS["grid_sample"].reference(input=image, grid=grid, **options)
    assert got.flatten().tolist() == [0.0, 2.0, 2.0]


def weights(mode, position, n):
    """Pixels and their weights at a position between pixels."""
    if mode == "bilinear":
        position = max(position, 0.0)
        left = min(math.floor(position), n - 1)
        part = position - left
        return [(left, 1 - part), (min(left + 1, n - 1), part)]
    left, found = math.floor(position), []
    for k in range(-1, 3):
        d = abs(position - left - k)
        w = 1.25 * d**3 - 2.25 * d**2 + 1 if d <= 1 else -0.75 * (d**3 - 5 * d**2 + 8 * d - 4)
        found.append((min(max(left + k, 0), n - 1), w))
    return found


def resized(row, mode, m, ratio, align_corners):
    n, out = len(row), []
    for i in range(m):
        if mode == "nearest":
            out.append(row[min(math.floor(i * ratio), n - 1)])
            continue
        at = (i + 0.5) * ratio - 0.5
        if align_corners:
            at = i * (n - 1) / (m - 1) if m > 1 else 0.0
        out.append(sum(row[j] * w for j, w in weights(mode, at, n)))
    return out


@pytest.mark.parametrize(
    ("mode", "align_corners"),
    [
        ("nearest", None),
        ("bilinear", None),
        ("bilinear", True),
        ("bicubic", False),
        ("bicubic", True),
    ],
)
@pytest.mark.parametrize(
    ("size", "scale_factor"),
    [((3, 11), None), ((1, 4), None), (None, 2.0), (None, 1.7), (None, 0.5)],
)
def test_interpolate_weighs_neighbours_as_described(mode, align_corners, size, scale_factor):
    image = torch.arange(35.0, dtype=torch.float64).reshape(5, 7) ** 1.5
    got = TASKS["interpolate"].reference(
        input=image[None, None],
        size=size,
        scale_factor=scale_factor,
        mode=mode,
        align_corners=align_corners,
    )
    height, width = size or (math.floor(5 * scale_factor), math.floor(7 * scale_factor))
    ratios = (1 / scale_factor,) * 2 if scale_factor else (5 / height, 7 / width)
    rows = [resized(r, mode, width, ratios[1], align_corners) for r in image.tolist()]
    columns = [
        resized(list(c), mode, height, ratios[0], align_corners) for c in zip(*rows, strict=True)
    ]
    torch.testing.assert_close(got[0, 0], torch.tensor(columns, dtype=torch.float64).T)
