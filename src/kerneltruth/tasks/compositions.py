"""Activations composed of functions about 1, as kernels have them, for evaluations of a formula.

PyTorch computes the far tail of SiLU, Mish or softplus to the last digit. Kernels compose them of
`log(1 + exp(x))` or `(1 + tanh(x / 2)) / 2`, whose error is that of a number about 1, whatever is
left of it; a factor, such as the input, makes more of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from kerneltruth.tasks.gpu.errors import Errors, widened

aten = torch.ops.aten

# How many ulps of a number about 1 a composition may be off: two or three, times the input. Once
# that is beyond 17, its exponential is lost beside 1, and the error is as small as the result.
MOST_ULPS = 64.0


def _tanh(errors: Errors, x: Tensor) -> Tensor:
    return 2 * errors.off(torch.sigmoid(2 * x), 1) - 1


def _log_of_one_and_exp(errors: Errors, x: Tensor) -> Tensor:
    return torch.log(errors.off(1 + torch.exp(x), 1))


def _sigmoid(errors: Errors, x: Tensor) -> Tensor:
    return 0.5 * (1 + errors.off(torch.tanh(0.5 * x), 1, most=1.0))


def _silu(errors: Errors, x: Tensor) -> Tensor:
    return x * _sigmoid(errors, x)


def _gelu(errors: Errors, x: Tensor, *, approximate: str = "none") -> Tensor:
    if approximate == "none":
        return torch.nn.functional.gelu(x)
    inner = 0.7978845608028654 * (x + 0.044715 * x * x * x)
    return 0.5 * x * (1 + _tanh(errors, inner))


def _mish(errors: Errors, x: Tensor) -> Tensor:
    return x * _tanh(errors, _log_of_one_and_exp(errors, x))


def _softplus(errors: Errors, x: Tensor, beta: float = 1, threshold: float = 20) -> Tensor:
    return torch.where(x * beta > threshold, x, _log_of_one_and_exp(errors, x * beta) / beta)


def _log_sigmoid(errors: Errors, x: Tensor) -> tuple[Tensor, Tensor]:
    return -_log_of_one_and_exp(errors, -x), torch.empty(0, dtype=x.dtype)


COMPOSED: Mapping[Any, Callable[..., Any]] = {
    aten.sigmoid.default: _sigmoid,
    aten.silu.default: _silu,
    aten.gelu.default: _gelu,
    aten.mish.default: _mish,
    aten.softplus.default: _softplus,
    aten.log_sigmoid_forward.default: _log_sigmoid,
}


class Composed(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """While entered, torch composes activations.

    Attributes:
        used: whether one ran.
    """

    def __init__(self) -> None:
        """Set up; nothing has run."""
        super().__init__()  # type: ignore[no-untyped-call]
        self.used = False
        self._errors = Errors(ulp=None)

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """False: torch would import its compiler to keep it out of here, which takes a second."""
        return False

    def __torch_dispatch__(
        self, operator: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        given = kwargs or {}
        if operator not in COMPOSED or not args[0].is_floating_point():
            return operator(*args, **given)
        self.used = True
        result = COMPOSED[operator](self._errors, widened(args[0]), *args[1:], **given)
        own = args[0].dtype
        return tuple(r.to(own) for r in result) if isinstance(result, tuple) else result.to(own)


def near(composed: Sequence[Tensor], plain: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Return composed results where they are off by no more than compositions are; else plain ones.

    What a logarithm or a quotient makes of such an error is no right result, nor is an overflow.
    """
    return tuple(_near(c, p) for c, p in zip(composed, plain, strict=True))


def _near(composed: Tensor, plain: Tensor) -> Tensor:
    if not plain.is_floating_point() or composed.shape != plain.shape:
        return plain
    most = MOST_ULPS * torch.finfo(plain.dtype).eps * plain.abs().clamp(min=1.0)
    return torch.where((composed - plain).abs() <= most, composed, plain)
