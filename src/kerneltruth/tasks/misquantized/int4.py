"""What wrong kernels of a linear layer with an int4 weight do in place of one of the rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor

from kerneltruth.documents.verdict import QuantizationRule
from kerneltruth.tasks.changed_rules import ChangedRule
from kerneltruth.tasks.int4 import Int4Weight, linear_w4a16
from kerneltruth.tasks.misquantized.int8 import IN_FLOATS, changed
from kerneltruth.tasks.quantized import Coding, Quantized, asymmetric


def _with_zero_point(w: Tensor, _: torch.dtype, *, sign: int) -> Iterator[tuple[str, Quantized]]:
    for least in (-8, 0):
        for over in ((1,), (0, 1)):
            for zero in (True, False):
                yield (
                    f"{least}/{over}/{zero}",
                    asymmetric(w, over, least=least, sign=sign, with_zero=zero, levels=15),
                )


def _reordered(codes: Tensor, order: Callable[[Tensor], Tensor]) -> Tensor:
    """Return the codes of each row in another order, without the last if they are odd."""
    even = codes.shape[-1] // 2 * 2
    places = order(torch.arange(even)).reshape(-1)
    return torch.cat((codes[..., places], codes[..., even:]), -1)


def _neighbours_swapped(codes: Tensor) -> Tensor:
    return _reordered(codes, lambda places: places.reshape(-1, 2).flip(-1))


def _rows_swapped(codes: Tensor) -> Tensor:
    return _neighbours_swapped(codes.transpose(0, 1)).transpose(0, 1)


def _halves_interleaved(codes: Tensor) -> Tensor:
    return _reordered(codes, lambda places: places.reshape(2, -1).t())


def _neighbours_in_halves(codes: Tensor) -> Tensor:
    return _reordered(codes, lambda places: places.reshape(-1, 2).t())


def _without_sign(codes: Tensor) -> Tensor:
    return torch.where(codes < 0, codes + 16, codes)


def _of_weight(rule: QuantizationRule, words: str, weight: Int4Weight) -> ChangedRule:
    return changed(rule, words, partial(linear_w4a16, weight_choices=weight.choices))


def _coded(rule: QuantizationRule, words: str, coding: Coding) -> ChangedRule:
    return _of_weight(rule, words, Int4Weight(coding=coding))


def _zero_point(words: str, sign: int) -> ChangedRule:
    choices = partial(_with_zero_point, sign=sign)
    return changed("zero_point", words, partial(linear_w4a16, weight_choices=choices))


CHANGES: tuple[ChangedRule, ...] = (
    _coded("rounding", "codes are rounded toward zero", Coding(down=0.5, to_zero=True)),
    _coded("rounding", "codes are rounded down", Coding(down=0.5)),
    *(
        _of_weight("scale", f"a scale is max|w| / {top:g}", Int4Weight(tops=(top,)))
        for top in (15.0, 16.0, 14.0, 6.0)
    ),
    _of_weight("scale", "codes have 8 bits", Int4Weight(tops=(127.0, 128.0), codes=127)),
    _coded("scale", "codes are not multiplied by their scale", Coding(power=0)),
    _coded("scale", "codes are multiplied by their scale twice", Coding(power=2)),
    _coded("scale", "codes are divided by their scale", Coding(power=-1)),
    _zero_point("codes have a zero point", sign=-1),
    _zero_point("codes have a zero point that is never subtracted", sign=0),
    _zero_point("codes have a zero point that is added, not subtracted", sign=1),
    _coded("zero_point", "an offset of 8 stays in the codes", Coding(offset=8)),
    _coded("zero_point", "8 is taken off the codes", Coding(offset=-8)),
    _of_weight(
        "saturation",
        "the code 8 wraps around to -8",
        Int4Weight(tops=(7.5, 8.0), coding=Coding(wraps=True)),
    ),
    _coded("saturation", "negative codes saturate at 0", Coding(low=0)),
    _coded("layout", "the codes of a byte are swapped", Coding(moved=_neighbours_swapped)),
    _coded("layout", "the codes of two neighbouring rows are swapped", Coding(moved=_rows_swapped)),
    _coded("layout", "the halves of a row are interleaved", Coding(moved=_halves_interleaved)),
    _coded("layout", "every other code of a row comes first", Coding(moved=_neighbours_in_halves)),
    _coded("layout", "codes are read without their sign", Coding(moved=_without_sign)),
    _of_weight("layout", "scales lie along the other dim", Int4Weight(shared={"input": (0,)})),
    IN_FLOATS,
)
