"""The GPU that the facade emulates: one table of facts, and stand-ins for device APIs."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from typing import Any

import torch

from kerneltruth.runner.unsupported import UnsupportedError

# An H100 SXM; bytes, and counts per multiprocessor where the name says so.
FACTS: Mapping[str, Any] = {
    "name": "NVIDIA H100 80GB HBM3",
    "major": 9,
    "minor": 0,
    "multi_processor_count": 132,
    "total_memory": 85_017_624_576,
    "warp_size": 32,
    "max_threads_per_multi_processor": 2048,
    "max_threads_per_block": 1024,
    "regs_per_multiprocessor": 65536,
    "shared_memory_per_block": 49152,
    "shared_memory_per_block_optin": 232_448,
    "shared_memory_per_multiprocessor": 233_472,
    "L2_cache_size": 52_428_800,
    "clock_rate": 1_980_000,
    "memory_clock_rate": 2_619_000,
    "memory_bus_width": 5120,
    "is_integrated": 0,
    "is_multi_gpu_board": 0,
    "gcnArchName": "",
}
CUDA_VERSION = "12.8"


def nothing(*args: Any, **kwargs: Any) -> None:
    """Stands in for whatever has no effect without a device."""
    return None


def always(value: Any) -> Callable[..., Any]:
    """Return a function that accepts anything and returns `value`."""
    return lambda *args, **kwargs: value


class PretendStream:
    """A stream on which all work completes at once."""

    cuda_stream = native_handle = 0
    stream_id = 0
    device_index = 0
    device_type = 1
    priority = 0
    device = property(always(torch.device("cuda", 0)))
    __init__ = wait_stream = wait_event = synchronize = nothing
    query = always(True)
    is_capturing = always(False)

    def record_event(self, event: Any = None) -> Any:
        """Return an event that has happened."""
        return event if event is not None else Event()

    def __enter__(self) -> PretendStream:
        return self

    __exit__ = nothing


class Event:
    """An event that has happened; there is no time to measure."""

    cuda_event = 0
    __init__ = record = wait = synchronize = nothing
    query = always(True)
    # Milliseconds; not zero, since candidates divide by it.
    elapsed_time = always(1.0)


class DeviceContext:
    """`torch.cuda.device(...)` on a machine with one device."""

    def __init__(self, device: Any = None) -> None:
        """Takes what torch.cuda.device takes."""
        self.idx = 0

    def __enter__(self) -> DeviceContext:
        return self

    __exit__ = nothing


class Generator(torch._C.Generator):
    """A generator of random numbers, for any device."""

    def __new__(cls, device: Any = "cpu") -> Generator:
        """Tensors lie on the CPU, so their random numbers come from there."""
        made: Generator = torch._C.Generator.__new__(cls, "cpu")  # type: ignore[call-arg]
        return made


def refuse(what: str, real: Any = None) -> Callable[..., Any]:
    """Refuse something that needs a real device: by a class where the `real` one is a class.

    Annotations, `isinstance` and subclasses of candidates take no function for a class.
    """

    def refused(*args: Any, **kwargs: Any) -> Any:
        raise UnsupportedError(f"{what} needs a CUDA device")

    if not isinstance(real, type):
        return refused
    return type(real.__name__, (), {"__new__": refused})


def properties(device: Any = None) -> types.SimpleNamespace:
    """Return `torch.cuda.get_device_properties`."""
    return types.SimpleNamespace(**FACTS, uuid="", pci_bus_id=0)


def capability(device: Any = None) -> tuple[int, int]:
    """Return `torch.cuda.get_device_capability`."""
    return FACTS["major"], FACTS["minor"]


def eager(model: Any = None, **options: Any) -> Any:
    """Stand in for `torch.compile`: compute what the uncompiled function computes."""
    return (lambda function: function) if model is None else model


def benchmarked(function: Callable[[], Any], *args: Any, **kwargs: Any) -> Any:
    """Stand in for `triton.testing.do_bench`: one run, and the same time for every candidate."""
    function()
    quantiles = kwargs.get("quantiles")
    if quantiles is None:
        return 1.0
    return [1.0] * len(quantiles) if len(quantiles) > 1 else 1.0


class PretendDriver:
    """Triton's active driver without a device: it answers, and launches nothing."""

    def __init__(self) -> None:
        """Make a driver for the device in `FACTS`."""
        self.utils = types.SimpleNamespace(
            get_device_properties=self.device_properties,
            set_printf_fifo_size=nothing,
            cuOccupancyMaxActiveClusters=always(1),
        )
        self.launcher_cls = lambda source, metadata: nothing
        self.get_current_device: Callable[[], int] = lambda: 0
        self.get_current_stream: Callable[..., int] = lambda device=0: 0
        self.set_current_device = nothing
        self.get_device_capability = capability

    def device_properties(self, device: int) -> dict[str, object]:
        """Return the device's properties by Triton's names."""
        return {
            "max_shared_mem": FACTS["shared_memory_per_block_optin"],
            "max_num_regs": FACTS["regs_per_multiprocessor"],
            "multiprocessor_count": FACTS["multi_processor_count"],
            "warpSize": FACTS["warp_size"],
            "sm_clock_rate": FACTS["clock_rate"],
            "mem_clock_rate": FACTS["memory_clock_rate"],
            "mem_bus_width": FACTS["memory_bus_width"],
        }

    def get_current_target(self) -> Any:
        """Return the target of the device in `FACTS`."""
        from triton.backends.compiler import GPUTarget

        return GPUTarget("cuda", FACTS["major"] * 10 + FACTS["minor"], FACTS["warp_size"])

    get_active_torch_device = always(torch.device("cuda", 0))
    # What the facade has changed.
    get_device_interface = always(torch.cuda)
    get_benchmarker = always(benchmarked)
    # There is no cache to clear between runs, no launcher to build, and there are no tensor maps.
    get_empty_cache_for_benchmark = always(torch.empty(1, dtype=torch.int32))
    clear_cache = nothing
    map_python_to_cpp_type = always("void*")

    def assemble_tensormap_to_arg(self, tensormaps: Any, args: Any) -> Any:
        """Return the arguments as they are."""
        return args
