"""Formulas that tasks share, beside PyTorch's own ways to compute the same."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from kerneltruth.tasks.formulas import narrowest, split_for_tensor_cores, with_added_mask


def factors() -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(3)
    q, k, v = (torch.randn((7, 4), generator=generator) for _ in range(3))
    return q, k, v


def hidden() -> Tensor:
    return torch.ones((7, 7), dtype=torch.bool).triu(1)


def by_pytorch_without_a_fused_kernel(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    q, k, v = q[None, None], k[None, None], v[None, None]
    with sdpa_kernel(SDPBackend.MATH):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)[0, 0]


@pytest.mark.parametrize("special", [0.5, math.nan, math.inf])
def test_an_added_mask_is_that_of_pytorch_without_a_fused_kernel(special: float) -> None:
    q, k, v = factors()
    k[5] = special
    got = with_added_mask(q @ k.T / 2, v, hidden())
    assert torch.allclose(got, by_pytorch_without_a_fused_kernel(q, k, v), equal_nan=True)


def test_an_added_mask_lets_a_hidden_nan_through() -> None:
    q, k, v = factors()
    k[6] = math.nan
    assert bool(with_added_mask(q @ k.T / 2, v, hidden()).isnan().all())


def test_an_infinite_factor_is_split_into_nan_in_float32_alone() -> None:
    x, y = torch.tensor([0.1, math.inf, 2.0]), torch.tensor([0.5, -math.inf, 2.0])
    assert narrowest(x) == torch.float32
    split = split_for_tensor_cores(x, y)
    assert all(bool(t[1].isnan()) and bool(t[::2].isfinite().all()) for t in split)
    assert split_for_tensor_cores(y)[0].tolist() == y.tolist()
