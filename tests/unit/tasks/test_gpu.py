"""Operators as GPU libraries have them: the same operators, with other roundings."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from kerneltruth.tasks.gpu import OnGpu, signs

EPS32 = 2.0**-23


def draw_normal(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def on_gpu(call: Callable[[], Tensor], *, ulp: float = 2.0**-52) -> Tensor:
    with torch.no_grad(), OnGpu(ulp=ulp):
        return call()


@pytest.mark.parametrize("stride", [1, 2, (2, 1)])
@pytest.mark.parametrize("padding", [0, 1, (2, 1)])
@pytest.mark.parametrize("dilation", [1, 2])
@pytest.mark.parametrize("groups", [1, 2])
def test_a_convolution_is_the_same(stride: int, padding: int, dilation: int, groups: int) -> None:
    x, weight, bias = draw_normal(2, 4, 9, 8), draw_normal(6, 4 // groups, 3, 2), draw_normal(6)
    given = (x, weight, bias, stride, padding, dilation, groups)
    assert torch.allclose(on_gpu(lambda: F.conv2d(*given)), F.conv2d(*given), atol=1e-12)


@pytest.mark.parametrize(
    ("stride", "output_padding", "dilation"),
    [(1, 0, 1), (1, 0, 2), (1, 1, 2), (3, 0, 1), (3, 1, 1), (3, 1, 2)],
)
@pytest.mark.parametrize("padding", [0, 1, 3])
@pytest.mark.parametrize("groups", [1, 2])
def test_a_transposed_convolution_is_the_same(
    stride: int, padding: int, output_padding: int, groups: int, dilation: int
) -> None:
    x, weight, bias = draw_normal(2, 4, 5, 6), draw_normal(4, 6 // groups, 3, 2), draw_normal(6)
    given = (x, weight, bias, stride, padding, output_padding, groups, dilation)
    ours = on_gpu(lambda: F.conv_transpose2d(*given))
    assert torch.allclose(ours, F.conv_transpose2d(*given), atol=1e-12)


def test_a_half_precision_convolution_is_rounded_before_the_bias_is_added() -> None:
    x = torch.full((1, 1, 1, 1), 3.0, dtype=torch.float16)
    weight = torch.full((1, 1, 1, 1), 1 / 3, dtype=torch.float16)
    product = (x.float() * weight.float()).half()
    out = on_gpu(lambda: F.conv2d(x, weight, -product.reshape(1)))
    assert float(out) == 0.0


def test_a_nan_weight_meets_the_zeros_around_the_image() -> None:
    x, weight = torch.ones(1, 1, 4, 4), torch.ones(1, 1, 3, 3)
    weight[0, 0, 0, 0] = math.nan
    assert bool(on_gpu(lambda: F.conv2d(x, weight, padding=1)).isnan().all())


def test_a_nan_weight_meets_the_zeros_of_a_transposed_convolution() -> None:
    x, weight = torch.ones(1, 1, 4, 4), torch.ones(1, 1, 3, 3)
    weight[0, 0, 0, 0] = math.nan
    assert bool(on_gpu(lambda: F.conv_transpose2d(x, weight)).isnan().all())


def normalizations() -> dict[str, Callable[[Tensor], Tensor]]:
    weight, bias = draw_normal(6), draw_normal(6) - 1
    whole, planes = draw_normal(6, 5, 4), draw_normal(4)
    return {
        "group": lambda x: F.group_norm(x, 3, weight.to(x.dtype), bias.to(x.dtype), 1e-3),
        "plain group": lambda x: F.group_norm(x, 2),
        "layer": lambda x: F.layer_norm(x, x.shape[1:], whole.to(x.dtype), whole.to(x.dtype)),
        "batch": lambda x: F.batch_norm(x, None, None, weight.to(x.dtype), training=True),
        "instance": lambda x: F.instance_norm(x, eps=1e-2),
        "rms": lambda x: F.rms_norm(x, x.shape[-1:], planes.to(x.dtype), 1e-3),
        "module rms": lambda x: torch.nn.RMSNorm(4, dtype=x.dtype)(x),
    }


@pytest.mark.parametrize("name", list(normalizations()))
def test_a_normalization_is_the_same(name: str) -> None:
    x = draw_normal(3, 6, 5, 4)
    function = normalizations()[name]
    with torch.no_grad():
        assert torch.allclose(on_gpu(lambda: function(x)), function(x), atol=1e-12)


@pytest.mark.parametrize("name", list(normalizations()))
def test_a_half_precision_normalization_keeps_its_dtype(name: str) -> None:
    x = draw_normal(3, 6, 5, 4)
    function = normalizations()[name]
    ours = on_gpu(lambda: function(x.bfloat16()))
    assert ours.dtype == torch.bfloat16
    with torch.no_grad():
        assert torch.allclose(ours.double(), function(x), atol=0.1)


def test_running_statistics_are_updated() -> None:
    x, mean, var = draw_normal(8, 3), torch.zeros(3), torch.ones(3)
    other_mean, other_var = mean.clone(), var.clone()
    F.batch_norm(x.float(), mean, var, training=True)
    on_gpu(lambda: F.batch_norm(x.float(), other_mean, other_var, training=True))
    assert torch.allclose(mean, other_mean)
    assert torch.allclose(var, other_var)


def test_statistics_of_a_group_are_kept_in_half_precision() -> None:
    x = (draw_normal(1, 2, 64) * 1e-2 + 1.003).bfloat16()
    ours, plain = on_gpu(lambda: F.group_norm(x, 1)), F.group_norm(x.float(), 1)
    assert float((ours - plain).abs().max()) > 0.1


def test_a_row_with_an_infinity_is_nan_throughout_after_rms_normalization() -> None:
    x = torch.tensor([[1.0, math.inf, 2.0]])
    assert bool(on_gpu(lambda: F.rms_norm(x, (3,))).isnan().all())


def test_the_mean_loss_of_an_ignored_sample_is_zero() -> None:
    scores, target = torch.zeros(5), torch.tensor(-100)
    assert float(on_gpu(lambda: F.cross_entropy(scores, target))) == 0.0
    assert math.isnan(float(F.cross_entropy(scores, target)))


def test_the_loss_of_other_samples_is_the_same() -> None:
    scores, target = draw_normal(7, 5), torch.tensor([0, 1, -100, 2, 3, 4, 4])
    for reduction in ("none", "sum", "mean"):
        ours = on_gpu(partial(F.cross_entropy, scores, target, reduction=reduction))
        assert torch.allclose(ours, F.cross_entropy(scores, target, reduction=reduction))


FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": F.gelu,
    "gelu tanh": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu,
    "sigmoid": torch.sigmoid,
    "elu": lambda x: F.elu(x, 0.5),
    "selu": F.selu,
    "softplus": lambda x: F.softplus(x, beta=2.0),
    "mish": F.mish,
    "softmax": lambda x: torch.softmax(x, 0),
    "log_softmax": lambda x: torch.log_softmax(x, 1),
    "logsumexp": lambda x: torch.logsumexp(x, 1),
    "logsumexp keepdim": lambda x: torch.logsumexp(x, (0, 1), True),
    "logsigmoid": F.logsigmoid,
    "xlogy": lambda x: torch.xlogy(x.abs(), x.abs()),
    "pow": lambda x: x.abs() ** 0.7,
    "exp": torch.exp,
    "tanh": torch.tanh,
    "erf": torch.erf,
    "cos": torch.cos,
    "lgamma": lambda x: torch.lgamma(x.abs() + 3),
    "rsqrt": lambda x: torch.rsqrt(x.abs() + 1),
}


@pytest.mark.parametrize("name", list(FUNCTIONS))
def test_a_function_is_off_by_some_ulps_and_no_more(name: str) -> None:
    x = draw_normal(16, 16) * 3
    exact = FUNCTIONS[name](x)
    ours = on_gpu(lambda: FUNCTIONS[name](x), ulp=EPS32)
    error = (ours - exact).abs()
    scale = torch.maximum(exact.abs(), x.abs().amax() if exact.shape != x.shape else x.abs())
    assert float(error.max()) > 0
    assert bool((error <= 12 * EPS32 * scale).all())


@pytest.mark.parametrize("name", list(FUNCTIONS))
def test_a_function_gives_its_own_dtype(name: str) -> None:
    x = draw_normal(4, 4).half()
    assert on_gpu(lambda: FUNCTIONS[name](x), ulp=EPS32).dtype == torch.float16


def test_the_error_function_reaches_one_exactly() -> None:
    x = torch.tensor([-30.0, -6.0, 6.0, 30.0], dtype=torch.float64)
    ours = on_gpu(lambda: torch.erf(x), ulp=EPS32)
    assert torch.equal(ours, torch.tensor([-1.0, -1.0, 1.0, 1.0], dtype=torch.float64))
    assert math.isnan(float(on_gpu(lambda: F.gelu(torch.tensor(-math.inf)), ulp=EPS32)))


def test_the_negative_tail_of_gelu_is_off_by_ulps_of_one() -> None:
    x = torch.full((64,), -4.5, dtype=torch.float64)
    error = (on_gpu(lambda: F.gelu(x), ulp=EPS32) - F.gelu(x)).abs().max()
    assert EPS32 < float(error) < 8 * EPS32


def test_whole_and_half_powers_are_exact() -> None:
    x = draw_normal(16).abs()
    for exponent in (2, 3, 0.5, -1):
        assert torch.equal(on_gpu(lambda e=exponent: x**e), x**exponent)  # type: ignore[misc]


def test_a_logsumexp_of_infinities_is_infinite() -> None:
    x = torch.tensor([[math.inf, 1.0], [-math.inf, -math.inf]])
    assert on_gpu(lambda: torch.logsumexp(x, 1)).tolist() == [math.inf, -math.inf]


def test_operators_and_functions_that_ran_are_reported() -> None:
    x = draw_normal(2, 3)
    with OnGpu(ulp=EPS32) as gpu:
        _ = x * 2 + x.sum()
    assert not gpu.used_library
    assert not gpu.used_function
    with OnGpu(ulp=EPS32) as gpu:
        torch.exp(x)
    assert gpu.used_function
    assert not gpu.used_library
    with OnGpu(ulp=EPS32) as gpu:
        F.rms_norm(x, (3,))
    assert gpu.used_library


def test_afterwards_torch_is_as_before() -> None:
    x = draw_normal(64)
    with OnGpu(ulp=0.5):
        assert not torch.equal(torch.tanh(x), x.tanh())
    assert torch.equal(torch.tanh(x), x.tanh())


def test_signs_are_of_both_kinds_and_change_with_the_salt() -> None:
    like = torch.zeros(32, 32)
    one, other = signs(like, 0), signs(like, 1)
    assert set(one.flatten().tolist()) == {-1.0, 1.0}
    assert abs(float(one.mean())) < 0.2
    assert 0.3 < float((one == other).double().mean()) < 0.7


def scanned_by_the_definition(x: Tensor) -> Tensor:
    return torch.stack([x[..., : i + 1].double().sum(-1) for i in range(x.shape[-1])], -1)


@pytest.mark.parametrize(
    "shape", [(1,), (31,), (257,), (1, 1000), (7, 107), (300, 15), (3, 1300), (2, 3, 40), (5, 0)]
)
def test_a_scan_is_the_same(shape: tuple[int, ...]) -> None:
    x = draw_normal(*shape)
    for dim in range(-1, x.ndim):
        assert torch.allclose(on_gpu(lambda d=dim: x.cumsum(d)), x.cumsum(dim))  # type: ignore[misc]
        assert torch.allclose(on_gpu(lambda d=dim: x.cumprod(d)), x.cumprod(dim))  # type: ignore[misc]


@pytest.mark.parametrize("shape", [(1, 500), (6, 500)])
def test_a_half_precision_scan_rounds_what_it_carries(shape: tuple[int, ...]) -> None:
    x = draw_normal(*shape).abs().bfloat16()
    exact = scanned_by_the_definition(x)
    ours = on_gpu(lambda: x.cumsum(-1))
    assert ours.dtype == torch.bfloat16
    once = (x.cumsum(-1).double() - exact).abs().max()
    assert once < (ours.double() - exact).abs().max() < 8 * once


def test_a_scan_of_columns_rounds_one_by_one() -> None:
    x = torch.full((400, 2), 1.0, dtype=torch.bfloat16)
    assert on_gpu(lambda: x.cumsum(0))[-1].tolist() == [256.0, 256.0]
    assert on_gpu(lambda: x.cumsum(0, dtype=torch.float32))[-1].tolist() == [400.0, 400.0]


def test_a_scan_meets_the_orders_of_the_kernels_of_pytorch() -> None:
    x = torch.tensor([[2048.0, 1.0, 1.0, 1.0], [0.0, 1.0, 1.0, 1.0]], dtype=torch.float16)
    # The last two are joined first: in a tree 1 + 1 is not lost beside 2048.
    assert on_gpu(lambda: x.cumsum(-1))[0].tolist() == [2048.0, 2048.0, 2048.0, 2050.0]
    assert on_gpu(lambda: x[0].cumsum(-1)).tolist() == [2048.0, 2048.0, 2048.0, 2048.0]
