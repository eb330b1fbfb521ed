"""Compile once in the zygote what every child would otherwise compile first.

A first compilation hashes Triton's own files, loads its dialects and LLVM's targets, and parses the
standard library of the language: half a second that forked children inherit. A first launch builds
Triton's access to the driver with the C compiler: a quarter to half a second for each candidate,
since each has its own compile cache. No device is needed or touched.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import tempfile
from collections.abc import Iterator

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

_TARGET = GPUTarget("cuda", 90, 32)


@triton.jit  # type: ignore[untyped-decorator,unused-ignore]
def _softmax(x_ptr, out_ptr, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    offsets = tl.program_id(0) * n + tl.arange(0, BLOCK)
    mask = tl.arange(0, BLOCK) < n
    x = tl.load(x_ptr + offsets, mask=mask, other=-float("inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + offsets, e / tl.sum(e, axis=0), mask=mask)


def compile_once() -> None:
    """Compile one small kernel in its own folder; a failure only makes children start colder."""
    signature = {"x_ptr": "*fp32", "out_ptr": "*fp32", "n": "i32", "BLOCK": "constexpr"}
    source = ASTSource(fn=_softmax, signature=signature, constexprs={"BLOCK": 64})
    with (
        tempfile.TemporaryDirectory() as folder,
        _compiled_in(folder),
        contextlib.suppress(Exception),
    ):
        triton.compile(source, target=_TARGET)


def reach_driver(folder: str) -> None:
    """Build Triton's access to the CUDA driver, or load it from the folder; children inherit it.

    If that fails, as without the driver, each child builds it at its first launch.
    """
    with contextlib.suppress(Exception), _compiled_in(folder):
        utils = importlib.import_module("triton.backends.nvidia.driver").CudaUtils
        # The only instance: later constructors return this one, and must not build it again.
        utils()
        utils.__init__ = lambda self: None


@contextlib.contextmanager
def _compiled_in(folder: str) -> Iterator[None]:
    before = os.environ.get("TRITON_CACHE_DIR")
    os.environ["TRITON_CACHE_DIR"] = folder
    try:
        yield
    finally:
        del os.environ["TRITON_CACHE_DIR"]
        if before is not None:
            os.environ["TRITON_CACHE_DIR"] = before
