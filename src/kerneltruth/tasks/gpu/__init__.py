"""Operators as GPU libraries compute them, for evaluations of a formula elsewhere than on a CPU.

PyTorch on a GPU differs from PyTorch on a CPU in more than the order of its sums, and is still
right:

- cuDNN rounds a convolution to the dtype of its input and adds the bias afterwards. What it reads
  outside of an image is 0, which times an infinite or NaN weight is NaN, and a transposed
  convolution is a plain one of an image with zeros between its elements.
- means that are subtracted are put together from means of parts, by Welford's algorithm;
- group normalization keeps mean and 1 / deviation in the dtype of its input;
- RMS normalization gets the mean square as variance plus squared mean, NaN where one element is
  infinite;
- a scan keeps its partial sums in the dtype of its input, in a tree and block by block;
- the mean loss of a single sample that is ignored is 0, where a CPU says NaN;
- the elementary functions of CUDA are off by some ulps, as its programming guide lists them; what
  is made of them, such as GELU, adds to and subtracts from them.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from kerneltruth.tasks.gpu.errors import WELFORD_ULPS, Errors, signs
from kerneltruth.tasks.gpu.functions import MADE_OF, ULPS, in_wide
from kerneltruth.tasks.gpu.operators import LIBRARY, rms_norm

__all__ = ["GPU_DRAWS", "WELFORD_ULPS", "OnGpu", "signs"]

# How many evaluations to try, each with other signs of the errors.
GPU_DRAWS = 2


class OnGpu:
    """While entered, torch computes as GPU libraries do, on any device."""

    def __init__(self, *, ulp: float | None, salt: int | None = 0) -> None:
        """Set up; the arguments are those of `Errors`."""
        self._errors = Errors(ulp=ulp, salt=salt)
        self._entered = ExitStack()
        self._modes: tuple[Any, ...] = (_Functions(self._errors), _Operators(self._errors))

    @property
    def used_library(self) -> bool:
        """Return whether an operator ran that a library computes differently."""
        return self._errors.used_library

    @property
    def used_function(self) -> bool:
        """Return whether an elementary function ran, or a mean with similar errors."""
        return self._errors.used_function

    def __enter__(self) -> OnGpu:
        for mode in self._modes:
            self._entered.enter_context(mode)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._entered.__exit__(kind, error, trace)


class _Functions(TorchFunctionMode):
    """Intercepts operators that torch decomposes before `_Operators` sees them."""

    def __init__(self, gpu: Errors) -> None:
        super().__init__()
        self._gpu = gpu

    def __torch_function__(
        self, function: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        if function in (torch.rms_norm, F.rms_norm):
            self._gpu.used_library = True
            return rms_norm(self._gpu, *args, **(kwargs or {}))
        return function(*args, **(kwargs or {}))


class _Operators(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Intercepts operators one by one, as they reach a device."""

    def __init__(self, gpu: Errors) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._gpu = gpu

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """False: torch would import its compiler to keep it out of here, which takes a second."""
        return False

    def __torch_dispatch__(
        self, operator: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        given = kwargs or {}
        real = bool(args) and isinstance(args[0], Tensor) and args[0].is_floating_point()
        if real and operator in LIBRARY:
            self._gpu.used_library = True
            return LIBRARY[operator](self._gpu, *args, **given)
        if real and (operator in ULPS or operator in MADE_OF):
            return in_wide(self._gpu, operator, args, given)
        return operator(*args, **given)
