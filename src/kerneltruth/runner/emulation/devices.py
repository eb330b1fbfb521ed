"""Decide which device a tensor claims to be on while the facade is up.

All tensors really lie on the CPU. Those that the candidate made on the host carry a mark and report
the CPU; all others claim to be on `cuda:0`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from kerneltruth.runner.unsupported import UnsupportedError

CPU = torch.device("cpu")
CUDA = torch.device("cuda", 0)
_HOST_MARK = "_lies_on_the_host"
# Keyword arguments of a call of PyTorch, which alone knows what they may be.
Keywords = dict[str, Any]
_Answer = Callable[[torch.Tensor, tuple[Any, ...], Keywords], Any]


def is_host(tensor: torch.Tensor) -> bool:
    """Return whether the candidate knowingly keeps this tensor on the host."""
    return bool(getattr(tensor, _HOST_MARK, False))


def mark_host(tensor: torch.Tensor) -> None:
    """Mark a tensor that the candidate made on the host."""
    setattr(tensor, _HOST_MARK, True)


def claimed(tensor: torch.Tensor) -> torch.device:
    """Return the device that a tensor claims; called where its true device is visible."""
    real = tensor.device
    return real if real != CPU or is_host(tensor) else CUDA


def names_cuda(value: Any) -> bool:
    """Return whether a device or its name means CUDA."""
    if isinstance(value, torch.device):
        return value.type == "cuda"
    return isinstance(value, str) and value.split(":")[0] == "cuda"


def _to(tensor: torch.Tensor, args: tuple[Any, ...], kwargs: Keywords) -> torch.Tensor:
    """Parse arguments of `Tensor.to`: a device, a dtype, both, or another tensor."""
    target: Any = None
    first = args[0] if args else kwargs.get("device", kwargs.get("other"))
    if isinstance(first, torch.Tensor):
        target = claimed(first)
    elif isinstance(first, str | torch.device) or type(first) is int:
        target = first
        args = (CPU, *args[1:]) if args else args
        kwargs = {**kwargs, "device": CPU} if "device" in kwargs else kwargs
    elif "device" in kwargs:
        target = kwargs["device"]
        kwargs = {**kwargs, "device": CPU}
    result = tensor.to(*args, **kwargs)
    return _keep_mark(tensor, result) if target is None else _moved(tensor, target, result)


def _moved(tensor: torch.Tensor, target: Any, result: torch.Tensor) -> torch.Tensor:
    """Return `result`, made from `tensor`, as it would be after a move to `target`."""
    to_host = not (isinstance(target, int) or names_cuda(target))
    if to_host and torch.device(target).type != "cpu":
        return result.to(target)
    if to_host != is_host(tensor) and result is tensor:
        result = tensor.clone()
    if to_host:
        mark_host(result)
    return result


def _keep_mark(tensor: torch.Tensor, result: torch.Tensor) -> torch.Tensor:
    if result is not tensor and is_host(tensor):
        mark_host(result)
    return result


def _cuda(tensor: torch.Tensor, args: tuple[Any, ...], kwargs: Keywords) -> torch.Tensor:
    return _moved(tensor, "cuda", tensor)


def _cpu(tensor: torch.Tensor, args: tuple[Any, ...], kwargs: Keywords) -> torch.Tensor:
    return _moved(tensor, "cpu", tensor)


def _numpy(tensor: torch.Tensor, args: tuple[Any, ...], kwargs: Keywords) -> Any:
    if not is_host(tensor) and not kwargs.get("force"):
        raise TypeError(
            "can't convert cuda:0 device type tensor to numpy. "
            "Use Tensor.cpu() to copy the tensor to host memory first."
        )
    return tensor.numpy(*args, **kwargs)


def _type(tensor: torch.Tensor, args: tuple[Any, ...], kwargs: Keywords) -> Any:
    wanted = args[0] if args else kwargs.get("dtype")
    if wanted is None:
        name = tensor.type()
        return name if is_host(tensor) else name.replace("torch.", "torch.cuda.")
    if isinstance(wanted, str):
        target = "cuda" if wanted.startswith("torch.cuda.") else "cpu"
        return _moved(tensor, target, tensor.type(wanted.replace("torch.cuda.", "torch.")))
    return _keep_mark(tensor, tensor.type(wanted))


def _pinned(tensor: torch.Tensor, args: tuple[Any, ...], kwargs: Keywords) -> torch.Tensor:
    return tensor


def _array_interface(
    tensor: torch.Tensor, args: tuple[Any, ...], kwargs: Keywords
) -> dict[str, object]:
    raise UnsupportedError("memory of a real CUDA device (__cuda_array_interface__)")


def _answers() -> dict[Any, _Answer]:
    tensor: Any = torch.Tensor
    return {
        tensor.is_cuda.__get__: lambda t, a, k: claimed(t).type == "cuda",
        tensor.is_cpu.__get__: lambda t, a, k: claimed(t).type == "cpu",
        tensor.device.__get__: lambda t, a, k: claimed(t),
        tensor.get_device: lambda t, a, k: -1 if claimed(t).type == "cpu" else 0,
        tensor.is_pinned: lambda t, a, k: False,
        tensor.to: _to,
        tensor.cuda: _cuda,
        tensor.cpu: _cpu,
        tensor.numpy: _numpy,
        tensor.type: _type,
        tensor.pin_memory: _pinned,
        tensor.__cuda_array_interface__.__get__: _array_interface,
    }


ANSWERS: dict[Any, _Answer] = _answers()
