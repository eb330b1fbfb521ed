"""Define the family of results that int8 or int4 arithmetic of an operator may give.

A kernel that quantizes has many choices: one scale per tensor, per row, per channel or per group of
the summed dim; the largest magnitude on 127 or on 128; halves to even or away. So no single result
is right. But each choice gives one result that is exact up to a few roundings of float32, and there
are few choices. A result is *explained* if one of them gives it within rounding. A result of float
arithmetic is not explained, because rounding to codes changes a result by far more than float32
does.

Scales come from the inputs of the call alone: a kernel cannot know a scale fixed beforehand.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

NamedQuantizations = list[tuple[str, "Quantized"]]

# Several float32 roundings before a code, and a kernel's guard against a division by 0.
ROUNDINGS = 2.0**-20
GUARD = 1e-7
# Below this a guard may be the scale, and then nothing is known of the codes.
SMALLEST_SCALE = 1e-5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Quantized:
    """A tensor after quantization and back.

    Attributes:
        values: codes times scales, in float64.
        slack: how far another correct rounding may be from `values`: a step where the code is
            near a tie, and the rounding of the scale.
    """

    values: Tensor
    slack: Tensor


def exact(x: Tensor, eps: float = 0.0) -> Quantized:
    """Return a tensor that is not quantized; `eps` is the rounding that it may take."""
    return Quantized(values=x, slack=x.abs() * eps)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """Return what a kernel rounds to a 16-bit dtype as an intermediate; float32 holds the rest."""

    dtype: torch.dtype
    divisor: bool = False
    ratio: bool = False
    scale: bool = False
    value: bool = False

    def rounded(self, x: Tensor, *, really: bool) -> Tensor:
        """Return x, rounded to the dtype if it is an intermediate in it."""
        return x.to(self.dtype).to(x.dtype) if really else x


FLOAT32 = Kept(dtype=torch.float32)


def _magnitude(x: Tensor, dims: tuple[int, ...]) -> Tensor:
    return x.abs().amax(dims, keepdim=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Coding:
    """How numbers become codes and codes numbers; the default is what tasks ask.

    Attributes:
        largest: what a scale is taken from.
        down: how much is taken off a ratio before it is rounded: a half rounds down.
        to_zero: whether that is done to its magnitude.
        wraps: whether a code beyond the range wraps around, in place of saturating.
        low: the least code, if it is not the one below minus the largest.
        moved: puts codes in other places.
        offset: what is added to a code before it is multiplied with its scale.
        power: of that scale.
    """

    largest: Callable[[Tensor, tuple[int, ...]], Tensor] = _magnitude
    down: float = 0.0
    to_zero: bool = False
    wraps: bool = False
    low: int | None = None
    moved: Callable[[Tensor], Tensor] = lambda codes: codes
    offset: int = 0
    power: int = 1

    def coded(self, ratio: Tensor, codes: int) -> tuple[Tensor, Tensor, Tensor]:
        """Return ratios within the range, their codes, and how far each is from another code."""
        if not self.wraps:
            ratio = ratio.clamp(-codes - 1 if self.low is None else self.low, codes)
        size = ratio.abs() if self.to_zero else ratio
        code = (size - self.down).round()
        margin = 0.5 - (size - self.down - code).abs()
        if self.to_zero:
            code = code.clamp_min(0.0) * ratio.sign()
            margin = torch.where(size < 1, 1 - size, margin)
        if self.wraps:
            code = (code + codes + 1) % (2 * codes + 2) - codes - 1
        return ratio, code, margin


USUAL = Coding()


def quantize(
    x: Tensor,
    over: Sequence[int],
    *,
    top: float = 127.0,
    codes: int = 127,
    kept: Kept = FLOAT32,
    slack: Tensor | None = None,
    coding: Coding = USUAL,
) -> Quantized:
    """Quantize symmetrically: codes from -codes - 1 to codes, the largest magnitude on `top`.

    Args:
        x: float64.
        over: the dims that share a scale; without any the scale is 1 / top.
        top: the code of the largest magnitude before rounding.
        codes: the largest code.
        kept: which parts are rounded to a 16-bit dtype.
        slack: the error of x itself, if it was computed.
        coding: another one, of a changed rule.
    """
    if x.numel() == 0:
        return exact(x)
    dims = tuple(over)
    off = torch.zeros_like(x) if slack is None else slack
    largest = coding.largest(x, dims) if dims else torch.ones_like(x[..., :1])
    scale = largest / top
    tiny = scale < SMALLEST_SCALE
    safe = torch.where(scale > 0, scale, torch.ones_like(scale))
    loose = ROUNDINGS + GUARD / safe
    if dims:
        loose = loose + off.amax(dims, keepdim=True) / (safe * top)
    loose = loose.clamp(max=1.0)
    divisor = torch.where(tiny, safe, kept.rounded(safe, really=kept.divisor))
    ratio, code, margin = coding.coded(kept.rounded(x / divisor, really=kept.ratio), codes)
    # How far the ratio may be off, to turn the code.
    width = ratio.abs() * loose + off / safe
    steps = torch.ceil((width - margin).clamp_min(0.0)) + (margin == 0)
    unit = kept.rounded(safe, really=kept.scale) ** coding.power
    values = (coding.moved(code) + coding.offset) * unit
    moved = unit * coding.moved(steps) + values.abs() * loose
    moved = torch.where(tiny, x.abs() + scale + off, moved)
    return Quantized(values=kept.rounded(values, really=kept.value), slack=moved)


def asymmetric(
    x: Tensor,
    over: Sequence[int],
    *,
    least: int,
    sign: int,
    with_zero: bool = True,
    levels: int = 255,
    slack: Tensor | None = None,
) -> Quantized:
    """Quantize from the smallest to the largest value, as no task asks.

    Args:
        x: float64.
        over: the dims that share a scale and a zero point.
        least: the code of the smallest value.
        sign: of the zero point, when codes become numbers; -1 is right, 0 leaves it out.
        with_zero: whether 0 lies between the smallest and the largest, whatever the values.
        levels: the largest code is that many above the least.
        slack: the error of x itself, if it was computed.
    """
    if x.numel() == 0 or not over:
        return exact(x)
    off = torch.zeros_like(x) if slack is None else slack
    low, high = x.amin(tuple(over), keepdim=True), x.amax(tuple(over), keepdim=True)
    if with_zero:
        low, high = low.clamp_max(0.0), high.clamp_min(0.0)
    scale = (high - low) / levels
    safe = torch.where(scale > 0, scale, torch.ones_like(scale))
    zero = least - (low / safe).round()
    ratio = x / safe
    code = (ratio.round() + zero).clamp(least, least + levels)
    width = ratio.abs() * ROUNDINGS + off / safe
    margin = 0.5 - (ratio - ratio.round()).abs()
    steps = torch.ceil((width - margin).clamp_min(0.0)) + (margin == 0)
    values = (code + sign * zero) * safe
    return Quantized(values=values, slack=safe * steps + values.abs() * ROUNDINGS)


def in_groups(
    x: Tensor, dim: int, size: int, quantizer: Callable[[Tensor], Quantized]
) -> Quantized:
    """Quantize with a scale per group of `size` neighbours along `dim`; the last may be shorter.

    `quantizer` gets the groups as an additional last dim.
    """
    n = x.shape[dim]
    moved = x.movedim(dim, -1)
    short = -n % size
    padded = torch.nn.functional.pad(moved, (0, short)) if short else moved
    done = quantizer(padded.reshape(*padded.shape[:-1], -1, size))

    def back(t: Tensor) -> Tensor:
        return t.flatten(-2)[..., :n].movedim(-1, dim)

    return Quantized(values=back(done.values), slack=back(done.slack))


@dataclass(frozen=True, slots=True, eq=False)
class Member:
    """One result of the family; `allowance` computes how far another rounding may be from it."""

    name: str
    values: Tensor
    allowance: Callable[[], Tensor]


def settled(name: str, result: Quantized) -> Member:
    """A member whose allowance is known already."""
    return Member(name, result.values, lambda: result.slack)


def bilinear(
    product: Callable[[Tensor, Tensor], Tensor],
    left: Sequence[tuple[str, Quantized]],
    right: Sequence[tuple[str, Quantized]],
    terms: int,
    bias: Tensor | None = None,
    *,
    pairs: Callable[[str, str], bool] = lambda left, right: True,
) -> Iterator[Member]:
    """The family of a product of two quantized tensors, summed over `terms` terms.

    `pairs` says which quantizations of the two go together.
    """
    for a_name, a in left:
        for b_name, b in right:
            if not pairs(a_name, b_name):
                continue
            values = product(a.values, b.values)

            def allowance(a: Quantized = a, b: Quantized = b) -> Tensor:
                size_a, size_b = a.values.abs(), b.values.abs()
                moved = product(a.slack, size_b + b.slack) + product(size_a, b.slack)
                rounding = 2.0**-24 * (8 + 2 * math.sqrt(max(terms, 1)))
                total = moved + rounding * product(size_a, size_b)
                return total if bias is None else total + 2.0**-22 * bias.abs()

            values = values if bias is None else values + bias
            yield Member(f"{a_name} x {b_name}", values, allowance)
