"""Runs a launch: binds the arguments as the compiler types them and loops over the grid."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import triton.language as tl
import triton.runtime.interpreter as it
from triton.runtime.errors import InterpreterError
from triton.runtime.jit import JITFunction

from kerneltruth.runner.interpreter import bounds, control, rewriting
from kerneltruth.runner.interpreter.handles import make
from kerneltruth.runner.interpreter.language import interpreting, is_interpreting
from kerneltruth.runner.interpreter.numbers import STORAGE
from kerneltruth.runner.interpreter.versions import adapter
from kerneltruth.runner.unsupported import UnsupportedError

_signatures: dict[Any, inspect.Signature] = {}
_rewritten: dict[Any, Callable[..., Any]] = {}
_compilable: dict[Any, JITFunction[Any]] = {}
_convert_other = it._implicit_cvt


def _signature(fn: Any) -> inspect.Signature:
    if fn not in _signatures:
        _signatures[fn] = inspect.signature(fn)
    return _signatures[fn]


def _annotation(parameter: inspect.Parameter) -> str:
    note = parameter.annotation
    if note is inspect.Parameter.empty:
        return ""
    return str(getattr(note, "name", None) or getattr(note, "__name__", None) or note)


def _scalar(value: Any, ty: Any) -> Any:
    if ty.is_floating():
        return tl.core.tensor(make(np.array([value], dtype=np.float64), ty), ty)
    wrapped = int(value) & 0xFFFFFFFFFFFFFFFF
    data = np.array([wrapped], dtype=np.uint64).astype(STORAGE[ty.name])
    return tl.core.tensor(it.TensorHandle(data, ty), ty)


_ANNOTATED = {
    name: ty
    for ty in (
        tl.int1, tl.int8, tl.int16, tl.int32, tl.int64, tl.uint8, tl.uint16, tl.uint32, tl.uint64,
        tl.float16, tl.bfloat16, tl.float32, tl.float64,
    )
    for name in (ty.name, f"tl.{ty.name}", str(ty))
}  # fmt: skip


def _integer_type(value: int) -> Any:
    if -(2**31) <= value < 2**31:
        return tl.int32
    return tl.int64 if value < 2**63 else tl.uint64


def _argument(value: Any, annotation: str) -> Any:
    """Return the run-time value of an argument: a float is fp32, an int the narrowest that fits."""
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return tl.tuple([_argument(item, "") for item in value])
    if isinstance(value, (bool, int, float)):
        if annotation in _ANNOTATED:
            return _scalar(value, _ANNOTATED[annotation])
        if isinstance(value, bool):
            return _scalar(value, tl.int1)
        return _scalar(value, tl.float32 if isinstance(value, float) else _integer_type(value))
    return _convert_other(value)


def bind(signature: inspect.Signature, arguments: dict[str, object]) -> dict[str, object]:
    """Return what the kernel's parameters hold: constants bare, all else as run-time values."""
    bound = {}
    for name, value in arguments.items():
        annotation = _annotation(signature.parameters[name])
        constant = "constexpr" in annotation or value is None
        if constant:
            bound[name] = value.value if isinstance(value, tl.constexpr) else value
        else:
            bound[name] = _argument(value, annotation)
    return bound


def _on_host(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(_on_host(item) for item in value)
    if hasattr(value, "base") and hasattr(value, "block_shape"):
        return _on_host(value.base)
    if not hasattr(value, "data_ptr"):
        return True
    tensor = it._unwrap_tensor(value)
    # Other objects with an address, which Triton takes as well, name a device only to say where the
    # emulated GPU would have them.
    return not isinstance(tensor, torch.Tensor) or tensor.device.type == "cpu"


def _grid(grid: Any, arguments: dict[str, object]) -> tuple[int, int, int]:
    sizes = tuple(grid(arguments) if callable(grid) else grid)
    if not 1 <= len(sizes) <= 3:
        raise ValueError(f"a grid has 1 to 3 dimensions, got {len(sizes)}")
    x, y, z = (*sizes, 1, 1)[:3]
    return x, y, z


def _run_programs(fn: Callable[..., Any], sizes: tuple[int, int, int], bound: Any) -> None:
    builder = it.interpreter_builder
    builder.set_grid_dim(*sizes)
    try:
        for x in range(sizes[0]):
            for y in range(sizes[1]):
                for z in range(sizes[2]):
                    builder.set_grid_idx(x, y, z)
                    fn(**bound)
    except (UnsupportedError, InterpreterError):
        raise
    except Exception as error:
        raise InterpreterError(repr(error)) from error


def launch(self: Any, *args: Any, **kwargs: Any) -> None:
    """Launch once; replaces `GridExecutor.__call__`."""
    signature = _signature(self.fn)
    kwargs = {k: v for k, v in kwargs.items() if k in signature.parameters}
    on_host = _on_host(args) and _on_host(tuple(kwargs.values()))
    host_args, host_kwargs = (args, kwargs) if on_host else self._init_args_hst(args, kwargs)
    for hook in getattr(self, "pre_run_hooks", ()):
        hook(*host_args, **host_kwargs)
    binding = signature.bind(*host_args, **host_kwargs)
    binding.apply_defaults()
    arguments = dict(binding.arguments)
    sizes = _grid(self.grid, arguments)
    # Undefined results (0/0, overflow) are the kernel's business, not NumPy's to warn about.
    watching = bounds.watching(self.fn, arguments)
    with interpreting(), np.errstate(all="ignore"), watching:
        _run_programs(self.fn, sizes, bind(signature, arguments))
    if not on_host:
        self._restore_args_dev(args, host_args, kwargs, host_kwargs)


def rewrite(self: Any) -> Callable[..., Any]:
    """Return the runnable form of a kernel; replaces `InterpretedFunction.rewrite`."""
    if self.fn not in _rewritten:
        _rewritten[self.fn] = rewriting.rewrite(
            self.fn, control, chains=adapter().chained_comparisons
        )
    return _rewritten[self.fn]


class Interpreted(it.InterpretedFunction):  # type: ignore[misc]
    """A kernel that passes for a compiled one; replaces `InterpretedFunction`.

    Libraries that wrap kernels ask whether they have one, and for its parameters.
    """

    @property  # type: ignore[misc]
    def __class__(self) -> type[Any]:
        """What `isinstance` also goes by."""
        compiled: type[Any] = JITFunction
        return compiled

    def __getattr__(self, name: str) -> Any:
        """Return what only a kernel that is compiled tells of itself."""
        if "fn" not in vars(self):
            raise AttributeError(f"a kernel has no attribute {name!r}")
        if self.fn not in _compilable:
            _compilable[self.fn] = JITFunction(self.fn, **self.kwargs)
        return getattr(_compilable[self.fn], name)


def call(self: Any, *args: Any, **kwargs: Any) -> Any:
    """Call from inside a kernel; replaces `InterpretedFunction.__call__`.

    Elsewhere the compiler's functions refuse to be called, and so does this.
    """
    if not is_interpreting():
        raise RuntimeError("Cannot call @triton.jit'd outside of the scope of a kernel")
    try:
        return rewrite(self)(*args, **kwargs)
    except (UnsupportedError, InterpreterError, control.AmbiguousTruth):
        raise
    except Exception as error:
        raise InterpreterError(repr(error)) from error
