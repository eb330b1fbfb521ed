"""The scales that int8 kernels choose: who shares one, and which code is the largest."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from torch import Tensor

from kerneltruth.tasks.claims import Evidence
from kerneltruth.tasks.quantized import (
    Coding,
    Member,
    NamedQuantizations,
    Quantized,
    in_groups,
    quantize,
)

GROUPS = (32, 64, 128)
TOPS = (127.0, 128.0)
# In place of a top, where a quantization goes with any of the other factor.
ANY = "any"

Shared = dict[str, Sequence[int]]
# A tensor, the dims that may share a scale, and the dim that may be cut into groups.
Scaling = Callable[[Tensor, Shared, int | None], NamedQuantizations]
Quantizer = Callable[..., Quantized]
# The results of a product of two factors that are quantized in these ways.
ProductFamily = Callable[[Evidence, Scaling, Scaling], Iterator[Member]]
# The largest magnitude on 127 or on 128, which then saturates; -128 may saturate, too.
RIGHT: Mapping[str, Quantizer] = {
    **{f"{top:g}": partial(quantize, top=top) for top in TOPS},
    "128 within 127": partial(quantize, top=128.0, coding=Coding(low=-127)),
}


def scaled(x: Tensor, shared: Shared, along: int | None) -> NamedQuantizations:
    """A tensor with each sharing of scales, by dims or by groups of one, and each top."""
    found = plainly(x, shared, along)
    for top, quantizer in RIGHT.items():
        for size in GROUPS if along is not None else ():
            if along is not None and size < x.shape[along]:
                by_group = partial(quantizer, over=(-1,))
                found.append((f"groups of {size}/{top}", in_groups(x, along, size, by_group)))
    return found


def plainly(x: Tensor, shared: Shared, along: int | None) -> NamedQuantizations:
    """A tensor with each sharing of scales by dims, and each top."""
    return [(f"{n}/{top}", by(x, o)) for top, by in RIGHT.items() for n, o in shared.items()]


def on_each(form: str) -> tuple[str, ...]:
    """The names of the members of this form, one for each way to quantize."""
    return tuple(form.format(top) for top in RIGHT)


def together(left: str, right: str) -> bool:
    """Kernels use one top for both, and groups on both sides or on one."""
    tops = {name.rpartition("/")[2] for name in (left, right)} - {ANY}
    return len(tops) <= 1
