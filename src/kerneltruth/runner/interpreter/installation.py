"""Puts the faithful parts into Triton's interpreter."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterator
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
from kerneltruth.runner.interpreter.versions import adapter
from kerneltruth.runner.unsupported import UnsupportedError

BuilderMethod = Callable[..., Any]

_COMMON = (arithmetic, atomics, casts, dot, integers, libdevice, memory)

# What is used or replaced beside the builder's methods.
_NEEDED = (
    "GridExecutor",
    "InterpretedFunction",
    "InterpreterBuilder",
    "InterpreterOptions",
    "_implicit_cvt",
    "_patch_lang_core",
    "_patch_lang_tensor",
    "_unwrap_tensor",
    "interpreter_builder",
    "interpreter_semantic",
)
_HANDLE_FIELDS = ["data", "dtype", "attr"]
REPLACED = {
    "GridExecutor.__call__": launching.launch,
    "InterpretedFunction.__call__": launching.call,
    "InterpretedFunction.rewrite": launching.rewrite,
    "TensorHandle.__init__": types.init_handle,
}

# Builder methods that every version computes as the GPU does.
KEPT = frozenset(
    [
        *(f"create_{n}" for n in ("addptr", "broadcast", "cat", "expand_dims", "gather", "join")),
        *(f"create_{n}" for n in ("make_range", "make_tensor_descriptor", "reshape", "split")),
        *(f"create_{n}" for n in ("trans", "get_num_programs", "get_program_id")),
        *(f"create_{n}" for n in ("assert", "assume", "barrier", "print", "idiv")),
        *(f"get_{n}_ty" for n in ("bf16", "block", "double", "float", "half", "ptr", "int1")),
        *(f"get_{n}_ty" for n in ("fp8e4b15", "fp8e4b8", "fp8e4nv", "fp8e5", "fp8e5b16")),
        *(f"get_{s}int{bits}_ty" for s in ("", "u") for bits in (8, 16, 32, 64)),
        "get_int1",
    ]
)

_installed = False


def methods() -> dict[str, BuilderMethod]:
    """Return the replacements of the builder's methods for the installed version of Triton."""
    common = {name: method for module in _COMMON for name, method in module.METHODS.items()}
    return {**common, **adapter().methods}


def misfits() -> Iterator[str]:
    """List where Triton's interpreter differs from its adapter, one line each."""
    for name in _NEEDED:
        if not hasattr(it, name):
            yield f"it has no {name}"
            return
    if list(inspect.signature(it.TensorHandle).parameters) != _HANDLE_FIELDS:
        yield "its TensorHandle has other fields"
    for path in REPLACED:
        if path.partition(".")[2] not in vars(getattr(it, path.partition(".")[0])):
            yield f"it has no {path}"
    for name, method in methods().items():
        original = vars(it.InterpreterBuilder).get(name)
        if name in adapter().added:
            if original is not None:
                yield f"its builder has a {name} of its own"
        elif original is None:
            yield f"its builder has no {name}"
        elif not _takes_the_same(method, original):
            yield f"its {name} takes other arguments"


def unknown() -> list[str]:
    """Builder methods that are neither replaced nor known to be right."""
    known = {*methods(), *adapter().kept, *KEPT}
    return [
        name
        for name in vars(it.InterpreterBuilder)
        if name.startswith(("create_", "get_")) and name not in known
    ]


def _takes_the_same(method: BuilderMethod, original: BuilderMethod) -> bool:
    try:
        inspect.signature(method).bind(*inspect.signature(original).parameters)
    except TypeError:
        return False
    return True


def install() -> None:
    """Replace, once, what the interpreter computes differently from the GPU.

    Raises:
        UnsupportedError: something that is replaced is not as in the versions known.
    """
    global _installed
    if _installed:
        return
    misfit = next(misfits(), None)
    if misfit is not None:
        raise UnsupportedError(misfit)
    for name in unknown():
        setattr(it.InterpreterBuilder, name, _refusing(name))
    for name, method in methods().items():
        setattr(it.InterpreterBuilder, name, method)
    it.interpreter_builder.options = _options()
    for path, function in REPLACED.items():
        owner, _, name = path.partition(".")
        setattr(getattr(it, owner), name, function)
    it.InterpretedFunction = launching.Interpreted
    language.lend_builtins()
    # What is replaced in the language is looked up on first entry: better now than in a kernel.
    with language.interpreting():
        pass
    _installed = True


def _refusing(name: str) -> BuilderMethod:
    # What a newer version has added may compute anything.
    def method(self: Any, *_: Any, **__: Any) -> Any:
        raise UnsupportedError(f"{name} of Triton's interpreter is newer than kerneltruth")

    return method


def _options() -> Any:
    # The overflow check only feeds assertions of the debug mode, at triple cost; kernels ask for
    # the number of warps, and 4 is what a launch has unless told otherwise.
    fields = [("num_warps", int, dataclasses.field(default=4))]
    extended = dataclasses.make_dataclass(
        "InterpreterOptions", fields, bases=(it.InterpreterOptions,), frozen=True
    )
    return extended(sanitize_overflow=False)
