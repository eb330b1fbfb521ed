"""Record what a candidate launches: kernels, grids, constants and types.

`tiles` chooses sizes by it, and the judge learns what has been compiled.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache, wraps
from types import SimpleNamespace
from typing import Any

import torch

from kerneltruth.runner import emulation
from kerneltruth.runner.child import autotune, kernel_work
from kerneltruth.runner.observation import Constant, Launch
from kerneltruth.runner.unsupported import UnsupportedError

MAX_LAUNCHES = 256
GRID_LIMITS = (2**31 - 1, 65535, 65535)
# What `kernel.warmup(...)` reports in the interpreter, where nothing is compiled: a modest kernel.
WARM_REGISTERS = 32
WARM_SHARED_BYTES = 1024

_POINTERS = {
    "float64": "fp64",
    "float32": "fp32",
    "float16": "fp16",
    "bfloat16": "bf16",
    "float8_e4m3fn": "fp8e4nv",
    "float8_e5m2": "fp8e5",
    "float8_e4m3fnuz": "fp8e4b8",
    "float8_e5m2fnuz": "fp8e5b16",
    "int64": "i64",
    "int32": "i32",
    "int16": "i16",
    "int8": "i8",
    "uint64": "u64",
    "uint32": "u32",
    "uint16": "u16",
    "uint8": "u8",
    "bool": "i1",
}


@dataclass(slots=True)
class _State:
    installed: bool = False
    launches: dict[tuple[Any, ...], Launch] = field(default_factory=dict)


_STATE = _State()


def install() -> None:
    """Replace autotuning and record launches, in this process, permanently."""
    if _STATE.installed:
        return
    from triton.compiler.compiler import CompiledKernel
    from triton.runtime.jit import JITFunction

    autotune.install()
    JITFunction.run = _recording_jit(JITFunction.run)
    CompiledKernel.__getitem__ = counting_compiled(CompiledKernel.__getitem__)
    # A process that compiles kernels does not even import the interpreter.
    if os.environ.get("TRITON_INTERPRET") == "1":
        from triton.runtime.interpreter import InterpretedFunction

        InterpretedFunction.run = _recording_interpreted(InterpretedFunction.run)
    _STATE.installed = True


def count() -> None:
    """Count launches of Triton kernels that a CUDA source has too, and leave all else alone."""
    from triton.runtime.jit import JITFunction

    JITFunction.run = counted(JITFunction.run)


def counted(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return a kernel's `run` that compiles but does not launch a kernel that must do nothing."""

    # An error of Python's on the arguments names this function: as Triton's own.
    @wraps(original)
    def run(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        warmup = warmup or not kernel_work.launched(self.fn)
        return original(self, *args, grid=grid, warmup=warmup, **kwargs)

    return run


def begin(config: int) -> None:
    """Begin a call: forget earlier launches; autotuned kernels use configuration `config`."""
    autotune.choose(config)
    _STATE.launches.clear()


def collect() -> tuple[Launch, ...]:
    """Return the distinct launches since `begin`, in order, at most `MAX_LAUNCHES`."""
    return tuple(_STATE.launches.values())


def _recording_jit(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def run(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        if not warmup:
            _refuse_uninterpreted(self)
            constexprs = {p.name for p in self.params if p.is_constexpr}
            grid = _observed(grid, self.fn, self.arg_names, constexprs, args, kwargs)
            # A kernel that is to do nothing is compiled as for a warm-up, and not launched.
            warmup = not kernel_work.launched(self.fn)
        with torch._C.DisableTorchFunction(), kernel_work.uncounted():
            return original(self, *args, grid=grid, warmup=warmup, **kwargs)

    return run


def _refuse_uninterpreted(kernel: Any) -> None:
    """Refuse a Gluon kernel where kernels are interpreted: only a GPU can run it."""
    if os.environ.get("TRITON_INTERPRET") == "1" and getattr(kernel, "is_gluon", bool)():
        raise UnsupportedError(
            f"{kernel.fn.__name__} is a Gluon kernel, which Triton's interpreter does not run; "
            "judge it on a GPU"
        )


def counting_compiled(original: Callable[..., Any]) -> Callable[..., Any]:
    """Launches of a kernel that the candidate has compiled by itself, with `warmup` say."""

    def getitem(self: Any, grid: Any) -> Callable[..., Any]:
        launch = original(self, grid)
        function = getattr(getattr(self.src, "fn", None), "fn", None)

        def run(*args: Any, **kwargs: Any) -> None:
            if function is None:
                made = kernel_work.launched_own(self.name, "compiled")
            else:
                made = kernel_work.launched(function)
            if made:
                launch(*args, **kwargs)

        return run

    return getitem


def _recording_interpreted(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def run(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        if not warmup:
            _refuse_host_pointers(args, kwargs)
            constexprs = _annotated_constexprs(self.fn)
            grid = _observed(grid, self.fn, self.arg_names, constexprs, args, kwargs)
            if not kernel_work.launched(self.fn):
                return WarmKernel(self, kwargs)
            with torch._C.DisableTorchFunction(), kernel_work.uncounted():
                original(self, *args, grid=grid, warmup=False, **kwargs)
        return WarmKernel(self, kwargs)

    return run


class WarmKernel:
    """Stands in for the compiled kernel that a launch or `warmup` returns, in the interpreter.

    Kernels that size their grid by occupancy read its registers and shared memory.
    """

    def __init__(self, function: Any, kwargs: dict[str, object]) -> None:
        """A kernel as warmed up with `kwargs`."""
        self._function = function
        self.name = function.__name__
        self.n_regs = WARM_REGISTERS
        self.n_spills = 0
        self.n_max_threads = 1024
        self.function = self.module = 0
        self.metadata = SimpleNamespace(
            name=self.name,
            shared=WARM_SHARED_BYTES,
            num_warps=kwargs.get("num_warps", 4),
            num_ctas=kwargs.get("num_ctas", 1),
            num_stages=kwargs.get("num_stages", 3),
        )
        self.asm: dict[str, str] = {}

    def _init_handles(self) -> None:
        """Do nothing: the interpreter runs the source."""

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        """Launch this kernel with all arguments by position, constants included."""

        def launch(*args: Any, stream: Any = None) -> None:
            self._function.run(*args, grid=grid, warmup=False)

        return launch


# What a function's definition says is found once: it takes longer than the rest of a recording.
@lru_cache(maxsize=64)
def _annotated_constexprs(function: Any) -> set[str]:
    return {name for name, kind in function.__annotations__.items() if "constexpr" in str(kind)}


def _refuse_host_pointers(args: tuple[Any, ...], kwargs: dict[str, object]) -> None:
    """Refuse a tensor that the candidate left on the host as a kernel argument, as on a GPU."""
    if not emulation.is_on():
        return
    for position, value in enumerate((*args, *kwargs.values())):
        if isinstance(value, torch.Tensor) and emulation.is_host(value):
            raise ValueError(
                f"Pointer argument (at {position}) cannot be accessed from Triton (cpu tensor?)"
            )


def _observed(
    grid: Any,
    function: Any,
    names: list[str],
    constexprs: set[str],
    args: tuple[Any, ...],
    kwargs: dict[str, object],
) -> Any:
    """Wrap a grid to record the launch when its value is known."""
    tuning = autotune.tuning()
    configs = tuning.configs if tuning else 1

    def note(value: Any) -> Any:
        size = _plain_grid(value)
        if size is not None:
            if emulation.is_on() and any(n > m for n, m in zip(size, GRID_LIMITS, strict=False)):
                raise RuntimeError(f"Triton Error [CUDA]: invalid argument (grid {size})")
            _record(function, names, constexprs, args, kwargs, size, configs)
        return value

    if not callable(grid):
        return note(grid)

    def evaluate(meta: Any) -> Any:
        # The candidate's own code again: it must see its tensors as outside of a launch.
        with torch._C._EnableTorchFunction():
            value = grid(meta)
        return note(value)

    return evaluate


def _plain_grid(value: Any) -> tuple[int, ...] | None:
    """Return the grid as integers; None if it is not a grid, so that Triton reports it."""
    try:
        return tuple(int(getattr(n, "value", n)) for n in value)
    except (TypeError, ValueError):
        return None


def _record(
    function: Any,
    names: list[str],
    constexprs: set[str],
    args: tuple[Any, ...],
    kwargs: dict[str, object],
    grid: tuple[int, ...],
    configs: int,
) -> None:
    values = _defaults(function) | dict(zip(names, args, strict=False))
    values |= {name: value for name, value in kwargs.items() if name in names}
    constants: dict[str, Constant] = {}
    signature: dict[str, str] = {}
    for name, value in values.items():
        if name in constexprs or value is None:
            plain = getattr(value, "value", value)
            if plain is None or isinstance(plain, bool | int | float | str):
                constants[name] = plain
        else:
            signature[name] = type_name(value)
    key = (function.__qualname__, grid, repr(constants), repr(signature), configs)
    if len(_STATE.launches) < MAX_LAUNCHES:
        _STATE.launches.setdefault(
            key,
            Launch(
                kernel=function.__name__,
                grid=grid,
                constants=constants,
                signature=signature,
                configs=configs,
            ),
        )


@lru_cache(maxsize=64)
def _defaults(function: Any) -> dict[str, object]:
    return {
        name: parameter.default
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.default is not inspect.Parameter.empty
    }


def type_name(value: Any) -> str:
    """Return the type of a kernel argument in Triton's notation."""
    if isinstance(value, bool):
        return "i1"
    if isinstance(value, int):
        if -(2**31) <= value < 2**31:
            return "i32"
        return "i64" if -(2**63) <= value < 2**63 else "u64"
    if isinstance(value, float):
        return "fp32"
    if isinstance(value, tuple):
        return f"({', '.join(type_name(item) for item in value)})"
    element = _POINTERS.get(str(getattr(value, "dtype", "")).removeprefix("torch."))
    if hasattr(value, "block_shape"):
        element = type_name(value.base).removeprefix("*")
        return f"tensordesc<{element}{list(value.block_shape)}>"
    return f"*{element}" if element else type(value).__name__
