"""Lends `triton.language` to kernels that Python runs.

Two kinds of replacement. Builtins get, for good, the interpreter's semantic when no caller passes
one; the compiler always passes its own, so compiling in the same process is not affected. What
the compiler recognizes by identity, or what changes a class, is replaced only while a kernel is
being interpreted.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import triton.language as tl
import triton.runtime.interpreter as it
from triton.language.extra import libdevice as generic_libdevice
from triton.language.extra.cuda import libdevice as cuda_libdevice

from kerneltruth.runner.interpreter import control, plans, reductions, types

_MISSING = object()

# Builtins that look at types and constants alone and leave all else to the builder.
_PLANNED_MODULES = (tl.core.__name__, tl.math.__name__)
PLANNED = frozenset(
    [
        f"__{r}{name}__"
        for name in ("add", "sub", "mul", "truediv", "floordiv", "mod")
        for r in ("", "r")
    ]
    + [f"__{r}{name}__" for name in ("and", "or", "xor", "lshift", "rshift") for r in ("", "r")]
    + [f"__{r}{name}__" for name in ("gt", "ge", "lt", "le", "eq", "ne") for r in ("", "r")]
    + ["__neg__", "__invert__", "__getitem__", "to", "logical_and", "logical_or"]
    + [
        "add",
        "sub",
        "mul",
        "minimum",
        "maximum",
        "clamp",
        "where",
        "cast",
        "load",
        "store",
        "arange",
        "full",
        "dot",
    ]
    + [
        "broadcast",
        "broadcast_to",
        "expand_dims",
        "reshape",
        "view",
        "trans",
        "permute",
        "program_id",
        "num_programs",
    ]
    + [
        "exp",
        "exp2",
        "log",
        "log2",
        "cos",
        "sin",
        "rsqrt",
        "sqrt",
        "sqrt_rn",
        "erf",
        "abs",
        "fdiv",
        "div_rn",
        "fma",
        "floor",
        "ceil",
    ]
    + ["umulhi"]
)

# Replaced while interpreting only: the compiler compares these with what a kernel calls.
BY_IDENTITY = frozenset(
    ["static_assert", "static_print", "static_range", "range", "reduce", "associative_scan"]
)


def _restore(owner: Any, name: str, value: Any) -> None:
    if value is _MISSING:
        delattr(owner, name)
    else:
        setattr(owner, name, value)


class _PatchRecorder:
    """Collects what Triton's own patching would set, without setting it."""

    def __init__(self) -> None:
        self.changes: dict[tuple[int, str], tuple[Any, str, Any]] = {}

    def set_attr(self, owner: Any, name: str, value: Any) -> None:
        self.changes[(id(owner), name)] = (owner, name, value)


def is_planned(member: Callable[..., Any]) -> bool:
    """Return whether calls of a builtin are planned, and not made as they come."""
    return member.__module__ in _PLANNED_MODULES and member.__name__ in PLANNED


def _lent(member: Callable[..., Any]) -> Callable[..., Any]:
    semantic = it.interpreter_semantic

    if is_planned(member):
        ambient = _fp32_default if member.__name__ == "dot" else None
        return functools.wraps(member)(plans.planned(_with_semantic(member), ambient))

    @functools.wraps(member)
    def call(*args: Any, **kwargs: Any) -> Any:
        if kwargs.get("_semantic") is None:
            kwargs["_semantic"] = semantic
        return member(*args, **kwargs)

    return call


def _with_semantic(member: Callable[..., Any]) -> Callable[..., Any]:
    return lambda semantic, *args, **kwargs: member(*args, **kwargs, _semantic=semantic)


def _fp32_default() -> str | None:
    # An environment variable says how `dot` reads fp32 operands unless told.
    return tl.core.knobs.language.fp32_default if hasattr(tl.core, "knobs") else None


def _with_constant_names(member: Callable[..., Any]) -> Callable[..., Any]:
    # `dot_scaled` alone asks its format names for `.value`, which only wrapped constants have.
    def wrapped(value: Any) -> Any:
        return tl.constexpr(value) if isinstance(value, str) else value

    @functools.wraps(member)
    def call(*args: Any, **kwargs: Any) -> Any:
        named = {key: wrapped(value) for key, value in kwargs.items()}
        return member(*map(wrapped, args), **named)

    return call


def lend_builtins() -> None:
    """Let every builtin of the language be called without a semantic."""
    lent: dict[Any, Any] = {}
    owners = [tl, tl.core, tl.math, tl.tensor, tl.core.tensor_descriptor_base, cuda_libdevice]
    owners += [o for o in (getattr(tl.core, "tensor_descriptor", None), tl.extra.cuda) if o]
    owners += [m for m in vars(tl.extra.cuda).values() if isinstance(m, ModuleType)]
    for owner in owners:
        for name, member in inspect.getmembers(owner, tl.core.is_builtin):
            if name not in BY_IDENTITY:
                new = lent.get(member) or _lent(member)
                if name == "dot_scaled" and member not in lent:
                    new = _with_constant_names(new)
                lent[member] = lent[new] = new
                setattr(owner, name, new)
    _lend_libdevice()


def _lend_libdevice() -> None:
    # The portable names are stubs without a body; the compiler looks them up by module and name.
    for name, stub in inspect.getmembers(generic_libdevice, inspect.isfunction):
        real = getattr(cuda_libdevice, name, None)
        if real is None or stub.__module__ != generic_libdevice.__name__:
            continue
        forward = functools.partial(_forward, real)
        setattr(generic_libdevice, name, functools.wraps(stub)(_function(forward)))


def _forward(real: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return real(*args, **kwargs)


def _function(call: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args, **kwargs: call(*args, **kwargs)


def _to_ir(original: Callable[..., Any]) -> Callable[..., Any]:
    extra = {"fp8e4b8": "get_fp8e4b8_ty", "fp8e5b16": "get_fp8e5b16_ty"}

    def to_ir(self: Any, builder: Any) -> Any:
        if self.name in extra:
            return getattr(builder, extra[self.name])()
        return original(self, builder)

    return to_ir


@functools.cache
def replacements() -> tuple[tuple[Any, str, Any], ...]:
    """Return what is replaced while a kernel is being interpreted: of what, its name, by what."""
    recorder = _PatchRecorder()
    it._patch_lang_tensor(tl.tensor, recorder)
    for language in (tl, tl.core):
        it._patch_lang_core(language, recorder)
    for language in (tl, tl.core):
        recorder.set_attr(language, "range", control.dynamic_range)
        recorder.set_attr(language, "static_range", control.static_range)
        recorder.set_attr(language, "reduce", reductions.reduce)
        recorder.set_attr(language, "associative_scan", reductions.associative_scan)
    original = recorder.changes[(id(tl.dtype), "to_ir")][2]
    recorder.set_attr(tl.dtype, "to_ir", _to_ir(original))
    recorder.set_attr(tl.tensor, "__index__", _index)
    truth = recorder.changes[(id(tl.tensor), "__bool__")][2]
    recorder.set_attr(tl.tensor, "__bool__", _noted(truth))
    recorder.set_attr(tl.tensor, "__init__", types.init_tensor)
    recorder.set_attr(tl.block_type, "__init__", types.init_block_type)
    for name, operation in vars(tl.constexpr).items():
        if callable(operation) and "other" in inspect.signature(operation).parameters:
            recorder.set_attr(tl.constexpr, name, _of_either(operation))
    return tuple(recorder.changes.values())


def _noted(truth: Callable[[Any], bool]) -> Callable[[Any], bool]:
    def method(self: Any) -> bool:
        # A block of several elements is true, whatever it holds.
        if self.handle.data.size == 1:
            plans.note_look()
        return truth(self)

    return method


def _of_either(operation: Callable[..., Any]) -> Callable[..., Any]:
    """Let a constant and a run-time value make a run-time value, as in compiled kernels."""

    def method(self: Any, other: Any) -> Any:
        made = operation(self, other)
        return made.value if isinstance(made.value, tl.tensor) else made

    return method


def _index(self: Any) -> int:
    plans.note_look()
    return int(self.handle.data.reshape(-1)[0])


class _Scope:
    """Sets the replacements on first entry and takes them back on last exit."""

    def __init__(self) -> None:
        self.replacements = replacements()
        self.originals: list[tuple[Any, str, Any]] = []
        self.depth = 0

    def enter(self) -> None:
        self.depth += 1
        if self.depth > 1:
            return
        self.originals = [
            (owner, name, vars(owner).get(name, _MISSING)) for owner, name, _ in self.replacements
        ]
        for owner, name, value in self.replacements:
            setattr(owner, name, value)
        plans.use(on=True)

    def leave(self) -> None:
        self.depth -= 1
        if self.depth:
            return
        plans.use(on=False)
        for owner, name, value in reversed(self.originals):
            _restore(owner, name, value)


@functools.cache
def _scope() -> _Scope:
    return _Scope()


def is_interpreting() -> bool:
    """Return whether a kernel runs."""
    return _scope().depth > 0


@contextmanager
def interpreting() -> Iterator[None]:
    """While inside, the language is the interpreter's."""
    scope = _scope()
    scope.enter()
    try:
        yield
    finally:
        scope.leave()
