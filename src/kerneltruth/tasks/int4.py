"""The results that a linear layer with an int4 weight may give."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from kerneltruth.tasks.claims import Evidence
from kerneltruth.tasks.quantized import (
    USUAL,
    Coding,
    Kept,
    Member,
    Quantized,
    bilinear,
    exact,
    in_groups,
    quantize,
)
from kerneltruth.tasks.scalings import GROUPS

# What may be rounded to the 16-bit dtype.
_KEPT = (
    (),
    ("value",),
    ("scale",),
    ("scale", "value"),
    ("divisor", "scale"),
    ("divisor", "scale", "value"),
    ("divisor", "ratio", "scale"),
    ("divisor", "ratio", "scale", "value"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Int4Weight:
    """How a kernel quantizes the weight; the default is what the task asks."""

    tops: tuple[float, ...] = (7.0, 7.5, 8.0)
    codes: int = 7
    coding: Coding = USUAL
    shared: Mapping[str, Sequence[int]] = field(
        default_factory=lambda: {"channel": (1,), "tensor": (0, 1)}
    )

    def choices(self, w: Tensor, dtype: torch.dtype) -> Iterator[tuple[str, Quantized]]:
        """A weight with each sharing of scales, each top, and each choice of what is kept how."""
        for label, top, coding in self.codings():
            for parts in _KEPT:
                kept = Kept(dtype=dtype, **dict.fromkeys(parts, True))
                to_codes = partial(quantize, top=top, codes=self.codes, kept=kept, coding=coding)
                name = "/".join((label, *parts))
                for shared, over in self.shared.items():
                    yield f"{shared}/{name}", to_codes(w, over=over)
                for size in GROUPS:
                    if size < w.shape[1]:
                        by_group = partial(to_codes, over=(-1,))
                        yield f"groups of {size}/{name}", in_groups(w, 1, size, by_group)

    def codings(self) -> Iterator[tuple[str, float, Coding]]:
        """Each top; beyond the largest code, with the least code left out as well."""
        for top in self.tops:
            yield f"{top:g}", top, self.coding
            if top > self.codes and self.coding.low is None and not self.coding.wraps:
                yield f"{top:g} within {self.codes}", top, replace(self.coding, low=-self.codes)


WeightChoices = Callable[[Tensor, torch.dtype], Iterable[tuple[str, Quantized]]]


USUAL_WEIGHTS = tuple(f"float x channel/{label}" for label, _, _ in Int4Weight().codings())


def linear_w4a16(
    e: Evidence, weight_choices: WeightChoices = Int4Weight().choices
) -> Iterator[Member]:
    """Return the results by how the weight is quantized; the input is not."""
    x, w, bias = e.inputs["input"], e.inputs["weight"], e.inputs["bias"]
    assert x is not None
    assert w is not None
    weights = list(weight_choices(w, e.outputs[0].dtype))
    yield from bilinear(F.linear, [("float", exact(x))], weights, x.shape[-1], bias)
