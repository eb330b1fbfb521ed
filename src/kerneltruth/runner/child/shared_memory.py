"""The judge's memory in the child: inputs lie in it, and what the candidate allocates.

The judge reads it by itself. What the child says of it is where things lie, and what is still used.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import weakref
from typing import Any, Protocol

import torch

from kerneltruth.runner.cuda_driver import Driver
from kerneltruth.runner.gaps import Gaps

# From <malloc.h>.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_KEPT_BYTES = 32 * 2**20
# Looked up before a candidate could replace it.
_as_tensor = torch.as_tensor


class Mapping(Protocol):
    """Memory of the judge's, as this process has mapped it.

    Attributes:
        device: whose memory it is.
        first: the address at which it begins.
        size: how many bytes it has.
    """

    device: torch.device
    first: int
    size: int

    def piece(self, start: int, size: int) -> Any:
        """Return what a tensor of these bytes keeps alive."""
        ...

    def tensor(self, piece: Any) -> torch.Tensor:
        """Return the bytes of a piece."""
        ...


class HostMapping:
    """A file of the judge's."""

    device = torch.device("cpu")

    def __init__(self, descriptor: int, size: int) -> None:
        """Map it."""
        self._map, self.size = mmap.mmap(descriptor, size), size
        self.first = torch.frombuffer(self._map, dtype=torch.uint8).data_ptr()
        _keep_freed_memory()

    def piece(self, start: int, size: int) -> memoryview:
        """Return what a tensor of these bytes keeps alive."""
        return memoryview(self._map)[start : start + size]

    def tensor(self, piece: memoryview) -> torch.Tensor:
        """Return the bytes of a piece."""
        return torch.frombuffer(piece, dtype=torch.uint8)


class DeviceMapping:
    """Memory of a CUDA device, unmapped when no tensor uses it any more."""

    def __init__(self, descriptor: int, size: int, device: torch.device) -> None:
        """Map it.

        Raises:
            DriverError: the driver refuses.
        """
        self.device, self.size = device, size
        block = Driver(device.index or 0).taken(descriptor, size)
        self.first = block.address
        # A process that ends leaves this to the driver; one that was forked here must.
        weakref.finalize(self, block.close).atexit = False

    def piece(self, start: int, size: int) -> _DevicePiece:
        """Return what a tensor of these bytes keeps alive."""
        return _DevicePiece(self, start, size)

    def tensor(self, piece: _DevicePiece) -> torch.Tensor:
        """Return the bytes of a piece."""
        return _as_tensor(piece, device=self.device)


class _DevicePiece:
    """Some of a mapping, in the form that PyTorch and others take without a copy."""

    def __init__(self, mapping: DeviceMapping, start: int, size: int) -> None:
        self._mapping = mapping
        self.__cuda_array_interface__ = {
            "shape": (size,),
            "typestr": "|u1",
            "data": (mapping.first + start, False),
            "version": 3,
        }


def mapped(descriptor: int, size: int, device: torch.device) -> Mapping:
    """Map memory of the judge's on a device.

    Raises:
        OSError, DriverError: it cannot be.
    """
    if device.type == "cpu":
        return HostMapping(descriptor, size)
    return DeviceMapping(descriptor, size, device)


class SharedMemory:
    """Memory of the judge's, mapped into this process."""

    def __init__(self, mapping: Mapping) -> None:
        self._mapping = mapping
        self._gaps = Gaps(())
        # By where they begin: what each tensor keeps alive, and its end.
        self._given: dict[int, tuple[weakref.ref[Any], int]] = {}

    def is_of(self, device: torch.device) -> bool:
        """Return whether it is memory of that device."""
        own = self._mapping.device
        return device.type == own.type and device.index in (None, own.index)

    def begin(self, room: tuple[int, ...]) -> None:
        """Begin a call whose allocations have this room."""
        self._gaps = Gaps(room)

    def take(self, size: int) -> int | None:
        """Take memory for an allocation; return where it begins, None if there is no room."""
        return self._gaps.take(size)

    def at(self, start: int, size: int) -> torch.Tensor:
        """Return some of the memory, as a tensor with a storage of its own."""
        if not size:
            return torch.empty(0, dtype=torch.uint8, device=self._mapping.device)
        piece = self._mapping.piece(start, size)
        self._given[start] = weakref.ref(piece), start + size
        return self._mapping.tensor(piece)

    def place_of(self, address: int) -> int | None:
        """Return where in the memory an address lies, if it does."""
        place = address - self._mapping.first
        return place if 0 <= place < self._mapping.size else None

    def used(self) -> tuple[int, ...]:
        """Return what tensors still use: where each piece begins and ends."""
        self._given = {s: given for s, given in self._given.items() if given[0]() is not None}
        return tuple(n for start, (_, end) in self._given.items() for n in (start, end))


def _keep_freed_memory() -> None:
    """Make malloc keep large pieces that are freed, where it can.

    It learns to when large buffers are freed, and here none are. Without, each temporary of the
    interpreter's begins with page faults.
    """
    with contextlib.suppress(AttributeError):
        malloc = ctypes.CDLL(None).mallopt
        malloc(_M_MMAP_THRESHOLD, _KEPT_BYTES)
        malloc(_M_TRIM_THRESHOLD, 2 * _KEPT_BYTES)
