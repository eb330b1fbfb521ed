"""Attention and layer normalization in int8: judged as the products in `quantization`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from kerneltruth.tasks.changed_rules import ChangedRule
from kerneltruth.tasks.claims import Evidence
from kerneltruth.tasks.explained import LENIENT, OUTPUTS, STRICT, explained, how, judge
from kerneltruth.tasks.misquantized.int8 import of_quantizers
from kerneltruth.tasks.quantized import (
    Member,
    NamedQuantizations,
    Quantized,
    bilinear,
    exact,
    quantize,
    settled,
)
from kerneltruth.tasks.scalings import RIGHT, Quantizer
from kerneltruth.tasks.spec import Dim, Task, Variants, task

_SCALES_OF_SCORES = (
    ("tensor", "tensor"),
    ("row", "row"),
    ("row", "batch"),
    ("row", "tensor"),
    ("tensor", "row"),
    ("batch", "batch"),
)


def _attention(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    return torch.softmax(scores, -1) @ value


def _attention_family(
    e: Evidence, of_scores: Quantizer = quantize, of_value: Quantizer = quantize
) -> Iterator[Member]:
    """The results by how query and key are quantized, and how value is."""
    query, key, value = (e.inputs[n] for n in ("query", "key", "value"))
    assert query is not None
    assert key is not None
    assert value is not None
    shared: dict[str, Sequence[int]] = {"tensor": (0, 1, 2), "batch": (1, 2), "row": (-1,)}
    queries, keys = ({n: of_scores(t, d) for n, d in shared.items()} for t in (query, key))
    values = [(n, of_value(value, d)) for n, d in {**shared, "column": (1,)}.items()]
    root = math.sqrt(query.shape[-1])
    for q_name, k_name in _SCALES_OF_SCORES:
        (scores,) = bilinear(
            lambda a, b: a @ b.transpose(-2, -1) / root,
            [(q_name, queries[q_name])],
            [(k_name, keys[k_name])],
            query.shape[-1],
        )
        for p_name, weights in _probabilities(scores):
            chances = [(f"{scores.name}, {p_name}", weights)]
            yield from bilinear(torch.matmul, chances, values, key.shape[1])


def _probabilities(scores: Member) -> Iterator[tuple[str, Quantized]]:
    """Softmax of the scores, as floats and quantized in the usual two ways."""
    chances = torch.softmax(scores.values, -1)
    if chances.numel() == 0:
        yield "float", exact(chances)
        return
    # exp of a score that is off by d is off by the factor exp(d), and so is the sum.
    off = scores.allowance() + 2.0**-21 * (1 + scores.values.abs())
    slack = (chances * torch.expm1(2 * off.amax(-1, keepdim=True))).clamp(max=1.0)
    yield "float", Quantized(values=chances, slack=slack)
    yield "unit", quantize(chances, (), slack=slack)
    yield "row", quantize(chances, (-1,), slack=slack)


def _normalized(x: Quantized, like: Tensor, dims: tuple[int, ...], eps: float) -> Quantized:
    """(x - mean) / sqrt(variance + eps), with the statistics of `like`."""
    mean = like.mean(dims, keepdim=True)
    rate = torch.rsqrt((like - mean).square().mean(dims, keepdim=True) + eps)
    values = (x.values - mean) * rate
    moved = x.slack if like is x.values else torch.zeros_like(x.slack)
    share = moved.mean(dims, keepdim=True) + values.abs() * (values.abs() * moved).mean(
        dims, keepdim=True
    )
    largest = like.abs().amax(dims, keepdim=True)
    rounding = 2.0**-21 * (rate * largest * (1 + values.abs()) + values.abs())
    return Quantized(values=values, slack=rate * (x.slack + share) + rounding)


def _affine(n: Quantized, weight: Quantized | None, bias: Tensor | None) -> Quantized:
    values, slack = n.values, n.slack
    if weight is not None:
        slack = slack * (weight.values.abs() + weight.slack) + values.abs() * weight.slack
        values = values * weight.values
    rounding = 2.0**-22 * values.abs()
    if bias is not None:
        rounding = rounding + 2.0**-22 * bias.abs()
        values = values + bias
    return Quantized(values=values, slack=slack + rounding)


def _forms(
    t: Quantized, shared: dict[str, tuple[int, ...]], quantizer: Quantizer = quantize
) -> NamedQuantizations:
    """A tensor as it is, and quantized with each sharing of scales."""
    return [
        ("float", t),
        *((name, quantizer(t.values, over, slack=t.slack)) for name, over in shared.items()),
    ]


def _layernorm_family(e: Evidence, quantizer: Quantizer = quantize) -> Iterator[Member]:
    """What may be quantized: the input, what is normalized, the weight, the output; not nothing."""
    x, weight, bias = e.inputs["input"], e.inputs["weight"], e.inputs["bias"]
    assert x is not None
    last = tuple(range(-len(e.scalars["normalized_shape"]), 0))
    shared = {"tensor": tuple(range(x.ndim)), "row": last}
    weights: list[tuple[str, Quantized | None]] = [("float", None)]
    if weight is not None:
        whole = {"tensor": tuple(range(weight.ndim))}
        weights = [(n, q) for n, q in _forms(exact(weight), whole, quantizer)]
    inputs = [(name, q, q.values) for name, q in _forms(exact(x), shared, quantizer)]
    inputs += [(f"{name}, float statistics", q, x) for name, q, _ in inputs[1:]]
    for i_name, inner, like in inputs:
        normal = _normalized(inner, like, last, e.scalars["eps"])
        for n_name, middle in _forms(normal, shared, quantizer):
            for w_name, w in weights:
                for o_name, out in _forms(_affine(middle, w, bias), shared, quantizer):
                    names = (i_name, n_name, w_name, o_name)
                    if any(name != "float" for name in names):
                        yield settled(" > ".join(names), out)


def _attention_w8a8(e: Evidence) -> Iterator[Member]:
    """The results with one way to quantize throughout."""
    for top, quantizer in RIGHT.items():
        for member in _attention_family(e, quantizer, quantizer):
            yield replace(member, name=_named(member.name, top))


def _layernorm_w8a8(e: Evidence) -> Iterator[Member]:
    for top, quantizer in RIGHT.items():
        for member in _layernorm_family(e, quantizer):
            yield replace(member, name=_named(member.name, top))


def _named(choice: str, top: str) -> str:
    return f"{choice}, on {top}"


def _on_each(choice: str) -> tuple[str, ...]:
    return tuple(_named(choice, top) for top in RIGHT)


def _as_float(x: Tensor, over: Sequence[int]) -> Quantized:
    return exact(x)


def _changed_attention(e: Evidence, quantizers: Sequence[Quantizer]) -> Iterator[Member]:
    """The results where all of query, key and value, or the value alone, are quantized so."""
    for quantizer in quantizers:
        yield from _attention_family(e, quantizer, quantizer)
        yield from _attention_family(e, of_value=quantizer)


def _attention_in_part(e: Evidence) -> Iterator[Member]:
    yield from _attention_family(e, of_value=_as_float)
    yield from _attention_family(e, of_scores=_as_float)


def _changed_layernorm(e: Evidence, quantizers: Sequence[Quantizer]) -> Iterator[Member]:
    for quantizer in quantizers:
        yield from _layernorm_family(e, quantizer)


_CHANGES = {
    "attention_w8a8": (
        *of_quantizers(_changed_attention),
        ChangedRule(
            rule="fake_quantization",
            words="the value, or the query and the key, are not quantized",
            claims=partial(explained, family=_attention_in_part),
        ),
    ),
    "layernorm_w8a8": of_quantizers(_changed_layernorm),
}


_DECLARED: tuple[Task, ...] = (
    task(
        "attention_w8a8(query[B, S, D], key[B, T, D], value[B, T, D])",
        category="Quantization",
        dims={
            "B": "batch",
            "S": Dim(symbol="S", role="spatial"),
            "T": Dim(symbol="T", role="contracted", low=1),
            "D": Dim(symbol="D", role="contracted", low=1, high=256),
        },
        dtypes=("float32",),
        values=(-4.0, 4.0),
        outputs=OUTPUTS,
        reference=_attention,
        claims=partial(
            judge,
            family=_attention_w8a8,
            usual=_on_each("row x row, float x row"),
            thresholds=LENIENT,
        ),
        description="softmax(query @ key.T / sqrt(D)) @ value for each batch. "
        + how(
            """query, key and value are quantized to symmetric int8, each with one scale per row
            (token), per batch or per tensor, value also per column of a batch (query and key may
            not have per-batch or per-tensor scales beside per-row ones, save key with query per
            row and query per tensor with key per row); dividing by sqrt(D) before or after is the
            same. The scores and their softmax stay in float32; the probabilities may be
            multiplied with value as they are, or be quantized to 1 / 127 or per row.""",
            LENIENT,
        ),
        flops="4*B*S*T*D + 5*B*S*T",
        benchmark={"B": 2, "S": 16, "T": 16, "D": 32},
        perf=(
            {"B": 16, "S": 512, "T": 512, "D": 64},
            {"B": 32, "S": 2048, "T": 2048, "D": 64},
            {"B": 64, "S": 4096, "T": 4096, "D": 128},
        ),
    ),
    task(
        "layernorm_w8a8(input[*input_shape], normalized_shape:=weight_shape, "
        "weight[*weight_shape]?, bias[*weight_shape]?, eps=1e-5)",
        category="Quantization",
        dims={"M": "batch", "N": Dim(symbol="N", role="reduced", low=1)},
        where={
            "input_shape": Variants("_rank", {1: "M, N", 2: "M, 2, N"}),
            "weight_shape": Variants("_rank", {1: "N", 2: "2, N"}),
        },
        attributes={"eps": (1e-3,)},
        extended={"_rank": (2,)},
        dtypes=("float32",),
        outputs=OUTPUTS,
        reference=lambda input, normalized_shape, weight, bias, eps: F.layer_norm(
            input, normalized_shape, weight, bias, eps
        ),
        claims=partial(
            judge,
            family=_layernorm_w8a8,
            usual=_on_each("float > float > float > row"),
            thresholds=STRICT,
        ),
        description="""Layer normalization over the last dims, which are normalized_shape:
            (x - mean) / sqrt(variance + eps) with the biased variance, times weight and plus bias
            where these are given. """
        + how(
            """at least one of the input, the normalized values, the weight and the result is
            quantized to symmetric int8 and back, with one scale per row (over normalized_shape)
            or per tensor; the usual choice is the result, per row. Mean and variance are computed
            in float32, of the input or of the quantized input.""",
            STRICT,
        ),
        flops="10*M*N",
        benchmark={"M": 16, "N": 128},
        perf=({"M": 1024, "N": 1024}, {"M": 8192, "N": 4096}, {"M": 16384, "N": 8192}),
    ),
)
TASKS = tuple(replace(task, changed_rules=_CHANGES[task.name]) for task in _DECLARED)
