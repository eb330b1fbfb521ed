"""Shapes on the meta device are asked of torch once, and are those that torch gives."""

import sys
from contextlib import nullcontext

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from kerneltruth.suites.kernelbench.inside.laid_out import RecordedLayouts, without_dynamo


class Network(nn.Module):
    """Twice the same layers, some of them in place, with views and an operator of two results."""

    def __init__(self, channels):
        super().__init__()
        self.convolutions = nn.ModuleList(nn.Conv2d(channels, channels, 3) for _ in range(2))
        self.norms = nn.ModuleList(nn.BatchNorm2d(channels) for _ in range(2))

    def forward(self, x):
        for convolution, norm in zip(self.convolutions, self.norms, strict=True):
            x = nn.functional.hardtanh_(norm(convolution(x)))
        largest, places = x.flatten(2).transpose(1, 2).max(-1)
        return x + 1, x.long() + 1, x.long() + 1.0, largest, places


def shapes(mode, side=8):
    """What the network gives; it is built within the mode, too."""
    with torch.no_grad(), mode, torch.device("meta"):
        found = Network(4)(torch.rand(2, 4, side, side))
    return [(t.shape, t.stride(), t.dtype, t.device) for t in found]


class Watched(TorchDispatchMode):
    """Knows the operators that reach torch."""

    def __init__(self):
        super().__init__()
        self.names = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.add(func.overloadpacket.__name__)
        return func(*args, **(kwargs or {}))


def test_shapes_are_those_that_torch_gives():
    mode = RecordedLayouts()
    for side in (8, 8, 9):
        assert shapes(mode, side) == shapes(nullcontext(), side)


def test_a_known_shape_is_not_computed_again():
    mode, costly = (
        RecordedLayouts(),
        {"convolution", "native_batch_norm", "hardtanh_", "uniform_", "max"},
    )
    with Watched() as first:
        shapes(mode)
    with Watched() as second:
        shapes(mode)
    assert costly <= first.names
    assert not costly & second.names
    # What shares memory with its argument is.
    assert "view" in second.names


def test_real_numbers_are_computed_each_time():
    with RecordedLayouts():
        found = [torch.tensor([n, 2.0]).mul(2) for n in (1.0, 3.0)]
    assert [t.tolist() for t in found] == [[2.0, 4.0], [6.0, 4.0]]


def test_a_tensor_that_changes_its_shape_does_so_each_time():
    with RecordedLayouts(), torch.device("meta"):
        made = [torch.empty(2, 3).resize_(6, 4) for _ in range(2)]
    assert [t.shape for t in made] == [(6, 4), (6, 4)]


def test_an_operator_that_is_refused_is_refused_each_time():
    with RecordedLayouts(), torch.device("meta"):
        for _ in range(2):
            with pytest.raises(RuntimeError):
                torch.empty(2, 3) @ torch.empty(2, 3)


def test_functions_that_are_not_to_be_compiled_need_no_compiler(monkeypatch):
    monkeypatch.delitem(sys.modules, "torch._dynamo", raising=False)
    monkeypatch.delattr(torch, "_dynamo", raising=False)
    with without_dynamo():
        assert torch._disable_dynamo(lambda n: n + 1)(1) == 2
    assert "torch._dynamo" not in sys.modules
