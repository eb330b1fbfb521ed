"""What wrong kernels of the int8 tasks do in place of one of the rules.

The tasks let ties go either way, so no change is about ties.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor

from kerneltruth.documents.verdict import QuantizationRule
from kerneltruth.tasks.arguments import Output
from kerneltruth.tasks.changed_rules import ChangedRule

# From a ratio and a zero point to a code, before it is converted.
Code = Callable[[Tensor, int], Tensor]
Convert = Callable[[Tensor], Tensor]
ReferenceFunction = Callable[..., Any]


def saturated(codes: Tensor, low: int = -128, high: int = 127) -> Tensor:
    """Return codes as int8; NaN gives 0."""
    return torch.nan_to_num(codes, nan=0.0).clamp(low, high).to(torch.int8)


def _wrapped(codes: Tensor) -> Tensor:
    return ((codes + 128) % 256 - 128).to(torch.int8)


def _wrapped_as_on_a_cpu(codes: Tensor) -> Tensor:
    """What int32 cannot hold becomes its least value there."""
    return _wrapped(torch.where(codes.abs() < 2.0**31, codes, 0.0))


def _wrapped_as_on_a_gpu(codes: Tensor) -> Tensor:
    """Conversions to int32 saturate there."""
    return _wrapped(torch.nan_to_num(codes, nan=0.0).clamp(-(2.0**31), 2.0**31 - 1))


def _floats(codes: Tensor) -> Tensor:
    return codes


def _nearest(ratio: Tensor, zero: int) -> Tensor:
    return torch.round(ratio) + zero


def _toward_zero(ratio: Tensor, zero: int) -> Tensor:
    return torch.trunc(ratio) + zero


def _sum_toward_zero(ratio: Tensor, zero: int) -> Tensor:
    return torch.trunc(ratio + zero)


def _half_added(ratio: Tensor, zero: int) -> Tensor:
    return torch.trunc(ratio + 0.5) + zero


def _half_added_to_sum(ratio: Tensor, zero: int) -> Tensor:
    return torch.trunc(ratio + 0.5 + zero)


def _down(ratio: Tensor, zero: int) -> Tensor:
    return torch.floor(ratio) + zero


def _up(ratio: Tensor, zero: int) -> Tensor:
    return torch.ceil(ratio) + zero


_ROUNDINGS: Mapping[str, tuple[Code, ...]] = {
    "codes are rounded toward zero": (_toward_zero, _sum_toward_zero),
    "a half is added and codes are rounded toward zero": (_half_added, _half_added_to_sum),
    "codes are rounded down": (_down,),
    "codes are rounded up": (_up,),
}
_RANGES: Mapping[str, tuple[Convert, ...]] = {
    "codes wrap around at 8 bits": (_wrapped, _wrapped_as_on_a_cpu, _wrapped_as_on_a_gpu),
    "codes saturate at -127 and 127": (partial(saturated, low=-127),),
    "codes saturate at 0 and 127": (partial(saturated, low=0),),
    "codes saturate at -8 and 7": (partial(saturated, low=-8, high=7),),
    "codes saturate at 0 and 255, and then wrap around": (
        lambda codes: _wrapped(torch.nan_to_num(codes, nan=0.0).clamp(0, 255)),
    ),
}


def _quantized(
    input: Tensor,
    scale: float,
    zero_point: int,
    *,
    code: Code = _nearest,
    convert: Convert = saturated,
    by_product: bool = False,
) -> Tensor:
    return convert(code(input * (1.0 / scale) if by_product else input / scale, zero_point))


def _of_tensor(rule: QuantizationRule, words: str, **how: Any) -> ChangedRule:
    """Return a change of `quantize_int8`."""
    return ChangedRule(
        rule=rule,
        words=words,
        reference=partial(_quantized, **how),
        admissible=(partial(_quantized, by_product=True, **how),),
    )


def _own_scale(input: Tensor, dims: tuple[int, ...]) -> Tensor:
    if input.numel() == 0:
        return input.new_ones((1, 1))
    largest = input.abs().amax(dims, keepdim=True)
    return torch.where(largest == 0, 1.0, largest / 127)


def _otherwise(rule: QuantizationRule, words: str, reference: ReferenceFunction) -> ChangedRule:
    return ChangedRule(rule=rule, words=words, reference=reference)


def _in_floats(
    words: str, reference: ReferenceFunction, rest: tuple[Output, ...] = ()
) -> tuple[ChangedRule, ...]:
    """Return the change in which a first output of int8 is one of floats, of either type."""
    return tuple(
        ChangedRule(
            rule="fake_quantization",
            words=words,
            reference=reference,
            outputs=(Output(name="quantized" if rest else "out", dtype=dtype), *rest),
        )
        for dtype in ("same", "float32")
    )


_OF_TENSOR: tuple[ChangedRule, ...] = (
    _otherwise(
        "scale",
        "input is multiplied with the scale",
        lambda input, scale, zero_point: saturated(torch.round(input * scale) + zero_point),
    ),
    _otherwise(
        "scale",
        "the scale is 1",
        lambda input, zero_point: saturated(torch.round(input) + zero_point),
    ),
    _otherwise(
        "scale",
        "the scale is max|input| / 127",
        lambda input, zero_point: saturated(
            torch.round(input / _own_scale(input, (0, 1))) + zero_point
        ),
    ),
    _otherwise(
        "scale",
        "each row has the scale max|row| / 127",
        lambda input, zero_point: saturated(
            torch.round(input / _own_scale(input, (1,))) + zero_point
        ),
    ),
    _of_tensor("zero_point", "the zero point is left out", code=lambda r, zero: torch.round(r)),
    _of_tensor("zero_point", "the zero point is subtracted", code=lambda r, z: torch.round(r) - z),
    *(
        _of_tensor("rounding", words, code=code)
        for words, codes in _ROUNDINGS.items()
        for code in codes
    ),
    *(
        _of_tensor("saturation", words, convert=convert)
        for words, ways in _RANGES.items()
        for convert in ways
    ),
    _of_tensor(
        "saturation",
        "codes saturate before the zero point is added",
        code=lambda ratio, zero: torch.round(ratio).clamp(-128, 127) + zero,
        convert=_wrapped,
    ),
    *_in_floats("codes are returned as floats", partial(_quantized, convert=_floats)),
    *_in_floats(
        "codes are returned as floats",
        lambda input, scale, zero_point: (torch.round(input / scale) + zero_point).clamp(-128, 127),
    ),
    *_in_floats("nothing is rounded", lambda input, scale, zero_point: input / scale + zero_point),
    *_in_floats(
        "nothing is rounded",
        lambda input, scale, zero_point: (input / scale + zero_point).clamp(-128, 127),
    ),
    *_in_floats(
        "codes are turned back into numbers",
        lambda input, scale, zero_point: (
            ((torch.round(input / scale) + zero_point).clamp(-128, 127) - zero_point) * scale
        ),
    ),
)

_SCALES = (Output(name="scale", dtype="float32"),)


def _magnitude(input: Tensor) -> Tensor:
    return input.abs().amax(-1, keepdim=True)


def _rows(
    input: Tensor,
    *,
    largest: Convert = _magnitude,
    top: float = 127.0,
    code: Code = _nearest,
    convert: Convert = saturated,
) -> tuple[Tensor, Tensor]:
    scale = largest(input) / top
    ratio = torch.where(scale == 0, 0.0, input / scale)
    return convert(code(ratio, 0)), scale.squeeze(-1)


def _of_rows(rule: QuantizationRule, words: str, **how: Any) -> ChangedRule:
    """Return a change of `quantize_int8_rows`."""
    return ChangedRule(rule=rule, words=words, reference=partial(_rows, **how))


def _with_zero_point(input: Tensor, *, unsigned: bool) -> tuple[Tensor, Tensor]:
    low, high = (f(input, -1, keepdim=True) for f in (torch.amin, torch.amax))
    scale = (high - low) / 255
    codes = torch.round(torch.where(scale == 0, 0.0, (input - low) / scale))
    return (_wrapped(codes) if unsigned else saturated(codes - 128)), scale.squeeze(-1)


def _in_columns(input: Tensor) -> tuple[Tensor, Tensor]:
    codes, scale = _rows(input.transpose(0, 1))
    return codes.transpose(0, 1), scale


def _turned_back(input: Tensor) -> tuple[Tensor, Tensor]:
    codes, scale = _rows(input, convert=_floats)
    return codes * scale[:, None], scale


_OF_ROWS: tuple[ChangedRule, ...] = (
    _of_rows(
        "scale",
        "all rows share one scale",
        largest=lambda input: input.abs().amax().expand(input.shape[0], 1),
    ),
    *(
        _of_rows("scale", f"a scale is max|row| / {top:g}", top=top)
        for top in (128.0, 127.5, 126.0, 255.0, 256.0, 64.0, 7.0)
    ),
    _of_rows(
        "scale", "a scale is max row / 127", largest=lambda input: input.amax(-1, keepdim=True)
    ),
    _otherwise(
        "scale",
        "the scale is returned inverted",
        lambda input: (_rows(input)[0], 1 / _rows(input)[1]),
    ),
    _otherwise(
        "scale",
        "max|row| is returned as the scale",
        lambda input: (_rows(input)[0], _magnitude(input).squeeze(-1)),
    ),
    _otherwise("zero_point", "codes have a zero point", partial(_with_zero_point, unsigned=False)),
    _otherwise("zero_point", "codes have a zero point", partial(_with_zero_point, unsigned=True)),
    *(
        _of_rows("rounding", words, code=code)
        for words, codes in _ROUNDINGS.items()
        for code in codes
    ),
    *(
        _of_rows("saturation", words, convert=convert)
        for words, ways in _RANGES.items()
        for convert in ways
    ),
    _otherwise("layout", "each column has a scale", _in_columns),
    *_in_floats("codes are returned as floats", partial(_rows, convert=_floats), _SCALES),
    *_in_floats(
        "nothing is rounded", partial(_rows, code=lambda ratio, _: ratio, convert=_floats), _SCALES
    ),
    *_in_floats("codes are turned back into numbers", _turned_back, _SCALES),
)

_OF_CODES: tuple[ChangedRule, ...] = (
    _otherwise("scale", "the scale is 1", lambda input, scale: input.to(scale.dtype)),
    _otherwise(
        "scale",
        "codes are divided by the scale",
        lambda input, scale: input.to(scale.dtype) / scale[:, None],
    ),
    _otherwise(
        "scale",
        "all rows have the first scale",
        lambda input, scale: input.to(scale.dtype) * scale[:1, None],
    ),
    _otherwise(
        "scale",
        "the scale is divided by 127",
        lambda input, scale: input.to(scale.dtype) * scale[:, None] / 127,
    ),
    *(
        _otherwise(
            "zero_point",
            f"{words} the codes",
            lambda input, scale, offset=offset: (input.to(scale.dtype) + offset) * scale[:, None],
        )
        for words, offset in (("128 is added to", 128), ("128 is taken off", -128))
    ),
    _otherwise(
        "rounding",
        "the result is rounded to an integer",
        lambda input, scale: torch.round(input.to(scale.dtype) * scale[:, None]),
    ),
    _otherwise(
        "rounding",
        "the result is rounded toward zero",
        lambda input, scale: torch.trunc(input.to(scale.dtype) * scale[:, None]),
    ),
    _otherwise(
        "saturation",
        "the result saturates at -128 and 127",
        lambda input, scale: (input.to(scale.dtype) * scale[:, None]).clamp(-128, 127),
    ),
    _otherwise(
        "layout",
        "codes are read without their sign",
        lambda input, scale: (
            torch.where(input < 0, input.to(scale.dtype) + 256, input) * scale[:, None]
        ),
    ),
    _otherwise(
        "layout",
        "each column has a scale",
        lambda input, scale: input.to(scale.dtype) * scale[None, :],
    ),
)

CHANGES: Mapping[str, tuple[ChangedRule, ...]] = {
    "quantize_int8": _OF_TENSOR,
    "quantize_int8_rows": _OF_ROWS,
    "dequantize_int8": _OF_CODES,
}
