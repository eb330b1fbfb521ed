"""Quantized arithmetic as a family: what any int8 or int4 computation of an operator may give.

A kernel that quantizes is free in much: one scale per tensor, per row, per channel or per group of
the summed dim; the largest magnitude on 127 or on 128; halves to even or away. So its result is no
single number. But each choice gives one result that is exact up to a few roundings of float32, and
choices are few. A result is *explained* when one of them gives it within rounding. What float
arithmetic gives is not, since rounding to codes moves a result by far more than float32 does.

Scales come from the inputs of the call alone: a scale fixed beforehand is nothing that a kernel
could know here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from kerneltruth.tasks.arguments import Output
from kerneltruth.tasks.contract import Claim, Evidence

Choices = list[tuple[str, "Quantized"]]

# Several float32 roundings on the way to a code, and a kernel's guard against a division by 0.
ROUNDINGS = 2.0**-20
GUARD = 1e-7
# Below this a guard may be the scale, and then nothing is known of the codes.
SMALLEST_SCALE = 1e-5
# A published limit holds where some usual scheme stays below this part of it; elsewhere a result
# may be this much worse than the worst of them.
IN_REACH = 0.5
SLACK = 1.5
# How many members, the nearest first, are tried with their full allowance.
NEAREST = 12


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
    """A tensor that is not quantized; `eps` is the rounding that it may take."""
    return Quantized(values=x, slack=x.abs() * eps)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What a kernel rounds to a 16-bit dtype on the way; float32 holds the rest."""

    dtype: torch.dtype
    divisor: bool = False
    ratio: bool = False
    scale: bool = False
    value: bool = False

    def rounded(self, x: Tensor, *, really: bool) -> Tensor:
        """X, rounded to the dtype if it really is."""
        return x.to(self.dtype).to(x.dtype) if really else x


FLOAT32 = Kept(dtype=torch.float32)


def quantize(
    x: Tensor,
    over: Sequence[int],
    *,
    top: float = 127.0,
    codes: int = 127,
    kept: Kept = FLOAT32,
    slack: Tensor | None = None,
) -> Quantized:
    """Quantize symmetrically: codes from -codes - 1 to codes, the largest magnitude on `top`.

    Args:
        x: float64.
        over: the dims that share a scale; without any the scale is 1 / top.
        top: what the largest magnitude is mapped to before rounding.
        codes: the largest code.
        kept: what is rounded to a 16-bit dtype.
        slack: how far x itself may be off, where it was computed.
    """
    if x.numel() == 0:
        return exact(x)
    dims = tuple(over)
    off = torch.zeros_like(x) if slack is None else slack
    largest = x.abs().amax(dims, keepdim=True) if dims else torch.ones_like(x[..., :1])
    scale = largest / top
    tiny = scale < SMALLEST_SCALE
    safe = torch.where(scale > 0, scale, torch.ones_like(scale))
    loose = ROUNDINGS + GUARD / safe
    if dims:
        loose = loose + off.amax(dims, keepdim=True) / (safe * top)
    loose = loose.clamp(max=1.0)
    divisor = torch.where(tiny, safe, kept.rounded(safe, really=kept.divisor))
    ratio = kept.rounded(x / divisor, really=kept.ratio).clamp(-codes - 1, codes)
    code = ratio.round()
    # How far the ratio may be off, and how far it is from turning the code.
    width = ratio.abs() * loose + off / safe
    margin = 0.5 - (ratio - code).abs()
    steps = torch.ceil((width - margin).clamp_min(0.0)) + (margin == 0)
    values = code * kept.rounded(safe, really=kept.scale)
    moved = safe * steps + values.abs() * loose
    moved = torch.where(tiny, x.abs() + scale + off, moved)
    return Quantized(values=kept.rounded(values, really=kept.value), slack=moved)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """What KernelBenchX demands of a quantized result against the float one."""

    cosine: float
    l1: float
    rmse: float


STRICT = Thresholds(cosine=0.95, l1=0.05, rmse=0.1)
LENIENT = Thresholds(cosine=0.9, l1=0.1, rmse=0.15)

OUTPUTS = (Output(compare="contract"),)
_HOW = """The result has the dtype of the input and is computed in quantized arithmetic: {what}
    Symmetric int8 means codes = round(x / scale), clamped to [-128, 127] or [-127, 127], with
    scale = max|x| / 127 (or / 128) taken from the inputs of the call; ties may be rounded either
    way, and a scale of 0 gives codes of 0. Products of codes are summed exactly (int32) and then
    multiplied by the scales in float32. The result must agree within float32 rounding with one
    such choice for all elements, which a computation in floats does not, and keep cosine
    similarity >= {cosine}, relative L1 error <= {l1} and root mean square error <= {rmse} against
    the float result; where no such choice without groups is within half of a limit on these inputs,
    one and a half times the error of the worst of them is the limit. Inputs that are not finite are
    not judged."""


def how(what: str, limits: Thresholds) -> str:
    """How a task that quantizes `what` is judged, for its description."""
    return _HOW.format(what=what, cosine=limits.cosine, l1=limits.l1, rmse=limits.rmse)


def judge(evidence: Evidence, family: Iterator[Member], thresholds: Thresholds) -> Iterator[Claim]:
    """The claims of a quantized operator about its one output.

    Args:
        evidence: of the call; inputs must be finite for anything to be known.
        family: the results that quantized arithmetic may give. Those without groups of scales say
            which thresholds are in reach on these inputs.
        thresholds: the published ones.
    """
    if evidence.outputs[0].numel() == 0:
        return
    if not all(t is None or bool(t.isfinite().all()) for t in evidence.inputs.values()):
        return
    top = torch.finfo(evidence.outputs[0].dtype).max
    # What overflows the dtype is infinite there; all of it counts as the largest value.
    got, truth = (
        t.to(torch.float64).clamp(-top, top) for t in (evidence.outputs[0], evidence.reference[0])
    )
    members = [replace(m, values=m.values.clamp(-top, top)) for m in family]
    yield from _close(got, truth, members, thresholds)
    rounding = evidence.eps * got.abs() + 2.0**-126
    off = _unexplained(got, members, rounding)
    yield Claim("distance to quantized arithmetic / rounding", off, 1.0)


def _unexplained(got: Tensor, members: Sequence[Member], rounding: Tensor) -> float:
    """The worst element's distance to the member that explains all elements best."""
    if not bool(got.isfinite().all()):
        return math.inf
    off = [(got - m.values).abs() for m in members]
    # By the typical order of magnitude: where a code near a tie turned, even the right member is
    # far off in a few elements, and the others may differ from it by no more than a rounding.
    unit = rounding + 1e-3 * rounding.mean()
    typical = [float(torch.log1p(d / unit).mean()) for d in off]
    nearest = sorted(range(len(off)), key=typical.__getitem__)[:NEAREST]
    return min(float((off[i] / (members[i].allowance() + rounding)).amax()) for i in nearest)


def _close(
    got: Tensor, truth: Tensor, members: Sequence[Member], thresholds: Thresholds
) -> Iterator[Claim]:
    """The published thresholds, or what the members reach where those are out of reach."""
    usual = [distances(m.values, truth) for m in members if "groups" not in m.name]
    names = ("1 - cosine similarity", "relative L1 error", "root mean square error")
    published = (1 - thresholds.cosine, thresholds.l1, thresholds.rmse)
    found = distances(got, truth)
    for name, value, reached, limit in zip(
        names, found, zip(*usual, strict=True), published, strict=True
    ):
        in_reach = min(reached) <= IN_REACH * limit
        yield Claim(name, value, limit if in_reach else max(limit, SLACK * max(reached)))


def distances(got: Tensor, truth: Tensor) -> tuple[float, float, float]:
    """1 - cosine similarity, relative L1 error, root mean square error."""
    error = got - truth
    sizes = float(got.norm() * truth.norm())
    off = 1 - float((got * truth).sum()) / sizes if sizes else float(bool(error.any()))
    mass = float(truth.abs().sum())
    share = float(error.abs().sum()) / mass if mass else float(bool(error.any()))
    return max(off, 0.0), share, float(error.square().mean().sqrt())
