"""Judge dropout within an operator, where no element of the result is itself kept or dropped.

Nothing is claimed if nothing is random (a bound judges that) or if the result without
dropout is not finite. `dropped` judges operators that end in dropout.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor

from kerneltruth.tasks.dropped import SURPRISE, surprise
from kerneltruth.tasks.gpu import WELFORD_ULPS
from kerneltruth.tasks.spec import Claim, Evidence

# Each claim about chance rejects a right kernel at most once in 10^9 cases.
_LEVEL = 1e-9
_DRAWS = 64
_TF32_EPS = 2.0**-10
# Beyond these sizes a claim about every element would cost more than the operator.
_SOLVED = 2**18
_DRAWN = 2**17


def _rounding(evidence: Evidence) -> float:
    """Return the relative error of one rounding: float32 products may use TF32."""
    return max(evidence.eps, _TF32_EPS) if evidence.dtype == "float32" else evidence.eps


def _tensor(evidence: Evidence, name: str) -> Tensor:
    value = evidence.inputs[name]
    assert value is not None
    return value


def _chance(evidence: Evidence, name: str) -> float | None:
    """Return the chance that an element is dropped; None if nothing is random or can be claimed."""
    p = float(evidence.scalars[name])
    random = 0 < p < 1 and evidence.scalars.get("training", True)
    return p if random and bool(torch.isfinite(evidence.reference[0]).all()) else None


def _furthest(variance: Tensor, step: Tensor, count: int) -> Tensor:
    """Return how far sums of independent terms deviate at the level, by Bernstein's inequality.

    Args:
        variance: of each sum.
        step: the largest size of one of its terms.
        count: how many sums are examined.
    """
    level = math.log(2 * max(count, 1) / _LEVEL)
    linear = step * (level / 3)
    return linear + torch.sqrt(linear.square() + 2 * level * variance)


def _worst(excess: Tensor) -> float:
    return float(excess.max()) if excess.numel() else 0.0


def _zero_or_kept(out: Tensor, kept: Tensor, slack: Tensor, p: float) -> Iterator[Claim]:
    """Claim that each element is 0 or the kept value within the slack, and about a share p is 0."""
    off = torch.minimum(out.abs(), (out - kept).abs())
    yield Claim("0 or the kept value, of what rounding allows", _worst(off / slack), 1.0)
    told_apart = kept.abs() > 4 * slack
    zeros = int((told_apart & (out.abs() < (out - kept).abs())).sum())
    surprising = surprise(zeros, int(told_apart.sum()), p)
    yield Claim("surprise at the share of zeros", surprising, SURPRISE)


def dropped_before_product(evidence: Evidence) -> Iterator[Claim]:
    """Claim that the products belong to a choice of dropped elements, or scatter as these do."""
    expected, p = evidence.reference[0], _chance(evidence, "p")
    if p is None:
        return
    input1, input2, other = (_tensor(evidence, n) for n in ("input1", "input2", "other"))
    mat2 = _tensor(evidence, "mat2")
    logs = torch.log_softmax(input1 * input2 + other, evidence.scalars["dim"])
    sizes = (input1 * input2).abs() + other.abs()
    out = evidence.outputs[0].to(torch.float64)
    lost = evidence.eps * (logs.abs() + sizes + sizes.amax(evidence.scalars["dim"], True))
    unit = _rounding(evidence)
    slack = (lost + unit * logs.abs()) @ mat2.abs() / (1 - p) + unit * out.abs()
    yield from _scattered(out - expected, slack, logs, mat2, p)
    rows, columns = mat2.shape[-2:]
    solvable = rows <= columns and mat2.numel() <= _SOLVED
    if solvable and bool((torch.linalg.cond(mat2) < 1e8).all()):
        inverse = torch.linalg.pinv(mat2)
        yield from _zero_or_kept(out @ inverse, logs / (1 - p), slack @ inverse.abs(), p)


def _scattered(off: Tensor, slack: Tensor, logs: Tensor, mat2: Tensor, p: float) -> Iterator[Claim]:
    """Claim that the products lie around those without dropout, neither too far nor too near."""
    odds, most = p / (1 - p), max(p / (1 - p), 1.0)
    variance = odds * logs.square() @ mat2.square()
    step = most * logs.abs().amax(-1, True) * mat2.abs().amax(-2, True)
    limit = _furthest(variance, step, off.numel()) + slack
    yield Claim("distance of an element, of what chance allows", _worst(off.abs() / limit), 1.0)
    # A wrong scale moves all elements along the products themselves.
    expected = logs @ mat2
    weight = logs * (expected @ mat2.mT)
    total = _furthest(odds * weight.square().sum(), most * weight.abs().max(), 1)
    total = total + (slack * expected.abs()).sum()
    yield Claim("distance of the scale", float((off * expected).sum().abs() / total), 1.0)
    # Without dropout nothing would scatter at all.
    scatter = float((off.square().sum() + slack.square().sum()) / variance.sum())
    yield Claim("expected scatter, of what is seen", 1 / max(scatter, 1e-300), 50.0)


def dropped_in_block(evidence: Evidence) -> Iterator[Claim]:
    """Claim that rows are normalized and lie where drawn ones lie, within wide limits."""
    plain, eps = evidence.reference[0], float(evidence.scalars["eps"])
    p = _chance(evidence, "dropout_p")
    if p is None:
        return
    weight2, residual = _tensor(evidence, "weight2"), _tensor(evidence, "residual")
    every = -(-plain.numel() // plain.shape[-1] * max(weight2.shape) // _DRAWN) or 1
    residual = residual[::every] if residual.ndim == plain.ndim else residual
    plain, out = plain[::every], evidence.outputs[0].to(torch.float64)[::every]
    scores = _tensor(evidence, "input")[::every] @ _tensor(evidence, "weight1")
    shares = torch.softmax(scores, -1)
    mixed = torch.stack([(shares * kept) @ weight2 + residual for kept in _choices(shares, p)])
    drawn = F.layer_norm(mixed, mixed.shape[-1:], eps=eps)
    spread = torch.sqrt(mixed.var(-1, correction=0) + eps)
    magnified = 1 + (mixed.abs().amax(-1) / spread).amax(0)
    # A mean combined from means of parts is off by more than its own rounding.
    slack = (2 + WELFORD_ULPS) * evidence.eps * magnified
    yield Claim("mean of a row, of what rounding allows", _worst(out.mean(-1).abs() / slack), 1.0)
    seen = out.square().mean(-1)
    yield Claim("mean square of a row", _worst(seen / (1 + 4 * slack)), 1.0)
    least = 0.1 * drawn.square().mean(-1).amin(0)
    yield Claim("shortfall of a row's least mean square", _worst(least - seen - slack), 0.0)
    low, high = drawn.amin(0), drawn.amax(0)
    noise = 2 * (_rounding(evidence) * magnified).unsqueeze(-1)
    off = (out - (low + high) / 2).abs() / (1.5 * (high - low) + noise)
    yield Claim("distance of an element, of what drawn ones show", _worst(off), 1.0)
    distances = (drawn[:_DRAWS] - plain).square().flatten(1).mean(1)
    # If few elements carry the rows, none of them may be dropped.
    if float(distances.min()) > float(distances.max()) / 4:
        distance = float((out - plain).square().mean())
        nearest = float(0.2 * distances.min())
        yield Claim("least distance, of the distance", nearest / max(distance, 1e-300), 1.0)


def _choices(shares: Tensor, p: float) -> Iterator[Tensor]:
    """Return factors of the shares: drawn ones, then those that drop the largest shares, or all."""
    chance = torch.Generator().manual_seed(0)
    for _ in range(_DRAWS):
        # A CPU generator draws the same numbers for any device.
        drawn = torch.rand(shares.shape, generator=chance, dtype=torch.float64, device="cpu")
        yield (drawn.to(shares.device) >= p) / (1 - p)
    rank = shares.argsort(-1, descending=True).argsort(-1)
    for dropped in (rank == 0, rank == 1, rank < 2, rank < 3, rank >= 0):
        yield ~dropped / (1 - p)
