"""Fused products and convolutions against NumPy, SciPy and loops, in float64."""

import numpy as np
import pytest
import scipy.special
from fusions import assert_close, draw_uniform, gelu, normalized, reference_of

from kerneltruth.tasks.kernelbenchx import (
    fusion_a_attention,
    fusion_a_bmm,
    fusion_a_convolution,
    fusion_a_linear,
)

TASKS = {
    t.name: t
    for module in (fusion_a_attention, fusion_a_bmm, fusion_a_convolution, fusion_a_linear)
    for t in module.TASKS
}


def reference(name, **given):
    return reference_of(TASKS[name], **given)


def convolved(x, weight, bias=None, stride=(1, 1), pad=((0, 0), (0, 0)), dilation=(1, 1), groups=1):
    x = np.pad(x, ((0, 0), (0, 0), *pad))
    many, each, kh, kw = weight.shape
    height = (x.shape[2] - dilation[0] * (kh - 1) - 1) // stride[0] + 1
    width = (x.shape[3] - dilation[1] * (kw - 1) - 1) // stride[1] + 1
    out = np.zeros((x.shape[0], many, height, width))
    for n, o, i, j in np.ndindex(out.shape):
        first = o // (many // groups) * each
        for c, r, s in np.ndindex(each, kh, kw):
            at = (i * stride[0] + r * dilation[0], j * stride[1] + s * dilation[1])
            out[n, o, i, j] += x[n, first + c, *at] * weight[o, c, r, s]
        out[n, o, i, j] += 0 if bias is None else bias[o]
    return out


@pytest.mark.parametrize(("causal", "scale"), [(False, None), (True, None), (True, 0.7)])
def test_attention_is_softmax_of_scores_times_values(causal, scale):
    q, k, v = (draw_uniform(2, 2, 5, 3, seed=i) for i in range(3))
    got = reference("attention", q=q, k=k, v=v, causal=causal, softmax_scale=scale)
    for b, h, i in np.ndindex(2, 2, 5):
        seen = i + 1 if causal else 5
        scores = k[b, h, :seen] @ q[b, h, i] * (scale or 3**-0.5)
        assert_close(got[b, h, i], scipy.special.softmax(scores) @ v[b, h, :seen])


@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_products_without_dropout_are_activated(approximate):
    x, y, z = draw_uniform(2, 3, 4), draw_uniform(2, 4, 5), draw_uniform(5)
    product = x @ y
    given = {"input1": x, "input2": y, "training": False, "approximate": approximate}
    assert_close(reference("fused_bmm_dropout_gelu", **given), gelu(product, approximate))
    rms = product / np.sqrt((product**2).mean(-1, keepdims=True) + 0.5)
    given |= {"normalized_shape": 5, "eps": 0.5}
    assert_close(reference("fused_bmm_rmsnorm_gelu_dropout", **given), gelu(rms, approximate))
    got = reference("fused_bmm_rmsnorm_gelu_dropout_sub", other=z, **given)
    assert_close(got, gelu(rms, approximate) - z)


def test_a_kept_element_is_scaled_where_dropout_stands():
    x, y, z = draw_uniform(2, 3, 4), draw_uniform(2, 4, 5), draw_uniform(3, 1)
    product = x @ y
    assert_close(reference("fused_bmm_dropout_gelu", input1=x, input2=y, p=0.75), gelu(4 * product))
    rms = product / np.sqrt((product**2).mean(-1, keepdims=True) + 1e-5)
    given = {"input1": x, "input2": y, "normalized_shape": 5, "dropout_p": 0.5}
    assert_close(reference("fused_bmm_rmsnorm_gelu_dropout", **given), 2 * gelu(rms))
    got = reference("fused_bmm_rmsnorm_gelu_dropout_sub", other=z, **given)
    assert_close(got, 2 * gelu(rms) - z)


def test_conv2d_add_adds_a_broadcast_multiple():
    x, weight, bias, other = (
        draw_uniform(2, 4, 5, 6),
        draw_uniform(6, 2, 3, 2),
        draw_uniform(6),
        draw_uniform(6, 1, 1),
    )
    got = reference(
        "fused_conv2d_add",
        input=x, weight=weight, bias=bias, other=other,
        stride=2, padding=1, groups=2, alpha=-2,
    )  # fmt: skip
    want = convolved(x, weight, bias, (2, 2), ((1, 1), (1, 1)), groups=2)
    assert_close(got, want - 2 * other)


@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel lengths")
def test_gelu_conv2d_takes_pairs_and_pads_the_odd_one_at_the_end():
    x, weight = draw_uniform(1, 2, 5, 6), draw_uniform(3, 2, 2, 3)
    given = {"input": x, "weight": weight, "bias": None}
    got = reference("fused_gelu_conv2d", **given, stride=(2, 1), padding=(1, 0), dilation=(1, 2))
    want = convolved(x, weight, None, (2, 1), ((1, 1), (0, 0)), (1, 2))
    assert_close(got, gelu(want))
    got = reference("fused_gelu_conv2d", **given, padding="same", approximate="tanh")
    assert_close(got, gelu(convolved(x, weight, pad=((0, 1), (1, 1))), "tanh"))


@pytest.mark.parametrize("training", [True, False])
def test_batch_norm_without_running_statistics_uses_those_of_the_batch(training):
    x, weight, bias = draw_uniform(2, 2, 4, 4), draw_uniform(3, 2, 3, 3), draw_uniform(3)
    given = {"input": x, "weight": weight, "bias": bias}
    name = "fused_dropout_relu_batch_norm_conv2d"
    want = np.maximum(normalized(convolved(x, weight, bias), (0, 2, 3)), 0)
    got = reference(name, **given, training=training, p=0.0 if training else 0.5)
    assert_close(got, want)
    assert_close(reference(name, **given, p=0.5), 2 * want)


def test_instance_norm_follows_selu():
    x, weight, bias = draw_uniform(2, 2, 4, 5), draw_uniform(3, 2, 3, 3), draw_uniform(3)
    got = reference("fused_instance_norm_selu_conv2d", input=x, weight=weight, bias=bias, eps=0.01)
    y = convolved(x, weight, bias)
    y = 1.0507009873554805 * np.where(y > 0, y, 1.6732632423543772 * np.expm1(y))
    assert_close(got, normalized(y, (2, 3), 0.01))


def test_linear_layers_are_activated():
    x, weight, bias = draw_uniform(2, 3, 4), draw_uniform(5, 4), draw_uniform(5)
    y = x @ weight.T + bias
    given = {"input": x, "weight": weight, "bias": bias}
    got = reference("fused_dropout_sigmoid_linear", **given, p=0.2)
    assert_close(got, scipy.special.expit(y) / 0.8)
    got = reference("fused_elu_linear", **given | {"input": x[0]}, alpha=0.5)
    assert_close(got, np.where(y[0] > 0, y[0], 0.5 * np.expm1(y[0])))
