"""Fusions with dropout in them.

Where nothing is random they are judged by a bound, else by what any fair choice of dropped elements
allows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from kerneltruth.tasks.spec import Benchmark, Claim, Dim, Evidence, Output, Scalar, Task, task

# Of a right kernel, a claim of chance is broken once in a thousand million cases at most.
_LEVEL = 1e-9
_DRAWS = 64
_TF32_EPS = 2.0**-10
_P: tuple[Scalar, ...] = (0.0, 0.25, 1.0)
_RANDOM = "training and 0 < p < 1"
_MODERATE = (-4.0, 4.0)


def _by(random: str) -> tuple[Output, ...]:
    """The one output: judged by the contract where `random` holds, else by the bound."""
    return (
        Output(compare="contract", when=random, spared=("gain",)),
        Output(when=f"not ({random})"),
    )


def _rounding(evidence: Evidence) -> float:
    """What one rounding may lose: float32 products may be TF32's."""
    return max(evidence.eps, _TF32_EPS) if evidence.dtype == "float32" else evidence.eps


def _tensor(evidence: Evidence, name: str) -> Tensor:
    value = evidence.inputs[name]
    assert value is not None
    return value


def _tail(hits: int, n: int, p: float) -> float:
    """The chance of a binomial count this far out, on its side."""
    side = range(hits, n + 1) if hits > n * p else range(hits + 1)
    logs = [
        math.lgamma(n + 1)
        - math.lgamma(k + 1)
        - math.lgamma(n - k + 1)
        + k * math.log(p)
        + (n - k) * math.log1p(-p)
        for k in side
    ]
    return min(1.0, math.fsum(math.exp(x) for x in logs))


def _furthest(variance: Tensor, step: Tensor, count: int) -> Tensor:
    """How far sums of independent terms stray at the level, by Bernstein's inequality.

    Args:
        variance: of each sum.
        step: the largest size of one of its terms.
        count: how many sums are looked at.
    """
    level = math.log(2 * max(count, 1) / _LEVEL)
    linear = step * (level / 3)
    return linear + torch.sqrt(linear.square() + 2 * level * variance)


def _worst(excess: Tensor) -> float:
    return float(excess.max()) if excess.numel() else 0.0


def _mv_logsoftmax(
    input: Tensor, vec: Tensor, p: float, training: bool, inplace: bool, dim: int
) -> Tensor:
    del inplace
    result = torch.log_softmax(input @ vec, dim)
    return torch.zeros_like(result) if training and p == 1 else result


def _dropped(evidence: Evidence) -> Iterator[Claim]:
    """Each element is 0 or the scaled value, and the share of zeros is p."""
    if not bool(torch.isfinite(evidence.reference[0]).all()):
        return
    p = float(evidence.scalars["p"])
    kept = evidence.reference[0] / (1 - p)
    sizes = _tensor(evidence, "input").abs() @ _tensor(evidence, "vec").abs()
    slack = 2 * _rounding(evidence) * (kept.abs() + (sizes.max() + sizes) / (1 - p))
    yield from _zero_or_kept(evidence.outputs[0].to(torch.float64), kept, slack, p)


def _zero_or_kept(out: Tensor, kept: Tensor, slack: Tensor, p: float) -> Iterator[Claim]:
    """Every element is 0 or the kept value within the slack, and about a share p of them is 0."""
    off = torch.minimum(out.abs(), (out - kept).abs())
    yield Claim("0 or the kept value, of what rounding allows", _worst(off / slack), 1.0)
    told_apart = kept.abs() > 4 * slack
    zeros = int((told_apart & (out.abs() < (out - kept).abs())).sum())
    rarity = -math.log10(max(_tail(zeros, int(told_apart.sum()), p), 1e-300))
    yield Claim("rarity of the share of zeros, as -log10", rarity, -math.log10(_LEVEL))


def _log_probabilities(input1: Tensor, input2: Tensor, other: Tensor, dim: int) -> Tensor:
    return torch.log_softmax(input1 * input2 + other, dim)


def _mul_add_logsoftmax_bmm(
    mat2: Tensor, p: float, training: bool, inplace: bool, **summands: Any
) -> Tensor:
    del inplace
    logs = _log_probabilities(**summands)
    return torch.bmm(torch.zeros_like(logs) if training and p == 1 else logs, mat2)


def _dropped_before_product(evidence: Evidence) -> Iterator[Claim]:
    """The products are those of a choice of dropped elements, or scatter as these do."""
    expected = evidence.reference[0]
    if not bool(torch.isfinite(expected).all()):
        return
    input1, input2, other = (_tensor(evidence, n) for n in ("input1", "input2", "other"))
    mat2, p = _tensor(evidence, "mat2"), float(evidence.scalars["p"])
    logs = _log_probabilities(input1, input2, other, evidence.scalars["dim"])
    sizes = (input1 * input2).abs() + other.abs()
    out = evidence.outputs[0].to(torch.float64)
    lost = 2 * evidence.eps * (logs.abs() + sizes + sizes.max()) / (1 - p)
    unit = _rounding(evidence)
    slack = (lost + 2 * unit * logs.abs() / (1 - p)) @ mat2.abs() + unit * out.abs()
    yield from _scattered(out - expected, slack, logs, mat2, p)
    if mat2.shape[-2] <= mat2.shape[-1] and bool((torch.linalg.cond(mat2) < 1e8).all()):
        inverse = torch.linalg.pinv(mat2)
        yield from _zero_or_kept(out @ inverse, logs / (1 - p), slack @ inverse.abs(), p)


def _scattered(off: Tensor, slack: Tensor, logs: Tensor, mat2: Tensor, p: float) -> Iterator[Claim]:
    """The products lie around those without dropout, neither too far nor too near."""
    odds, most = p / (1 - p), max(p / (1 - p), 1.0)
    variance = odds * logs.square() @ mat2.square()
    step = most * (logs.abs().unsqueeze(-1) * mat2.abs().unsqueeze(-3)).amax(-2)
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


def _transformer_block(
    input: Tensor,
    weight1: Tensor,
    weight2: Tensor,
    residual: Tensor,
    dropout_p: float,
    eps: float,
) -> Tensor:
    del dropout_p
    mixed = torch.softmax(input @ weight1, -1) @ weight2 + residual
    return F.layer_norm(mixed, mixed.shape[-1:], eps=eps)


def _dropped_in_block(evidence: Evidence) -> Iterator[Claim]:
    """Rows are normalized, and as far from the block without dropout as drawn ones are."""
    plain = evidence.reference[0]
    if not bool(torch.isfinite(plain).all()):
        return
    p, eps = float(evidence.scalars["dropout_p"]), float(evidence.scalars["eps"])
    weight2, residual = _tensor(evidence, "weight2"), _tensor(evidence, "residual")
    shares = torch.softmax(_tensor(evidence, "input") @ _tensor(evidence, "weight1"), -1)
    chance = torch.Generator().manual_seed(0)
    distances, squares = [], torch.ones(plain.shape[:-1], dtype=torch.float64)
    magnified = torch.zeros_like(squares)
    for _ in range(_DRAWS):
        kept = torch.rand(shares.shape, generator=chance, dtype=torch.float64) >= p
        mixed = (shares * kept / (1 - p)) @ weight2 + residual
        drawn = F.layer_norm(mixed, mixed.shape[-1:], eps=eps)
        distances.append(float((drawn - plain).square().mean()))
        spread = torch.sqrt(mixed.var(-1, correction=0) + eps)
        magnified = torch.maximum(magnified, mixed.abs().amax(-1) / spread)
        squares = torch.minimum(squares, drawn.square().mean(-1))
    out = evidence.outputs[0].to(torch.float64)
    slack = 4 * evidence.eps * (1 + magnified) * math.sqrt(out.shape[-1])
    yield Claim("mean of a row, of what rounding allows", _worst(out.mean(-1).abs() / slack), 1.0)
    seen = out.square().mean(-1)
    yield Claim("mean square of a row", _worst(seen / (1 + 2 * slack)), 1.0)
    yield Claim("least mean square, of the mean's", float(0.5 * squares.mean() / seen.mean()), 1.0)
    distance = float((out - plain).square().mean())
    noise = float(_rounding(evidence) * (1 + magnified.max()))
    most, least = max(distances), min(distances)
    yield Claim("distance from the block without dropout", distance, 3 * most + noise)
    # Where few elements carry the rows, none of them may be dropped.
    if least > most / 4:
        yield Claim("least distance, of the distance", 0.2 * least / max(distance, 1e-300), 1.0)


_BATCH = {
    "B": Dim(symbol="B", role="batch", low=1),
    "M": Dim(symbol="M", role="spatial", low=1),
    "K": Dim(symbol="K", role="contracted", low=1),
    "N": Dim(symbol="N", role="channel", low=1),
}

TASKS: tuple[Task, ...] = (
    task(
        "fused_mul_add_logsoftmax_dropout_bmm(input1[B, M, K], "
        "input2[*((B, M, K) if _input2 == 'same' else (M, K))], other[B, M, K], mat2[B, K, N], "
        "p=0.5, training=True, inplace=False, dim=-1, _input2='same')",
        category="Fusion",
        dims=_BATCH,
        attributes={"p": _P, "training": (False,), "dim": (1, 2, 0), "_input2": ("plane",)},
        core={"p": (0.0,), "training": (False,)},
        constraints=(f"not ({_RANDOM}) or (B * M >= 32 and 2 <= K <= N and (dim != 0 or B >= 2))",),
        values=_MODERATE,
        outputs=_by(_RANDOM),
        contract=_dropped_before_product,
        random=True,
        reference=_mul_add_logsoftmax_bmm,
        description="""log_softmax of input1 * input2 + other along `dim` of [B, M, K] (input2
            broadcasts); then dropout: with `training` each element becomes 0 with probability p,
            by itself, and is divided by 1 - p otherwise (p of 1 gives zeros), while without
            `training` nothing changes; last the batched matrix product with mat2[B, K, N].
            `inplace` speaks of intermediate results: inputs stay as they are.""",
        flops="2*B*M*K*N + 10*B*M*K",
        benchmark=Benchmark(dims={"B": 2, "M": 16, "K": 32, "N": 32}, distribution="normal"),
        perf=(
            {"B": 8, "M": 256, "K": 256, "N": 256},
            {"B": 32, "M": 1024, "K": 512, "N": 512},
            {"B": 64, "M": 2048, "K": 1024, "N": 1024},
        ),
    ),
    task(
        "fused_mv_logsoftmax_dropout(input[M, K], vec[K], p=0.5, training=True, inplace=False, "
        "dim=0)",
        category="Fusion",
        dims={
            "M": Dim(symbol="M", role="reduced", low=1),
            "K": Dim(symbol="K", role="contracted", low=1),
        },
        attributes={"p": _P, "training": (False,), "dim": (-1,)},
        constraints=(f"not ({_RANDOM}) or M >= 80",),
        values=_MODERATE,
        outputs=_by(_RANDOM),
        contract=_dropped,
        random=True,
        reference=_mv_logsoftmax,
        description="""The matrix-vector product of input[M, K] and vec[K]; log_softmax over its M
            elements (dim is 0 or -1); last dropout: with `training` each element becomes 0 with
            probability p, by itself, and is divided by 1 - p otherwise (p of 1 gives zeros);
            without `training` nothing changes. `inplace` speaks of intermediate results.""",
        flops="2*M*K + 6*M",
        benchmark=Benchmark(dims={"M": 128, "K": 64}, distribution="normal"),
        perf=({"M": 1024, "K": 1024}, {"M": 8192, "K": 8192}, {"M": 32768, "K": 8192}),
    ),
    task(
        "fused_transformer_block(input[*((M, D) if _rank == 2 else (M, 2, D))], weight1[D, K], "
        "weight2[K, O], residual[*((M, O) if _rank == 2 and _residual == 'same' else "
        "(M, 2, O) if _residual == 'same' else (O,))], dropout_p=0.1, eps=1e-5, _rank=2, "
        "_residual='same')",
        category="Fusion",
        dims={
            "M": Dim(symbol="M", role="batch", low=1),
            "D": Dim(symbol="D", role="contracted", low=1),
            "K": Dim(symbol="K", role="contracted", low=1),
            "O": Dim(symbol="O", role="channel", low=2),
        },
        attributes={
            "dropout_p": (0.0, 0.5),
            "eps": (1e-2, 1.0),
            "_rank": (3,),
            "_residual": ("row",),
        },
        core={"dropout_p": (0.0,), "eps": (1e-2,)},
        constraints=("dropout_p == 0 or M >= 32",),
        # Larger values leave one share of 1 per row, which tells nothing about dropout.
        values=(-1.5, 1.5),
        outputs=_by("0 < dropout_p < 1"),
        contract=_dropped_in_block,
        random=True,
        reference=_transformer_block,
        description="""softmax of input @ weight1 along the last dim, with input[..., D] and
            weight1[D, K]; then dropout: each element becomes 0 with probability dropout_p, by
            itself, and is divided by 1 - dropout_p otherwise (there is no evaluation mode); then
            the product with weight2[K, O]; then `residual` is added, which broadcasts to the
            product; last layer normalization over the last dim, without weight and bias: less the
            mean, over the square root of the biased variance plus eps.""",
        flops="2*M*D*K + 2*M*K*O + 6*M*K + 9*M*O",
        benchmark=Benchmark(dims={"M": 32, "D": 32, "K": 48, "O": 32}, distribution="normal"),
        perf=(
            {"M": 512, "D": 512, "K": 512, "O": 512},
            {"M": 4096, "D": 1024, "K": 4096, "O": 1024},
            {"M": 16384, "D": 4096, "K": 4096, "O": 4096},
        ),
    ),
)
