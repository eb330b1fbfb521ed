"""Fused operators without products against NumPy, SciPy and hand-written loops, in float64."""

import math

import mpmath
import numpy as np
import pytest
import scipy.special
import torch
from fusions import assert_close, draw_uniform, gelu, normalized, reference_of

from kerneltruth.documents.case import Case
from kerneltruth.oracle.bounds import Policy
from kerneltruth.oracle.expectation_builder import expect
from kerneltruth.tasks.kernelbenchx import (
    fusion_a_index,
    fusion_a_loss,
    fusion_a_normalization,
    fusion_a_pointwise,
    fusion_a_pooling,
    fusion_a_reduce,
)

TASKS = {
    t.name: t
    for module in (
        fusion_a_index,
        fusion_a_loss,
        fusion_a_normalization,
        fusion_a_pointwise,
        fusion_a_pooling,
        fusion_a_reduce,
    )
    for t in module.TASKS
}


def reference(name, **given):
    return reference_of(TASKS[name], **given)


@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_add_gelu_scales_the_second_summand(approximate):
    x, y = draw_uniform(3, 4), draw_uniform(4)
    got = reference("fused_add_gelu", input=x, other=y, alpha=-2, approximate=approximate)
    assert_close(got, gelu(x - 2 * y, approximate))


@pytest.mark.parametrize("dim", [None, 0, -1, (0, 1)])
def test_add_mean_and_exp_mean_average_over_dim(dim):
    x, y = draw_uniform(3, 4), draw_uniform(3, 4, seed=1)
    got = reference("fused_add_mean", input=x, other=y, alpha=0.5, dim=dim, keepdim=True)
    assert_close(got, (x + 0.5 * y).mean(dim, keepdims=True).reshape(got.shape))
    assert_close(reference("fused_exp_mean", input=x, dim=dim), np.exp(x).mean(dim))


def test_add_mul_groupnorm_multiplies_by_the_second_input_again():
    x, y = draw_uniform(2, 6, 3, 2), draw_uniform(1, 6, 1, 1)
    weight, bias = draw_uniform(6), draw_uniform(6, seed=1)
    got = reference(
        "fused_add_mul_groupnorm", input1=x, input2=y, weight=weight, bias=bias, num_groups=3
    )
    groups = normalized(((x + y) * y).reshape(2, 3, -1), -1).reshape(x.shape)
    assert_close(got, groups * weight[:, None, None] + bias[:, None, None])


def test_pooled_similarity_counts_its_padding():
    x, y = draw_uniform(2, 3, 4, 5), draw_uniform(2, 3, 4, 5, seed=1)
    got = reference(
        "fused_avg_pool2d_cosine_similarity", x1=x, x2=y, kernel_size=2, stride=3, padding=1
    )
    cosine = (x * y).sum(1) / np.linalg.norm(x, axis=1) / np.linalg.norm(y, axis=1)
    padded = np.pad(cosine, ((0, 0), (1, 1), (1, 1)))
    assert got.shape == (2, 1, 2, 2)
    for n, i, j in np.ndindex(2, 2, 2):
        assert_close(got[n, 0, i, j], padded[n, 3 * i : 3 * i + 2, 3 * j : 3 * j + 2].sum() / 4)


def windows(length, kernel, stride, padding, ceil_mode):
    """Ranges of a padded row, by the rule of the description."""
    count = (length + 2 * padding - kernel) / stride
    count = (math.ceil if ceil_mode else math.floor)(count) + 1
    return [
        range(i * stride, i * stride + kernel)
        for i in range(count)
        if i * stride < length + padding
    ]


@pytest.mark.parametrize("ceil_mode", [False, True])
@pytest.mark.parametrize("include", [False, True])
@pytest.mark.parametrize("stride", [None, 2])
def test_pooled_cosines_are_padded_with_zeros(ceil_mode, include, stride):
    x = draw_uniform(1, 2, 9)
    got = reference(
        "fused_cos_avg_pool1d",
        input=x, kernel_size=4, stride=stride, padding=1, ceil_mode=ceil_mode,
        count_include_pad=include,
    )  # fmt: skip
    ranges = windows(9, 4, stride or 4, 1, ceil_mode)
    assert got.shape[-1] == len(ranges)
    for c in range(2):
        for place, window in enumerate(ranges):
            inside = [math.cos(x[0, c, i - 1]) for i in window if 0 <= i - 1 < 9]
            padded = sum(i < 11 for i in window)
            assert_close(got[0, c, place], sum(inside) / (padded if include else len(inside)))


def test_cosines_and_their_signs_are_those_of_mpmath():
    x = np.array([0.0, 1.5707, 1.5709, -4.7, 100.0, 1e6, -3.0])
    cosine, sign = reference("fused_cos_signbit", input=x)
    assert_close(cosine, [float(mpmath.cos(v)) for v in x])
    assert sign.tolist() == [mpmath.cos(v) < 0 for v in x]


@pytest.mark.parametrize("margin", [0, 0.5, -0.5])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_cosine_embedding_loss_pulls_together_or_pushes_apart(margin, reduction):
    x, y = draw_uniform(6, 4), draw_uniform(6, 4, seed=1)
    y[0] = 0
    target = np.array([1.0, 1, 1, -1, -1, -1])
    got = reference(
        "fused_cosine_embedding_loss_with_normalization",
        input1=x, input2=y, target=target, margin=margin, reduction=reduction,
    )  # fmt: skip
    norms = np.linalg.norm(x, axis=1) * np.maximum(np.linalg.norm(y, axis=1), 1e-12)
    cosine = (x * y).sum(1) / norms
    losses = np.where(target > 0, 1 - cosine, np.maximum(cosine - margin, 0))
    want = {"none": losses, "mean": losses.mean(), "sum": losses.sum()}[reduction]
    np.testing.assert_allclose(got, want, atol=1e-9)


def cross_entropy(logs, target, weight, ignored, smoothing, reduction):
    losses, weights = [], []
    for row, t in zip(logs, target, strict=True):
        if t == ignored:
            losses.append(0.0)
            continue
        spread = -(weight * row).sum() / len(row)
        losses.append(-(1 - smoothing) * weight[t] * row[t] + smoothing * spread)
        weights.append(weight[t])
    total = sum(losses)
    return {"none": losses, "sum": total, "mean": total / sum(weights)}[reduction]


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_cross_entropies_are_weighted_and_skip_rows(smoothing, reduction):
    x, weight = draw_uniform(5, 4), draw_uniform(4) ** 2 + 0.1
    target = np.array([0, 3, -100, 1, 3])
    given = {"weight": weight, "label_smoothing": smoothing, "reduction": reduction}
    logs = scipy.special.log_softmax(x, 1)
    want = cross_entropy(logs, target, weight, -100, smoothing, reduction)
    assert_close(
        reference("fused_cross_entropy_log_softmax", input=x, target=target, **given), want
    )
    loss, output = reference(
        "fused_cross_entropy_softmax_layernorm",
        logits=x, targets=target, normalized_shape=4, **given,
    )  # fmt: skip
    assert_close(loss, want)
    assert_close(output, normalized(scipy.special.softmax(x, 1), -1))


def test_log_softmax_along_rows_comes_before_the_one_of_the_loss():
    x, target = draw_uniform(3, 4), np.array([0, 3, 1])
    got = reference("fused_cross_entropy_log_softmax", input=x, target=target, weight=None, dim=0)
    logs = scipy.special.log_softmax(scipy.special.log_softmax(x, 0), 1)
    assert_close(got, -logs[range(3), target].mean())


@pytest.mark.parametrize("norm", [1.0, 2.0])
def test_embeddings_beyond_the_norm_are_shortened(norm):
    weight, other = draw_uniform(6, 3), draw_uniform(2, 4, 3)
    indices = np.array([[0, 5, 5, 2], [1, 3, 0, 4]])
    got = reference(
        "fused_embedding_add_tanh",
        input_indices=indices, weight=weight, other=other, max_norm=2.0, norm_type=norm,
    )  # fmt: skip
    for at in np.ndindex(2, 4):
        row = weight[indices[at]]
        size = (np.abs(row) ** norm).sum() ** (1 / norm)
        row = row * 2 / (size + 1e-7) if size > 2 else row
        assert_close(got[at], np.tanh(row + other[at]))


def test_the_padding_row_is_looked_up_like_any_other():
    weight, other = draw_uniform(3, 2), np.zeros(2)
    got = reference(
        "fused_embedding_add_tanh",
        input_indices=np.array([0, 1]), weight=weight, other=other, padding_idx=0,
    )  # fmt: skip
    assert_close(got, np.tanh(weight[:2]))


@pytest.mark.parametrize("dim", [0, 1, -1, -2])
def test_gather_reads_along_dim_and_fills_over_nan(dim):
    x = draw_uniform(4, 5)
    x[0, 0] = np.nan
    index = np.array([[0, 3, 2], [1, 0, 3]])
    mask = np.array([[True], [False]])
    got = reference("fused_gather_masked_fill", input=x, dim=dim, index=index, mask=mask, value=7.5)
    for i, j in np.ndindex(2, 3):
        there = x[i, index[i, j]] if dim % 2 else x[index[i, j], j]
        assert got[i, j] == (7.5 if mask[i, 0] else there)


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_index_select_compares_what_it_selects(dim):
    x, index = np.sign(draw_uniform(4, 4)), np.array([3, 0, 3])
    other = np.sign(draw_uniform(4, 3) if dim % 2 else draw_uniform(3, 4))
    got = reference("fused_index_select_eq", input=x, dim=dim, index=index, other=other)
    assert got.tolist() == (np.take(x, index, dim) == other).tolist()


@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_least_gelu_and_where_it_is(approximate):
    x = draw_uniform(4, 5)
    y = gelu(x, approximate)
    assert_close(reference("fused_gelu_min", input=x, approximate=approximate), y.min())
    least, where = reference("fused_gelu_min", input=x, approximate=approximate, dim=-1)
    assert_close(least, y.min(-1))
    assert where.tolist() == y.argmin(-1).tolist()


def test_the_least_gelu_is_not_that_of_half_the_function():
    # x * erf(x / sqrt(2)) / 2, without the other half of the product, has its minimum at 0.
    least = reference("fused_gelu_min", input=np.linspace(-3, 3, 601))
    assert least == pytest.approx(-0.17, abs=1e-4)


@pytest.mark.parametrize("correction", [0, 1, 2])
@pytest.mark.parametrize("dim", [None, 0, 1])
def test_gelu_std_divides_by_degrees_of_freedom(correction, dim):
    x = draw_uniform(4, 5)
    got = reference("fused_gelu_std", input=x, dim=dim, correction=correction)
    assert_close(got, gelu(x).std(dim, ddof=correction))


def test_gelus_that_are_one_number_in_bfloat16_may_have_no_deviation():
    task = TASKS["fused_gelu_std"]
    settings = {"dim": 1, "correction": 2, "approximate": "tanh", "_rank": 3}
    attributes = {a.name: settings.get(a.name, a.default) for a in task.attributes}
    case = Case(
        task=task.key,
        dims=(("M", 1), ("N", 1)),
        attributes=tuple(attributes.items()),
        dtype="bfloat16",
        seed=0,
        literals=(("input", (-0.85546875, -0.86328125)),),
    )
    (expected,) = expect(task, case, Policy()).outputs
    assert expected.reference.isinf().all()
    # 0 / 0, where x / 0 is due.
    assert not expected.rejects(torch.full_like(expected.rounded, torch.nan))


def test_gelu_std_without_degrees_of_freedom_is_nan():
    assert np.isnan(reference("fused_gelu_std", input=draw_uniform(1)))


def test_hardshrink_shrinks_what_dropout_scaled():
    x = np.array([0.3, -0.3, 0.2, 0.25, np.nan, -9.0])
    got = reference("fused_hardshrink_dropout", input=x, p=0.5)
    np.testing.assert_array_equal(got, [0.6, -0.6, 0, 0, np.nan, -18])
    got = reference("fused_hardshrink_dropout", input=x, training=False)
    np.testing.assert_array_equal(got, [0, 0, 0, 0, np.nan, -9])


@pytest.mark.parametrize("training", [False, True])
def test_hardsigmoid_batch_norm_updates_its_statistics(training):
    x, mean, var = draw_uniform(3, 2, 4), draw_uniform(2), draw_uniform(2) ** 2 + 0.1
    weight, bias = draw_uniform(2, seed=1), draw_uniform(2, seed=2)
    got = reference(
        "fused_hardsigmoid_batch_norm",
        x=x, running_mean=mean, running_var=var, weight=weight, bias=bias, training=training,
        momentum=0.25,
    )  # fmt: skip
    m, v = (x.mean((0, 2)), x.var((0, 2))) if training else (mean, var)
    y = (x - m[:, None]) / np.sqrt(v + 1e-5)[:, None] * weight[:, None] + bias[:, None]
    assert_close(got[0] if training else got, np.clip(y / 6 + 0.5, 0, 1))
    if training:
        assert_close(got[1], 0.75 * mean + 0.25 * m)
        assert_close(got[2], 0.75 * var + 0.25 * x.var((0, 2), ddof=1))


@pytest.mark.parametrize(
    ("mode", "rounded"), [(None, lambda q: q), ("trunc", np.trunc), ("floor", np.floor)]
)
def test_stacked_tensors_are_divided(mode, rounded):
    parts = [draw_uniform(3, n) for n in (2, 1, 4)]
    divisor = draw_uniform(3, 1)
    given = {"tensors": [torch.tensor(p) for p in parts], "rounding_mode": mode}
    got = reference("fused_hstack_div", **given, divisor=divisor)
    assert_close(got, rounded(np.concatenate(parts, 1) / divisor))


def test_tensors_of_one_dim_are_joined_end_to_end():
    parts = [torch.tensor(draw_uniform(n)) for n in (2, 3, 1)]
    got = reference("fused_hstack_div", tensors=parts, divisor=np.array(2.0))
    assert_close(got, np.concatenate(parts) / 2)
