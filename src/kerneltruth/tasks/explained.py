"""Judge a quantized result: close enough to the float one, and explained by a quantized one."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from kerneltruth.tasks.arguments import Output
from kerneltruth.tasks.claims import Claim, Evidence
from kerneltruth.tasks.quantized import Member

# A published limit holds if the usual schemes stay below this part of it; otherwise a result may be
# this much worse than the worst scheme without groups.
IN_REACH = 0.5
SLACK = 1.5
# How many members, nearest first, are tried with their full allowance.
NEAREST = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """KernelBenchX's limits for a quantized result against the float one."""

    cosine: float
    l1: float
    rmse: float


STRICT = Thresholds(cosine=0.95, l1=0.05, rmse=0.1)
LENIENT = Thresholds(cosine=0.9, l1=0.1, rmse=0.15)

OUTPUTS = (Output(compare="claims"),)
_HOW = """The result has the dtype of the input and is computed in quantized arithmetic: {what}
    Symmetric int8 means codes = round(x / scale), clamped to [-128, 127] or [-127, 127], with
    scale = max|x| / 127 (or / 128) taken from the inputs of the call; ties may be rounded either
    way, and a scale of 0 gives codes of 0. Products of codes are summed exactly (int32) and then
    multiplied by the scales in float32. The result must agree within float32 rounding with one
    such choice for all elements, which a computation in floats does not, and keep cosine
    similarity >= {cosine}, relative L1 error <= {l1} and root mean square error <= {rmse} against
    the float result; where the usual choice, on 127 or 128, is not within half of a limit on these
    inputs, one and a half times the error of the worst choice without groups is the limit. Inputs
    that are not finite are not judged."""


def how(what: str, limits: Thresholds) -> str:
    """Describe how a task that quantizes `what` is judged."""
    return _HOW.format(what=what, cosine=limits.cosine, l1=limits.l1, rmse=limits.rmse)


Family = Callable[[Evidence], Iterator[Member]]


class _Latest:
    """The family of the inputs that were judged last.

    The oracle judges several outputs of one call in a row, decoys first, and making a family takes
    longer than a verdict.
    """

    def __init__(self) -> None:
        self._family: Family | None = None
        self._evidence: Evidence | None = None
        self._members: list[Member] = []

    def members(self, family: Family, evidence: Evidence) -> list[Member]:
        known = self._evidence
        if family is not self._family or known is None or not _same_call(known, evidence):
            self._members = list(family(evidence))
            self._family, self._evidence = family, evidence
        return self._members


def _same_call(one: Evidence, other: Evidence) -> bool:
    if (one.dtype, one.scalars) != (other.dtype, other.scalars):
        return False
    pairs = ((t, other.inputs[name]) for name, t in one.inputs.items())
    return all(a is b or (a is not None and b is not None and _equal(a, b)) for a, b in pairs)


def _equal(a: Tensor, b: Tensor) -> bool:
    # `torch.equal` raises for tensors of two devices.
    return a.device == b.device and torch.equal(a, b)


_LATEST = _Latest()


def judge(
    evidence: Evidence, family: Family, usual: Collection[str], thresholds: Thresholds
) -> Iterator[Claim]:
    """Return the claims about the one output of a quantized operator.

    Args:
        evidence: of the call; nothing is claimed unless inputs are finite.
        family: the results that quantized arithmetic may give.
        usual: the members that show which thresholds can be met on these inputs.
        thresholds: the published ones.
    """
    if not _has_codes(evidence):
        return
    # The dtype's own rounding may be further off than an absolute threshold.
    dtype, members = evidence.outputs[0].dtype, _members(evidence, family)
    returned = evidence.outputs[0], evidence.reference[0]
    got, truth = (_finite(t.to(torch.float64), dtype) for t in returned)
    rounded = [replace(m, values=m.values.to(dtype).to(torch.float64)) for m in members]
    yield from _close(got, truth, rounded, usual, thresholds)
    yield _of_family(evidence, members)


def explained(evidence: Evidence, family: Family) -> Iterator[Claim]:
    """Return the claim that a member of the family gives the result, if the inputs have codes."""
    if _has_codes(evidence):
        yield _of_family(evidence, _members(evidence, family))


def _has_codes(evidence: Evidence) -> bool:
    if evidence.outputs[0].numel() == 0:
        return False
    return all(t is None or bool(t.isfinite().all()) for t in evidence.inputs.values())


def _finite(x: Tensor, dtype: torch.dtype) -> Tensor:
    """An overflow of the dtype is infinite; all of it counts as the largest value."""
    top = torch.finfo(dtype).max
    return x.clamp(-top, top)


def _members(evidence: Evidence, family: Family) -> list[Member]:
    dtype = evidence.outputs[0].dtype
    members = _LATEST.members(family, evidence)
    return [replace(m, values=_finite(m.values, dtype)) for m in members]


def _of_family(evidence: Evidence, members: Sequence[Member]) -> Claim:
    out = evidence.outputs[0]
    got = _finite(out.to(torch.float64), out.dtype)
    rounding = evidence.eps * got.abs() + 2.0**-126
    off = _unexplained(got, members, rounding)
    return Claim("distance to quantized arithmetic / rounding", off, 1.0)


def _unexplained(got: Tensor, members: Sequence[Member], rounding: Tensor) -> float:
    """Return the worst element's distance to the member that explains all elements best."""
    if not bool(got.isfinite().all()):
        return math.inf
    off = [(got - m.values).abs() for m in members]
    # By the typical order of magnitude: if a code near a tie turned, even the right member is far
    # off in a few elements, and the others may differ from it only by a rounding.
    unit = rounding + 1e-3 * rounding.mean()
    typical = [float(torch.log1p(d / unit).mean()) for d in off]
    nearest = sorted(range(len(off)), key=typical.__getitem__)[:NEAREST]
    return min(float((off[i] / (members[i].allowance() + rounding)).amax()) for i in nearest)


def _close(
    got: Tensor,
    truth: Tensor,
    members: Sequence[Member],
    usual: Collection[str],
    thresholds: Thresholds,
) -> Iterator[Claim]:
    """Return the published thresholds, or the members' own errors if these exceed them."""
    plain = {m.name: distances(m.values, truth) for m in members if "groups" not in m.name}
    names = ("1 - cosine similarity", "relative L1 error", "root mean square error")
    published = (1 - thresholds.cosine, thresholds.l1, thresholds.rmse)
    found = distances(got, truth)
    reached = zip(*(plain[name] for name in usual), strict=True)
    rows = zip(names, found, reached, zip(*plain.values(), strict=True), published, strict=True)
    for name, value, usually, errors, limit in rows:
        in_reach = max(usually) <= IN_REACH * limit
        yield Claim(name, value, limit if in_reach else max(limit, SLACK * max(errors)))


def distances(got: Tensor, truth: Tensor) -> tuple[float, float, float]:
    """Return 1 - cosine similarity, relative L1 error, root mean square error."""
    error = got - truth
    sizes = float(got.norm() * truth.norm())
    off = 1 - float((got * truth).sum()) / sizes if sizes else float(bool(error.any()))
    mass = float(truth.abs().sum())
    share = float(error.abs().sum()) / mass if mass else float(bool(error.any()))
    return max(off, 0.0), share, float(error.square().mean().sqrt())
