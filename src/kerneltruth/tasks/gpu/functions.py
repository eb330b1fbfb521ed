"""Compute elementary functions with CUDA's errors, and PyTorch's functions made of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from kerneltruth.tasks.gpu.errors import Errors, widened

aten = torch.ops.aten

# Ulps by which a function of CUDA may be off (its programming guide, "Mathematical Functions", the
# table of single precision; those of double precision are off no more).
ULPS: Mapping[Any, float] = {
    aten.exp.default: 2,
    aten.exp2.default: 2,
    aten.expm1.default: 1,
    aten.log.default: 1,
    aten.log2.default: 1,
    aten.log10.default: 2,
    aten.log1p.default: 1,
    aten.sin.default: 2,
    aten.cos.default: 2,
    aten.tan.default: 4,
    aten.asin.default: 2,
    aten.acos.default: 2,
    aten.atan.default: 2,
    aten.sinh.default: 3,
    aten.cosh.default: 2,
    aten.tanh.default: 2,
    aten.asinh.default: 3,
    aten.acosh.default: 4,
    aten.atanh.default: 3,
    aten.erf.default: 2,
    aten.erfc.default: 4,
    aten.erfinv.default: 2,
    aten.lgamma.default: 6,
    aten.rsqrt.default: 2,
    aten.pow.Tensor_Tensor: 4,
    aten.pow.Scalar: 4,
    aten.xlogy.Tensor: 2,
}
# Up to this exponent, whole and half powers are products and square roots.
_PLAIN_POWER = 3
# Functions with a largest magnitude, which they reach exactly.
_LARGEST: Mapping[Any, float] = {
    aten.erf.default: 1.0,
    aten.tanh.default: 1.0,
    aten.sin.default: 1.0,
    aten.cos.default: 1.0,
}


def in_wide(gpu: Errors, operator: Any, args: Sequence[Any], given: Mapping[str, Any]) -> Any:
    """Compute a function in float32 or wider, with its errors, and round to its own dtype."""
    wide = [widened(a) if isinstance(a, Tensor) else a for a in args]
    if operator in MADE_OF:
        result = MADE_OF[operator](gpu, *wide, **given)
    else:
        most = _LARGEST.get(operator, math.inf)
        result = gpu.off(operator(*wide, **given), ULPS[operator], most=most)
    own = next(a for a in args if isinstance(a, Tensor)).dtype
    return tuple(r.to(own) for r in result) if isinstance(result, tuple) else result.to(own)


def _exp(gpu: Errors, x: Tensor) -> Tensor:
    """Compute the exponential as GPUs do: 2 to the power of a rounded product."""
    return gpu.off(torch.exp(gpu.off(x, 1)), ULPS[aten.exp.default])


def _tanh(gpu: Errors, x: Tensor) -> Tensor:
    return gpu.off(torch.tanh(x), ULPS[aten.tanh.default], most=1.0)


def _gelu(gpu: Errors, x: Tensor, *, approximate: str = "none") -> Tensor:
    if approximate == "tanh":
        inner = 0.7978845608028654 * (x + 0.044715 * x * x * x)
        return 0.5 * x * (1 + _tanh(gpu, inner))
    erf = torch.erf(x * 0.7071067811865476)
    return 0.5 * x * (1 + gpu.off(erf, ULPS[aten.erf.default], most=1.0))


def _sigmoid(gpu: Errors, x: Tensor) -> Tensor:
    return 1 / (1 + _exp(gpu, -x))


def _silu(gpu: Errors, x: Tensor) -> Tensor:
    return x / (1 + _exp(gpu, -x))


def _elu(
    gpu: Errors, x: Tensor, alpha: float = 1, scale: float = 1, input_scale: float = 1
) -> Tensor:
    below = gpu.off(torch.expm1(x * input_scale), ULPS[aten.expm1.default])
    return torch.where(x > 0, x * scale, below * (alpha * scale))


def _log1p_exp(gpu: Errors, x: Tensor) -> Tensor:
    return gpu.off(torch.log1p(_exp(gpu, x)), ULPS[aten.log1p.default])


def _softplus(gpu: Errors, x: Tensor, beta: float = 1, threshold: float = 20) -> Tensor:
    return torch.where(x * beta > threshold, x, _log1p_exp(gpu, x * beta) / beta)


def _mish(gpu: Errors, x: Tensor) -> Tensor:
    return x * _tanh(gpu, _log1p_exp(gpu, x))


def _shares(gpu: Errors, x: Tensor, dim: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return the elements less the largest, their exponentials and the exponentials' sum."""
    below = x - x.amax(dim, True) if x.numel() else x
    each = _exp(gpu, below)
    return below, each, gpu.off(each.sum(dim, True), 1)


def _softmax(gpu: Errors, x: Tensor, dim: int, half_to_float: bool) -> Tensor:
    del half_to_float
    _, each, total = _shares(gpu, x, dim)
    return each / total


def _log_softmax(gpu: Errors, x: Tensor, dim: int, half_to_float: bool) -> Tensor:
    del half_to_float
    below, _, total = _shares(gpu, x, dim)
    return below - gpu.off(torch.log(total), ULPS[aten.log.default])


def _logsumexp(gpu: Errors, x: Tensor, dim: list[int], keepdim: bool = False) -> Tensor:
    largest = x.amax(dim, True) if x.numel() else torch.zeros((), dtype=x.dtype)
    # If the largest is infinite, the difference would be NaN.
    largest = torch.where(largest.isinf(), 0.0, largest)
    total = gpu.off(_exp(gpu, x - largest).sum(dim, True), 1)
    result = gpu.off(torch.log(total), ULPS[aten.log.default]) + largest
    return result if keepdim else result.squeeze(tuple(dim))


def _log_sigmoid(gpu: Errors, x: Tensor) -> tuple[Tensor, Tensor]:
    return x.clamp_max(0) - _log1p_exp(gpu, -x.abs()), torch.empty(0, dtype=x.dtype)


def _pow(gpu: Errors, x: Tensor, exponent: float) -> Tensor:
    power = torch.pow(x, exponent)
    exact = float(2 * exponent).is_integer() and abs(exponent) <= _PLAIN_POWER
    return power if exact else gpu.off(power, ULPS[aten.pow.Tensor_Tensor])


MADE_OF: Mapping[Any, Callable[..., Any]] = {
    aten.logsumexp.default: _logsumexp,
    aten.log_sigmoid_forward.default: _log_sigmoid,
    aten.pow.Tensor_Scalar: _pow,
    aten.gelu.default: _gelu,
    aten.sigmoid.default: _sigmoid,
    aten.silu.default: _silu,
    aten.elu.default: _elu,
    aten.softplus.default: _softplus,
    aten.mish.default: _mish,
    aten._softmax.default: _softmax,
    aten._log_softmax.default: _log_softmax,
    aten.exp.default: _exp,
}
