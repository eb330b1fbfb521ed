"""Show a small failing case in a line: its inputs, the expected and the returned values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch

from kerneltruth.documents.verdict import (
    CompileError,
    Crashed,
    Failed,
    RuntimeFault,
    TimedOut,
    Verdict,
)
from kerneltruth.explain.localize.evidence import worst_index
from kerneltruth.oracle.dtypes import NAMES
from kerneltruth.oracle.expectation import Expectation, ExpectedOutput
from kerneltruth.oracle.judge import Ruling

# A tensor with more elements appears as its dtype and shape.
MOST_ELEMENTS = 8
_MOST_MESSAGE = 120


def shown(expectation: Expectation, ruling: Ruling, *, several: bool = False) -> str:
    """Format the case and its result, as `input=[100.0], expected 1.0, got nan`.

    `several`: other results than the reference are right too; claims judge them.
    """
    inputs = [f"{name}={said}" for name, said in _inputs(expectation)]
    claimed = None if several else ruling.claimed_wrong
    return ", ".join([*inputs, _end_said(expectation, ruling, claimed)])


def seen_lines(expectation: Expectation, ruling: Ruling, verdict: Verdict) -> tuple[str, ...]:
    """Return the same over several lines: `inputs:`, `expected:` and `got:`.

    If no element is wrong, `got:` is the verdict's own words.
    """
    inputs = "; ".join(f"{name} = {said}" for name, said in _inputs(expectation))
    wrong = _wrong_output(expectation, ruling, ruling.claimed_wrong)
    if wrong is None:
        outputs = (_written(o.rounded, o.dtype) for o in expectation.outputs)
        expected, got = "; ".join(outputs), _said(verdict)
    else:
        want, came, at = wrong
        name = f"{want.spec.name}, " if len(expectation.outputs) > 1 else ""
        small = came.numel() <= MOST_ELEMENTS
        expected = name + _written(want.rounded, want.dtype) if small else ""
        got = _written(came, want.dtype)
        if not small:
            expected = f"{name}at {list(at)}: {_number(want.rounded[at], want.dtype)}"
            got = _number(came[at], want.dtype)
    return (f"inputs:   {inputs}", f"expected: {expected}", f"got:      {got}")


def _inputs(expectation: Expectation) -> Iterator[tuple[str, str]]:
    for name, tensor in expectation.inputs.tensors.items():
        if tensor is not None:
            yield name, _written(tensor, NAMES[tensor.dtype])


def _end_said(expectation: Expectation, ruling: Ruling, claimed: torch.Tensor | None) -> str:
    wrong = _wrong_output(expectation, ruling, claimed)
    if wrong is None:
        return _said(ruling.verdict)
    want, got, at = wrong
    expected = f"expected {_written(want.rounded, want.dtype)}, got {_written(got, want.dtype)}"
    if got.numel() > MOST_ELEMENTS:
        pair = _number(want.rounded[at], want.dtype), _number(got[at], want.dtype)
        expected = f"at {list(at)} expected {pair[0]}, got {pair[1]}"
    several = len(expectation.outputs) > 1
    return f"{want.spec.name}: {expected}" if several else expected


def _wrong_output(
    expectation: Expectation, ruling: Ruling, claimed: torch.Tensor | None
) -> tuple[ExpectedOutput, torch.Tensor, tuple[int, ...]] | None:
    """Return the first wrong output with its worst element; None if no element can be named.

    `claimed`: the elements of the first output that a claim calls wrong.
    """
    marked = [None if d is None else d.wrong for d in ruling.differences]
    marked[:1] = [claimed] if claimed is not None else marked[:1]
    for want, got, here in zip(expectation.outputs, ruling.outputs, marked, strict=False):
        if here is None or not bool(here.any()):
            continue
        return want, got, worst_index(got, want.reference, here)
    return None


def _said(verdict: Verdict) -> str:
    match verdict:
        case Failed(detail=detail) | CompileError(detail=detail) | Crashed(detail=detail):
            said = detail
        case RuntimeFault(error=error, detail=detail):
            said = f"raises {error}: {detail}" if detail else f"raises {error}"
        case TimedOut(seconds=seconds):
            said = f"does not return within {seconds:g} s"
        case _:
            said = ""
    line = said.strip().partition("\n")[0]
    return line if len(line) <= _MOST_MESSAGE else f"{line[: _MOST_MESSAGE - 1].rstrip()}…"


def _written(tensor: torch.Tensor, dtype: str) -> str:
    if tensor.numel() > MOST_ELEMENTS or 0 in tensor.shape:
        return f"{dtype}{list(tensor.shape)}"
    return _nested(tensor, dtype)


def _nested(tensor: torch.Tensor, dtype: str) -> str:
    if tensor.ndim == 0:
        return _number(tensor, dtype)
    return _listed([_nested(part, dtype) for part in tensor])


def _listed(parts: Sequence[str]) -> str:
    return f"[{', '.join(parts)}]"


def _number(element: torch.Tensor, dtype: str) -> str:
    """Return the shortest decimal that gives the element in its dtype."""
    value: Any = element.item()
    if not isinstance(value, float):
        return str(value)
    if dtype == "float32":
        return str(np.float32(value))
    if dtype == "float16":
        return str(np.float16(value))
    return repr(value) if dtype == "float64" else f"{value:.4g}"
