"""List the Triton kernels that this process has compiled and loaded, with their facts."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import torch

from kerneltruth.runner.child.binaries import describe
from kerneltruth.runner.observation import Binary

_MOST = 64


def binaries() -> tuple[Binary, ...]:
    """Return one binary for each specialization of each kernel, in order of compilation."""
    from triton.runtime.jit import JITFunction

    found = []
    for function in gc.get_objects():
        if isinstance(function, JITFunction):
            found += [_binary(kernel) for kernel in _compiled(function)]
    return tuple(found[:_MOST])


def _compiled(function: Any) -> Iterator[Any]:
    caches = getattr(function, "device_caches", {})
    for cache in list(caches.values()):
        kernels = cache[0] if isinstance(cache, tuple) else cache
        for kernel in list(kernels.values()):
            if hasattr(kernel, "asm") and hasattr(kernel, "metadata"):
                yield kernel


def _binary(kernel: Any) -> Binary:
    major, minor = torch.cuda.get_device_capability()
    return describe(
        kernel,
        name=str(getattr(kernel.metadata, "name", "kernel")),
        target=f"sm_{major}{minor}",
    )
