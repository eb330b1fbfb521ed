"""List what differs from the real torch and Triton while the facade is up, by attribute."""

from __future__ import annotations

import contextlib
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

from kerneltruth.runner.emulation.gpu import (
    CUDA_VERSION,
    FACTS,
    DeviceContext,
    Event,
    Generator,
    PretendStream,
    always,
    benchmarked,
    capability,
    eager,
    nothing,
    properties,
    refuse,
)

_MISSING = object()
_LEGACY_TENSORS = (
    *("Float", "Double", "Half", "BFloat16"),
    *("Long", "Int", "Short", "Char", "Byte", "Bool"),
)
_EXTENSION_FUNCTIONS = (
    *("load", "load_inline", "CUDAExtension", "CppExtension", "BuildExtension"),
    *("include_paths", "library_paths", "is_ninja_available", "verify_ninja_availability"),
)


class Swap:
    """An attribute that holds another value while the facade is up."""

    __slots__ = ("_name", "_owner", "_real", "_value")

    def __init__(self, owner: Any, name: str, value: Any) -> None:
        """Set `owner.name` to `value`; a module's own value is remembered."""
        self._owner, self._name, self._value = owner, name, value
        self._real = vars(owner).get(name, _MISSING)

    def apply(self) -> None:
        """Install the other value."""
        setattr(self._owner, self._name, self._value)

    def undo(self) -> None:
        """Restore the real value, or remove the name if there was none."""
        if self._real is _MISSING:
            delattr(self._owner, self._name)
        else:
            setattr(self._owner, self._name, self._real)


class _ModuleNames(Swap):
    """Names of one module that hold other values while the facade is up.

    A module's dict is changed at once: each call of a candidate switches some fifty names six
    times.
    """

    __slots__ = ("_added", "_names", "_values")

    def __init__(self, module: types.ModuleType, values: Mapping[str, Any]) -> None:
        """Set the module's names to these values; its own are remembered."""
        self._names = vars(module)
        self._values = dict(values)
        self._real = {n: self._names[n] for n in values if n in self._names}
        self._added = values.keys() - self._real.keys()

    def apply(self) -> None:
        """Install the other values."""
        self._names.update(self._values)

    def undo(self) -> None:
        """Restore the real values, and remove the names that had none."""
        self._names.update(self._real)
        for name in self._added:
            self._names.pop(name, None)


@contextlib.contextmanager
def _range(*args: Any, **kwargs: Any) -> Iterator[None]:
    yield


class _OfDtype(type):
    """Tensors of one dtype on CUDA, for `isinstance`."""

    dtype: torch.dtype

    def __instancecheck__(cls, instance: Any) -> bool:
        is_there = isinstance(instance, torch.Tensor) and instance.is_cuda
        return is_there and instance.dtype == cls.dtype


def _legacy(name: str) -> type:
    """`torch.cuda.FloatTensor` and its like, which made tensors before there were devices."""
    make = getattr(torch, name)

    def made(cls: type, *args: Any) -> torch.Tensor:
        # Not a torch function: allocations within it would count as host tensors.
        with torch._C.DisableTorchFunction():
            tensor: torch.Tensor = make(*args)
            return tensor

    return _OfDtype(name, (), {"__new__": made, "dtype": make.dtype})


def _seed(seed: int) -> None:
    torch.default_generator.manual_seed(int(seed))


# Names in `torch.cuda` of functions that do nothing, return 0 or true, or need a real device.
_SILENT = (
    "init _lazy_init set_device synchronize ipc_collect empty_cache reset_peak_memory_stats "
    "reset_max_memory_allocated reset_accumulated_memory_stats set_stream _sleep "
    "set_per_process_memory_fraction reset_max_memory_cached seed seed_all"
)
_ZERO = (
    "current_device memory_allocated max_memory_allocated memory_reserved utilization "
    "max_memory_reserved memory_cached max_memory_cached temperature power_draw"
)
_TRUE = "is_available is_initialized is_bf16_supported is_tf32_supported _is_compiled"
_NEEDS_DEVICE = (
    "CUDAGraph graph graph_pool_handle make_graphed_callables cudart current_blas_handle "
    "caching_allocator_alloc CUDAPluggableAllocator MemPool _compile_kernel comm"
)


def _cuda_functions() -> dict[str, object]:
    still: Callable[..., Any] = nothing
    memory = FACTS["total_memory"]
    return {
        **dict.fromkeys(_SILENT.split(), still),
        **dict.fromkeys(_ZERO.split(), always(0)),
        **dict.fromkeys(_TRUE.split(), always(True)),
        **{
            name: refuse(f"torch.cuda.{name}", getattr(torch.cuda, name, None))
            for name in _NEEDS_DEVICE.split()
        },
        "device_count": always(1),
        "get_device_name": always(FACTS["name"]),
        "get_device_capability": capability,
        "get_device_properties": properties,
        "get_arch_list": always(["sm_80", "sm_90"]),
        "can_device_access_peer": always(False),
        "is_current_stream_capturing": always(False),
        "mem_get_info": always((memory, memory)),
        "memory_stats": always({}),
        "memory_summary": always(""),
        "manual_seed": _seed,
        "manual_seed_all": _seed,
        "initial_seed": torch.initial_seed,
        "get_rng_state": lambda device=None: torch.get_rng_state(),
        "set_rng_state": lambda state, device=None: torch.set_rng_state(state),
        "get_rng_state_all": lambda: [torch.get_rng_state()],
        "set_rng_state_all": lambda states: torch.set_rng_state(states[0]),
        "default_generators": (torch.default_generator,),
        "current_stream": lambda device=None: PretendStream(),
        "default_stream": lambda device=None: PretendStream(),
        "stream": lambda stream=None: contextlib.nullcontext(stream),
        "Stream": PretendStream,
        "ExternalStream": PretendStream,
        "Event": Event,
        "device": DeviceContext,
        "device_of": DeviceContext,
        "_DeviceGuard": DeviceContext,
        **{f"{kind}Tensor": _legacy(f"{kind}Tensor") for kind in _LEGACY_TENSORS},
    }


def all_swaps(resuming: Callable[[Callable[..., Any]], Callable[..., Any]]) -> list[Swap]:
    """Return all that differs from the real torch and Triton while the facade is up.

    `resuming` wraps a function of the candidate that torch will call back.
    """
    import triton.testing

    cuda, nvtx = torch.cuda, torch.cuda.nvtx
    accelerator: dict[str, object] = {
        "is_available": always(True),
        "device_count": always(1),
        "current_accelerator": always(torch.device("cuda")),
        "current_device_index": always(0),
        "current_device_idx": always(0),
        "synchronize": nothing,
        "set_device_index": nothing,
        "current_stream": lambda device=None: PretendStream(),
    }
    autocast: Any = torch.amp.autocast_mode.autocast
    table: list[tuple[Any, Mapping[str, Any]]] = [
        (cuda, _cuda_functions()),
        (nvtx, {"range": _range, "range_push": always(0), "range_pop": always(0)}),
        (nvtx, {"mark": nothing, "range_start": always(0), "range_end": nothing}),
        (cuda.profiler, {"start": nothing, "stop": nothing, "profile": _range}),
        (torch._C, {"_cuda_getCurrentRawStream": always(0), "_cuda_getDevice": always(0)}),
        (torch.version, {"cuda": CUDA_VERSION, "hip": None}),
        (torch.backends.cuda, {"is_built": always(True)}),
        (torch, {"compile": eager, "Generator": Generator}),
        (autocast, {"__init__": _autocast_init(autocast.__init__)}),
        (triton.testing, {"do_bench": benchmarked, "do_bench_cudagraph": benchmarked}),
    ]
    if hasattr(torch, "accelerator"):
        table.append((torch.accelerator, accelerator))
    made = [swap for owner, values in table for swap in swaps_of(owner, values)]
    return [*made, *_callback_swaps(resuming), *_extension_swaps()]


def swaps_of(owner: Any, values: Mapping[str, Any]) -> Iterator[Swap]:
    """Yield what changes these attributes of an owner: at once, if it is a module."""
    if type(owner) is types.ModuleType:
        yield _ModuleNames(owner, values)
    else:
        yield from (Swap(owner, name, value) for name, value in values.items())


def _callback_swaps(resuming: Callable[[Callable[..., Any]], Callable[..., Any]]) -> list[Swap]:
    """Places where candidates pass functions to torch: backward passes and custom operators."""
    backward: Any = torch.autograd.function.BackwardCFunction
    library: Any = torch.library
    custom_op, implement = library.custom_op, library.Library.impl

    def define(name: str, function: Any = None, /, **options: Any) -> Any:
        options.pop("device_types", None)
        if function is None:
            return lambda given: custom_op(name, resuming(given), **options)
        return custom_op(name, resuming(function), **options)

    def implemented(self: Any, name: Any, function: Any, key: str = "", **options: Any) -> Any:
        own = isinstance(function, types.FunctionType)
        if not own or function.__module__.partition(".")[0] == "torch":
            return implement(self, name, function, key, **options)
        function = resuming(function)
        return implement(self, name, function, "CPU" if key == "CUDA" else key, **options)

    return [
        Swap(backward, "apply", resuming(backward.apply)),
        Swap(library, "custom_op", define),
        Swap(library.Library, "impl", implemented),
    ]


def _autocast_init(real: Callable[..., None]) -> Callable[..., None]:
    def init(self: Any, device_type: str, dtype: Any = None, *args: Any, **kwargs: Any) -> None:
        if device_type == "cuda":
            device_type, dtype = "cpu", dtype if dtype is not None else torch.float16
        real(self, device_type, dtype, *args, **kwargs)

    return init


def _extension_swaps() -> list[Swap]:
    """`torch.utils.cpp_extension` as a module that refuses: there is no CUDA to build for.

    The real one takes long to import, so it is not loaded to be patched.
    """
    name = "torch.utils.cpp_extension"
    stand_in = types.ModuleType(name)
    refused = {function: refuse(f"{name}.{function}") for function in _EXTENSION_FUNCTIONS}
    vars(stand_in).update(CUDA_HOME=None, **refused)
    return [_ModuleSwap(name, stand_in), Swap(torch.utils, "cpp_extension", stand_in)]


class _ModuleSwap(Swap):
    """An entry of `sys.modules` that is another module while the facade is up."""

    __slots__ = ()

    def __init__(self, name: str, module: types.ModuleType) -> None:
        """Make `import name` yield `module`."""
        self._owner, self._name, self._value = sys.modules, name, module
        self._real = sys.modules.get(name, _MISSING)

    def apply(self) -> None:
        """Install the other module."""
        sys.modules[self._name] = self._value

    def undo(self) -> None:
        """Restore the real module, or forget the name."""
        if self._real is _MISSING:
            sys.modules.pop(self._name, None)
        else:
            sys.modules[self._name] = self._real
