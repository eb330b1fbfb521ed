"""Activations as kernels compose them: the same functions, off by some ulps of 1."""

from __future__ import annotations

from functools import partial

import pytest
import torch
import torch.nn.functional as F

from kerneltruth.tasks.compositions import MOST_ULPS, Composed, near

EPS32 = 2.0**-23
ACTIVATIONS = {
    "sigmoid": torch.sigmoid,
    "silu": F.silu,
    "gelu": F.gelu,
    "gelu by tanh": partial(F.gelu, approximate="tanh"),
    "mish": F.mish,
    "softplus": F.softplus,
    "log_sigmoid": F.logsigmoid,
}


def both(function, x):
    with torch.no_grad(), Composed() as mode:
        composed = function(x)
    return composed, function(x), mode.used


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
def test_a_composed_activation_is_the_same_but_for_some_ulps(name, dtype):
    x = torch.linspace(-16, 16, 257, dtype=dtype)
    composed, plain, used = both(ACTIVATIONS[name], x)
    most = MOST_ULPS * torch.finfo(dtype).eps
    assert used
    assert ((composed - plain).abs() <= most * plain.abs().clamp(min=1)).all()


@pytest.mark.parametrize("name", ["silu", "mish", "softplus", "log_sigmoid"])
def test_the_error_of_a_composed_tail_is_that_of_a_number_about_1(name):
    tail = torch.linspace(-14, -8, 64)
    x = -tail if name == "log_sigmoid" else tail
    composed, plain, _ = both(ACTIVATIONS[name], x)
    assert float((composed - plain).abs().max()) > EPS32 / 4 > float(plain.abs().min()) * EPS32


def test_what_is_no_activation_is_left_alone():
    x = torch.linspace(-3, 3, 9)
    composed, plain, used = both(lambda t: torch.tanh(t).exp() + t.int(), x)
    assert torch.equal(composed, plain)
    assert not used


def test_a_logarithm_of_a_composed_tail_and_an_overflow_are_no_right_results():
    x = torch.tensor([-15.0, -1.0, 100.0])
    composed, plain, _ = both(lambda t: torch.log(torch.sigmoid(t)), x)
    assert float((composed - plain).abs()[0]) > 1e-3
    (kept,) = near([composed], [plain])
    assert kept[0] == plain[0]
    assert kept[1] == composed[1]
    composed, plain, _ = both(F.logsigmoid, -x)
    assert composed.isinf()[2]
    assert near([composed], [plain])[0][2] == plain[2]
