"""Tensors and bounds as Python text, and what a script reads from it."""

import ctypes
import math

import torch

from kerneltruth.explain.reproducer.literals import as_python, by_name, coarse, data_of
from kerneltruth.explain.reproducer.script import BODY


def test_complex_elements_are_written_as_their_parts_exactly():
    parts = [-0.0, math.inf, math.nan, 1.5]
    z = torch.view_as_complex(torch.tensor(parts, dtype=torch.float64).reshape(2, 2))
    spec = data_of(z)
    assert repr(spec.data) == "[-0.0, inf, nan, 1.5]"
    scope = {"torch": torch}
    exec(BODY[BODY.index("def tensor(") : BODY.index("def surroundings(")], scope)
    assert repr(torch.view_as_real(scope["tensor"](by_name(spec))).reshape(-1).tolist()) == repr(
        parts
    )


def test_a_single_element_of_any_stride_has_its_bytes():
    scope = {"torch": torch, "ctypes": ctypes}
    exec(BODY[BODY.index("def raw(") : BODY.index("def poisoned(")], scope)
    assert scope["raw"](torch.arange(4.0)[1::2][:1]) == torch.ones(1).numpy().tobytes()


def test_many_bounds_are_rounded_up_by_less_than_a_hundredth():
    bound = torch.linspace(1e-9, 3.0, 1000, dtype=torch.float64)
    ratio = coarse(bound) / bound
    assert bool((ratio >= 1).all())
    assert float(ratio.max()) < 1.01


def test_long_lists_and_compressed_tensors_are_spread_over_lines_of_the_same_value():
    spec = data_of(torch.arange(1000.0))
    text = as_python({"few": list(range(99)), "tensor": spec})
    assert len(text.splitlines()) > 20
    assert eval(text) == {"few": list(range(99)), "tensor": by_name(spec)}
