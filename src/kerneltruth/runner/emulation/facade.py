"""A machine without a GPU that claims to have one, for as long as candidate code runs.

Real kernels come with host code that asks for CUDA: `assert x.is_cuda`, `device="cuda"`,
`torch.cuda.synchronize()`, multiprocessor counts. None of this affects what the kernel computes, so
tensors on the CPU claim to be on `cuda:0`, and torch.cuda and Triton's driver answer as a GPU would
(`gpu.FACTS`).

A torch function mode intercepts calls and turns devices back into the CPU before torch sees them,
so torch's own code never meets the claim. A tensor that the candidate made on the host
(`torch.empty(n)` without a device, `x.cpu()`) keeps reporting the CPU: on a GPU such a tensor is
different, and a kernel that confuses the two fails there.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import overrides
from torch.overrides import TorchFunctionMode
from torch.utils import _device as device_context

from kerneltruth.runner.emulation import buffers, gpu, swaps
from kerneltruth.runner.emulation.devices import (
    ANSWERS,
    CPU,
    Keywords,
    claimed,
    is_host,
    mark_host,
    names_cuda,
)

_READS = frozenset(
    {
        "item",
        "tolist",
        "numpy",
        "nonzero",
        "unique",
        "equal",
        "allclose",
        "masked_select",
        "__bool__",
        "__int__",
        "__float__",
        "__index__",
        "__array__",
        "__contains__",
    }
)


# Functions that return a tensor's address, with which a kernel reaches it without an argument.
_ADDRESSES = frozenset({"data_ptr", "storage", "untyped_storage", "_typed_storage"})


class _State:
    mode: _Facade | None = None
    swaps: Sequence[swaps.Swap] = ()
    on = False
    reads = 0


def install() -> None:
    """Put the facade up in this process and thread; called once, before the candidate."""
    if _State.mode is not None:
        return
    import triton

    _State.mode = _Facade()
    _State.swaps = swaps.all_swaps(resuming)
    triton.runtime.driver.set_active(gpu.PretendDriver())
    sys.meta_path.insert(0, _TrueImports())
    overrides._push_mode(_State.mode)  # type: ignore[no-untyped-call]
    _switch(on=True)


def is_on() -> bool:
    """Return whether the running code sees the facade."""
    return _State.on


@contextlib.contextmanager
def suspended() -> Iterator[None]:
    """Show true devices to our own code, also if no facade is up."""
    was_on = _State.on
    with torch._C.DisableTorchFunction():
        if was_on:
            _switch(on=False)
        try:
            yield
        finally:
            if was_on:
                _switch(on=True)


@contextlib.contextmanager
def resumed() -> Iterator[None]:
    """Put the facade up again, for candidate code that torch or Triton calls back."""
    mode = _State.mode
    with contextlib.ExitStack() as stack:
        stack.enter_context(torch._C._EnableTorchFunction())
        if mode is not None and mode not in _modes():
            stack.enter_context(mode)
        yield


def _modes() -> list[Any]:
    return list(overrides._get_current_function_mode_stack())  # type: ignore[no-untyped-call]


def resuming(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function that torch calls after putting the facade aside."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        with resumed():
            return function(*args, **kwargs)

    return call


def claimed_device(tensor: torch.Tensor) -> torch.device:
    """Return where the candidate believes the tensor to be: what a GPU run would report."""
    with torch._C.DisableTorchFunction():
        return tensor.device if _State.mode is None else claimed(tensor)


def reads() -> int:
    """Return how often the candidate has read tensor contents on the host so far."""
    return _State.reads


class _TrueImports(importlib.abc.MetaPathFinder):
    """Torch modules that load late (torch._dynamo) see the real torch."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return a spec whose module executes without the facade, if torch's; else None."""
        if not _State.on or not name.startswith("torch."):
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            loader: Any = spec.loader
            execute = loader.exec_module

            def exec_module(module: types.ModuleType) -> None:
                with suspended():
                    execute(module)

            loader.exec_module = exec_module
        return spec


def _switch(*, on: bool) -> None:
    for swap in _State.swaps:
        swap.apply() if on else swap.undo()
    _State.on = on


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _tensors(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _tensors(item)


class _Facade(TorchFunctionMode):
    """Answers questions about devices, and removes CUDA from every other call."""

    def __torch_function__(
        self,
        func: Any,
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Keywords | None = None,
    ) -> Any:
        if func is torch.device:
            return func(*args, **(kwargs or {}))
        if func is torch._C._nn._parse_to:
            return _parsed(func, args, kwargs or {})
        name = getattr(func, "__name__", "")
        if name in _READS:
            _State.reads += 1
        elif name in _ADDRESSES:
            with torch._C.DisableTorchFunction():
                buffers.expose(args[0])
        if func is torch.Tensor.backward:
            return _backward(*args, **(kwargs or {}))
        answer = ANSWERS.get(func)
        if answer is not None:
            return answer(args[0], args[1:], kwargs or {})
        return _call(func, args, dict(kwargs or {}))


def _parsed(func: Any, args: tuple[Any, ...], kwargs: Keywords) -> Any:
    """Parse the arguments of `Module.to`, before it moves each tensor."""
    device, *others = func(*args, **kwargs)
    like = next(_tensors([*args, kwargs]), None)
    return device if like is None else claimed(like), *others


def _call(func: Any, args: tuple[Any, ...], kwargs: Keywords) -> Any:
    wanted = _requested(func, kwargs)
    args = tuple(CPU if isinstance(a, torch.device) and names_cuda(a) else a for a in args)
    if kwargs.get("pin_memory"):
        kwargs["pin_memory"] = False
    given = [*_tensors(args), *_tensors(kwargs)]
    if wanted is None:
        wanted = "cuda" if any(not is_host(t) for t in given) else "cpu"
    result = func(*args, **kwargs)
    if wanted == "cpu":
        for tensor in _tensors(result):
            if not any(tensor is t for t in given):
                mark_host(tensor)
    return result


def _requested(func: Any, kwargs: Keywords) -> str | None:
    """Return the device that a call requests, and make `kwargs` request the CPU."""
    device = kwargs.get("device")
    if device is None:
        # `torch.set_default_device` and `with torch.device(...)` act below this mode.
        if func in device_context._device_constructors() and names_cuda(
            device_context.CURRENT_DEVICE
        ):
            kwargs["device"] = CPU
            return "cuda"
        return None
    if isinstance(device, int) or names_cuda(device):
        kwargs["device"] = CPU
        return "cuda"
    return torch.device(device).type


def _backward(
    tensor: torch.Tensor,
    gradient: torch.Tensor | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    # The same, but outside of this mode's own call, so that hooks still see the facade.
    with resumed():
        torch.autograd.backward(tensor, gradient, retain_graph, create_graph, inputs=inputs)
