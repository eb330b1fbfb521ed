"""Save and restore PyTorch's settings of a process, which one module may change for the next."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

_cuda, _cudnn = torch.backends.cuda, torch.backends.cudnn
# How each is read, and set.
_SETTINGS: tuple[tuple[Callable[[], Any], Callable[[Any], Any]], ...] = (
    (torch.get_default_dtype, torch.set_default_dtype),
    (torch.is_grad_enabled, torch.set_grad_enabled),
    (torch.get_num_threads, torch.set_num_threads),
    (torch.are_deterministic_algorithms_enabled, torch.use_deterministic_algorithms),
    (torch.get_float32_matmul_precision, torch.set_float32_matmul_precision),
    *(
        (lambda a=at, n=name: getattr(a, n), lambda value, a=at, n=name: setattr(a, n, value))
        for at, name in (
            (_cudnn, "enabled"),
            (_cudnn, "benchmark"),
            (_cudnn, "deterministic"),
            (_cudnn, "allow_tf32"),
            (_cuda.matmul, "allow_tf32"),
            (_cuda.matmul, "allow_fp16_reduced_precision_reduction"),
            (_cuda.matmul, "allow_bf16_reduced_precision_reduction"),
        )
    ),
)


def settings() -> tuple[Any, ...]:
    """Return all settings."""
    return tuple(read() for read, _ in _SETTINGS)


def restore(found: tuple[Any, ...]) -> None:
    """Restore all settings; unchanged ones are not touched."""
    torch.set_default_device(None)
    for (read, write), value in zip(_SETTINGS, found, strict=True):
        if read() != value:
            write(value)
