"""What wrong int8 kernels of floats do in place of one of the rules.

A change is tried for both factors of a product and for one of them, with the scales that the task
admits, except those of groups.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from kerneltruth.documents.verdict import QuantizationRule
from kerneltruth.tasks.arguments import Output
from kerneltruth.tasks.changed_rules import ChangedRule
from kerneltruth.tasks.claims import Evidence
from kerneltruth.tasks.explained import Family, explained
from kerneltruth.tasks.quantized import (
    Coding,
    Member,
    NamedQuantizations,
    asymmetric,
    exact,
    quantize,
)
from kerneltruth.tasks.scalings import (
    ANY,
    TOPS,
    ProductFamily,
    Quantizer,
    Scaling,
    Shared,
    plainly,
)


class Change(NamedTuple):
    """A change of one rule, as quantizers that follow it: from a tensor and dims to its codes."""

    rule: QuantizationRule
    words: str
    quantizers: tuple[Quantizer, ...]

    def scaling(self, x: Tensor, shared: Shared, along: int | None) -> NamedQuantizations:
        """A tensor with each sharing of scales by dims, under this change."""
        return [
            (f"{name}/{ANY}", quantizer(x, over))
            for quantizer in self.quantizers
            for name, over in shared.items()
        ]


def _coded(rule: QuantizationRule, words: str, coding: Coding) -> Change:
    return Change(rule, words, tuple(partial(quantize, top=t, coding=coding) for t in TOPS))


def _on(top: float, codes: int = 127) -> Change:
    words = f"a scale is max|x| / {top:g}"
    return Change("scale", words, (partial(quantize, top=top, codes=codes),))


def _with_zero_point(words: str, sign: int) -> Change:
    ranges = [(least, zero) for least in (-128, 0) for zero in (True, False)]
    return Change(
        "zero_point",
        words,
        tuple(partial(asymmetric, least=n, sign=sign, with_zero=zero) for n, zero in ranges),
    )


def _largest_value(x: Tensor, dims: tuple[int, ...]) -> Tensor:
    return x.amax(dims, keepdim=True)


CHANGES: tuple[Change, ...] = (
    _coded("rounding", "codes are rounded toward zero", Coding(down=0.5, to_zero=True)),
    _coded("rounding", "codes are rounded down", Coding(down=0.5)),
    *(_on(top) for top in (255.0, 256.0, 127.5, 126.0, 64.0, 63.0)),
    _on(7.0, codes=7),
    _coded("scale", "a scale is taken from max x, not max|x|", Coding(largest=_largest_value)),
    _coded("scale", "codes are not multiplied by their scale", Coding(power=0)),
    _coded("scale", "codes are multiplied by their scale twice", Coding(power=2)),
    _coded("scale", "codes are divided by their scale", Coding(power=-1)),
    _with_zero_point("codes have a zero point", sign=-1),
    _with_zero_point("codes have a zero point that is never subtracted", sign=0),
    _with_zero_point("codes have a zero point that is added, not subtracted", sign=1),
    _coded("zero_point", "an offset of 128 stays in the codes", Coding(offset=128)),
    _coded("zero_point", "128 is taken off the codes", Coding(offset=-128)),
    Change(
        "saturation",
        "the code 128 wraps around to -128",
        tuple(partial(quantize, top=t, coding=Coding(wraps=True)) for t in (127.5, 128.0)),
    ),
    _coded("saturation", "negative codes saturate at 0", Coding(low=0)),
)
IN_FLOATS = ChangedRule(rule="fake_quantization", words="nothing is quantized", outputs=(Output(),))
# The bits of a float32 that TF32 lacks. To round, half of the last bit that stays is added first.
_TF32_DROPS = 13
_HALVES = (0, 1 << (_TF32_DROPS - 1))


def in_tf32(reference: Callable[..., Tensor], *factors: str) -> tuple[ChangedRule, ...]:
    """Return `IN_FLOATS` with these factors in TF32, as tensor cores take them."""

    def product(half: int, **given: Any) -> Tensor:
        bits = {n: given[n].to(torch.float32).view(torch.int32) + half for n in factors}
        kept = {n: (b >> _TF32_DROPS << _TF32_DROPS).view(torch.float32) for n, b in bits.items()}
        return reference(**given | {n: t.to(given[n].dtype) for n, t in kept.items()})

    return tuple(replace(IN_FLOATS, reference=partial(product, half)) for half in _HALVES)


def _as_float(x: Tensor, shared: Shared, along: int | None) -> NamedQuantizations:
    return [(f"float/{ANY}", exact(x))]


def _along_others(x: Tensor, shared: Shared, along: int | None) -> NamedQuantizations:
    """A tensor with scales along the dims that are to share one, and shared by the others."""
    others = {n: sorted({*range(x.ndim)} - {d % x.ndim for d in o}) for n, o in shared.items()}
    return plainly(x, {name: dims for name, dims in others.items() if dims}, along)


def in_one_or_both(e: Evidence, family: ProductFamily, scaling: Scaling) -> Iterator[Member]:
    """The results where both factors, or one, are quantized in another way than usual."""
    yield from family(e, scaling, scaling)
    yield from in_one(e, family, scaling)


def in_one(e: Evidence, family: ProductFamily, scaling: Scaling) -> Iterator[Member]:
    """The results where one factor is quantized in another way than usual."""
    yield from family(e, scaling, plainly)
    yield from family(e, plainly, scaling)


def changed(rule: QuantizationRule, words: str, family: Family) -> ChangedRule:
    """Return a changed rule under which the family explains a result."""
    return ChangedRule(rule=rule, words=words, claims=partial(explained, family=family))


def of_quantizers(family: Callable[..., Iterator[Member]]) -> tuple[ChangedRule, ...]:
    """Return the changes of an operator, whose family takes `quantizers`."""
    return (
        *(changed(c.rule, c.words, partial(family, quantizers=c.quantizers)) for c in CHANGES),
        IN_FLOATS,
    )


def of_product(family: ProductFamily) -> tuple[ChangedRule, ...]:
    """Return the changes of a product of two quantized factors."""

    def made(
        rule: QuantizationRule,
        words: str,
        scaling: Scaling,
        where: Callable[..., Iterator[Member]] = in_one_or_both,
    ) -> ChangedRule:
        return changed(rule, words, partial(where, family=family, scaling=scaling))

    return (
        *(made(c.rule, c.words, c.scaling) for c in CHANGES),
        made("layout", "scales lie along the other dim", _along_others),
        made("fake_quantization", "one factor is not quantized", _as_float, in_one),
        IN_FLOATS,
    )
