"""Spot-check calls in the child: keep some elements of a result as soon as it exists.

All memory for it is allocated beforehand, so that a candidate that watches allocations cannot tell
a checked call from another; and all of this happens while it is `unwatched`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch

from kerneltruth.runner.child import placing
from kerneltruth.runner.observation import OtherResult, ReturnedResult, TensorResult
from kerneltruth.runner.timing.input_buffers import BITS
from kerneltruth.runner.timing.messages import SpotCheck

_take = torch.ops.aten.take.out
# Looked up before a candidate could replace them and learn about checks.
_base = torch._C.TensorBase
_view, _numel, _element_size = _base.view, _base.numel, _base.element_size
_resolve_conj, _resolve_neg = _base.resolve_conj, _base.resolve_neg
_dtype = _base.dtype.__get__  # type: ignore[attr-defined]
_device = _base.device.__get__


class SpotRecorder:
    """The kept elements of the checked calls.

    Attributes:
        sources: by row of a checked call, the row whose contents it gets.
    """

    def __init__(self, request: SpotCheck, like: Any) -> None:
        """Keep nothing yet; `like` is the result of some call, for its form and its devices."""
        self.sources = dict(zip(request.buffers, request.sources, strict=True))
        self._lines = {buffer: line for line, buffer in enumerate(request.buffers)}
        self._elements = request.elements
        tensors = list(plain_tensors(like))
        self._dtypes = [_dtype(t) for t in tensors]
        # Without input tensors, an operator's result lies where it is asked for: by default, there.
        self._devices = [_device(t) for t in tensors]
        self._odd = self._oddity(tensors)
        self._spots: list[torch.Tensor] = []
        self._kept: list[torch.Tensor] = []
        if self._odd is None:
            for tensor, at, device in zip(tensors, request.spots, self._devices, strict=True):
                self._spots.append(torch.tensor(at, dtype=torch.int64, device=device))
                size, bits = (len(request.buffers), len(at)), BITS[_element_size(tensor)]
                self._kept.append(torch.zeros(size, dtype=bits, device=device))
        # Once: a view takes a microsecond of the host.
        self._rows = [list(kept) for kept in self._kept]

    def keep(self, buffer: int, result: Any) -> None:
        """Keep some elements of the result of the call on a buffer."""
        tensors = list(plain_tensors(result))
        odd = self._oddity(tensors)
        if odd is not None:
            self._odd = self._odd or odd
        if self._odd is not None:
            return
        for tensor, spots, buffers in zip(tensors, self._spots, self._rows, strict=True):
            if len(spots):
                _take(_bits(tensor), spots, out=buffers[self._lines[buffer]])

    def results(self) -> tuple[ReturnedResult, ...]:
        """Return for each output a tensor with a line for each call, or what was odd about one."""
        if self._odd is not None:
            return (OtherResult(type="sample", text=self._odd),)
        return tuple(
            TensorResult(
                dtype=str(dtype).removeprefix("torch."),
                shape=tuple(kept.shape),
                strides=tuple(kept.stride()),
                device=str(kept.device),
                data=kept.cpu().numpy().tobytes(),
            )
            for dtype, kept in zip(self._dtypes, self._kept, strict=True)
        )

    def _oddity(self, tensors: Sequence[torch.Tensor]) -> str | None:
        """Return how results differ from the expected form, if they do."""
        counts = tuple(_numel(t) for t in tensors)
        if counts != self._elements:
            return f"tensors of {list(counts)} elements; expected {list(self._elements)}"
        dtypes = [_dtype(t) for t in tensors]
        if dtypes != self._dtypes:
            return f"dtypes {dtypes} in one call, and {self._dtypes} in another"
        devices = [_device(t) for t in tensors]
        if devices != self._devices:
            return f"results on {devices} in one call, and on {self._devices} in another"
        sizes = [_element_size(t) for t in tensors]
        return None if all(s in BITS for s in sizes) else f"elements of {max(sizes)} bytes"


def plain_tensors(returned: Any) -> Iterator[torch.Tensor]:
    """Return the tensors in a result as their memory."""
    for value in placing.leaves(returned):
        tensor = (
            torch.as_tensor(np.asarray(value)) if placing.is_array(value) else placing.plain(value)
        )
        if tensor is not None:
            yield tensor


@contextlib.contextmanager
def unwatched() -> Iterator[None]:
    """Hide calls of operators from every mode and class of the candidate."""
    with torch._C.DisableTorchFunction(), torch._C._DisableTorchDispatch(), torch.no_grad():
        yield


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    return _view(_resolve_neg(_resolve_conj(tensor)), BITS[_element_size(tensor)])
