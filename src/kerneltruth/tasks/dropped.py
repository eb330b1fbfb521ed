"""Dropout: which results are right, though two right ones differ.

A task with dropout gives its formula as a *chain*: a function of the task's tensors, of the
attributes that it names and of `keep`, the factor of an element that is kept (see `scaled`). Each
element of a result must be what the chain gives for a kept or for a dropped element; how many are
dropped, and which, must be as likely as chance allows.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor

from kerneltruth.tasks.gpu import GPU_DRAWS, OnGpu
from kerneltruth.tasks.rounding import cut_to_tf32
from kerneltruth.tasks.spec import Claim, Evidence, Output

Chain = Callable[..., Tensor]

# A right result is called wrong once in 10^9 calls, by each claim about chance.
SURPRISE = math.log(2e9)

_FACTOR = 1.5
_OF_ROW = 6.0
_TF32_EPS = 2.0**-10


def keep(p: float, training: bool) -> float:
    """The factor of a kept element; 0 where none is kept."""
    if not training:
        return 1.0
    return 0.0 if p == 1 else 1 / (1 - p)


def scaled(x: Tensor, keep: float) -> Tensor:
    """All elements kept; with `keep` 0 all dropped, also NaN and infinities."""
    return x * keep if keep else torch.zeros_like(x)


def outputs(p: str = "p") -> tuple[Output, ...]:
    """The one output: judged by the contract where elements are dropped, else by its bound."""
    random = f"training and {p} > 0"
    # A run of zeros at the end may be chance.
    chance = Output(compare="contract", when=random, spared=("last tile zeroed",))
    return chance, Output(when=f"not ({random})")


def contract(
    chain: Chain, *, p: str = "p", contracted: bool = True
) -> Callable[[Evidence], Iterator[Claim]]:
    """The contract of a task that drops elements.

    Args:
        chain: the task's formula.
        p: name of the attribute that holds the probability.
        contracted: whether the chain sums, so that a row shares its error and TF32 is admitted.
    """
    names = tuple(inspect.signature(chain).parameters)

    def claims(evidence: Evidence) -> Iterator[Claim]:
        scalars = evidence.scalars
        training = bool(scalars.get("training", True))
        share = float(scalars[p]) if training else 0.0
        settings = {n: scalars[n] for n in names if n in scalars}
        settings["keep"] = keep(share, training)
        kept, slack, settled = _expected(chain, evidence, settings, contracted=contracted)
        settings["keep"] = 0.0
        dropped, other_slack, _ = _expected(chain, evidence, settings, contracted=contracted)
        out = evidence.outputs[0].double()
        is_kept = _matches(out, kept, slack)
        is_dropped = _matches(out, dropped, other_slack) | (out.isnan() & ~kept.isfinite())
        right = is_kept if share == 0 else is_kept | is_dropped
        wrong = settled & ~right
        count = float(wrong.sum())
        yield Claim("elements neither kept nor dropped", count, 0.0, where=wrong)
        if 0 < share < 1:
            told = settled & ((kept - dropped).abs() > slack + other_slack)
            yield from _chance(is_dropped & ~is_kept, told, share)

    return claims


def _chance(dropped: Tensor, told: Tensor, share: float) -> Iterator[Claim]:
    """How surprising it is which elements are dropped, in nats."""
    count, total = int((dropped & told).sum()), int(told.sum())
    value = surprise(count, total, share)
    yield Claim(name="surprise at the share of dropped elements", value=value, limit=SURPRISE)
    alike = share**2 + (1 - share) ** 2
    for dim in range(1, min(told.ndim, 2) + 1):
        pairs = told.shape[-dim] // 2
        first = slice(0, 2 * pairs, 2), slice(1, 2 * pairs, 2)
        one, other = (dropped.movedim(-dim, 0)[s] for s in first)
        both = told.movedim(-dim, 0)[first[0]] & told.movedim(-dim, 0)[first[1]]
        value = surprise(int(((one == other) & both).sum()), int(both.sum()), alike)
        yield Claim(name=f"surprise at neighbours in dim -{dim}", value=value, limit=SURPRISE)


def surprise(count: int, total: int, share: float) -> float:
    """Chernoff's bound: minus the log of the chance that a binomial count is as far off."""
    if total == 0:
        return 0.0
    seen = count / total
    parts = ((seen, share), (1 - seen, 1 - share))
    return total * sum(a * math.log(a / b) for a, b in parts if a > 0)


def _matches(out: Tensor, target: Tensor, slack: Tensor) -> Tensor:
    return ((out - target).abs() <= slack) | (out == target) | (out.isnan() & target.isnan())


def _expected(
    chain: Chain, evidence: Evidence, settings: Mapping[str, Any], *, contracted: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """The float64 result, how far a right one may be off, and where that is settled."""
    exact = chain(**evidence.inputs, **settings)
    working = getattr(torch, evidence.dtype)
    spread = torch.zeros_like(exact)
    settled = torch.isnan(exact) | torch.isinf(exact) | (exact.abs() <= torch.finfo(working).max)
    for seen in _evaluations(chain, evidence, settings, contracted=contracted):
        both = seen.isfinite() & exact.isfinite()
        spread = torch.maximum(spread, torch.where(both, (seen - exact).abs(), 0.0))
        settled &= both | (seen == exact) | (seen.isnan() & exact.isnan())
    magnitude = torch.nan_to_num(exact.abs(), nan=0.0, posinf=0.0)
    ulps, of_row, eps = 2.0, 1.0, evidence.eps
    if evidence.dtype in ("float32", "float64"):
        ulps, of_row = 8.0, 2.0
        if contracted and evidence.dtype == "float32":
            ulps, of_row, eps = 2.0, 1.0, _TF32_EPS
    slack = _FACTOR * spread + ulps * eps * magnitude + 4 * torch.finfo(working).tiny
    if contracted and exact.ndim:
        rms = spread.square().mean(-1, keepdim=True).sqrt()
        scale = magnitude.amax(-1, keepdim=True) if exact.shape[-1] else magnitude
        slack = slack + _OF_ROW * rms + of_row * eps * scale
    return exact, slack, settled


def _evaluations(
    chain: Chain, evidence: Evidence, settings: Mapping[str, Any], *, contracted: bool
) -> Iterator[Tensor]:
    """What correct kernels may give, GPU libraries among them."""
    working: torch.dtype = getattr(torch, evidence.dtype)
    for inputs in _variants(evidence, working, tf32=contracted):
        yield chain(**inputs, **settings).to(working).double()
    inner = torch.float64 if working == torch.float64 else torch.float32
    for dtype in dict.fromkeys((inner, working)):
        given = _each(evidence, partial(Tensor.to, dtype=dtype))
        # Rounding to half precision hides what the second draw would add.
        for salt in range(GPU_DRAWS if dtype == inner else 1):
            with OnGpu(ulp=torch.finfo(inner).eps, salt=salt) as gpu:
                seen = chain(**given, **settings)
            if not (gpu.used_library or gpu.used_function):
                break
            yield seen.to(working).double()


def _variants(
    evidence: Evidence, working: torch.dtype, *, tf32: bool
) -> Iterator[dict[str, Tensor | None]]:
    """The inputs in the precisions, and moved by the roundings, that correct kernels work with."""
    inner = torch.float64 if working == torch.float64 else torch.float32
    yield _each(evidence, lambda t: t.to(inner))
    if working not in (inner, torch.float64):
        yield _each(evidence, lambda t: t.to(working))
    ulp = torch.finfo(inner).eps
    yield _each(evidence, lambda t: t * (1 + ulp * _alternating(t)))
    yield _each(evidence, lambda t: t * (1 - ulp * _alternating(t)))
    if tf32 and working == torch.float32:
        yield _each(evidence, lambda t: cut_to_tf32(t))
        yield _each(evidence, lambda t: cut_to_tf32(t, half=1 << 12))


def _each(evidence: Evidence, change: Callable[[Tensor], Tensor]) -> dict[str, Tensor | None]:
    return {
        name: t if t is None or not t.is_floating_point() else change(t)
        for name, t in evidence.inputs.items()
    }


def _alternating(t: Tensor) -> Tensor:
    places = torch.arange(t.numel(), device=t.device) * 2654435761 >> 16
    return (places % 2 * 2 - 1).to(t.dtype).reshape(t.shape)
