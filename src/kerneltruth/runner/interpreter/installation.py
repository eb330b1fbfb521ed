"""Puts the faithful parts into Triton's interpreter."""

from __future__ import annotations

import dataclasses
from typing import Any

import triton.runtime.interpreter as it

from kerneltruth.runner.interpreter import (
    arithmetic,
    atomics,
    casts,
    dot,
    integers,
    language,
    launching,
    libdevice,
    memory,
    types,
)
from kerneltruth.runner.interpreter.unsupported import UnsupportedHere

# What is used or replaced, and has been there from Triton 3.5 to 3.7.
_NEEDED = (
    "GridExecutor",
    "InterpretedFunction",
    "InterpreterBuilder",
    "InterpreterOptions",
    "TensorHandle",
    "_implicit_cvt",
    "_patch_lang_core",
    "_patch_lang_tensor",
    "_unwrap_tensor",
    "interpreter_builder",
    "interpreter_semantic",
)

_installed = False


def install() -> None:
    """Replace, once, what the interpreter computes differently from the GPU."""
    global _installed
    if _installed:
        return
    missing = [name for name in _NEEDED if not hasattr(it, name)]
    if missing:
        raise UnsupportedHere(f"this Triton's interpreter lacks {', '.join(missing)}")
    for module in (arithmetic, atomics, casts, dot, integers, libdevice, memory):
        for name, method in module.METHODS.items():
            setattr(it.InterpreterBuilder, name, method)
    it.interpreter_builder.options = _options()
    if [f.name for f in dataclasses.fields(it.TensorHandle)] == ["data", "dtype", "attr"]:
        it.TensorHandle.__init__ = types.init_handle
    language.lend_builtins()
    it.GridExecutor.__call__ = launching.launch
    it.InterpretedFunction.__call__ = launching.call
    it.InterpretedFunction.rewrite = launching.rewrite
    _installed = True


def _options() -> Any:
    # The overflow check only feeds assertions of the debug mode, at triple cost; kernels ask for
    # the number of warps, and 4 is what a launch has unless told otherwise.
    fields = [("num_warps", int, dataclasses.field(default=4))]
    extended = dataclasses.make_dataclass(
        "InterpreterOptions", fields, bases=(it.InterpreterOptions,), frozen=True
    )
    return extended(sanitize_overflow=False)
