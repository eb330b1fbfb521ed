"""Memory of a CUDA device that two processes map, by the driver alone.

The process that makes it exports a descriptor; whoever is handed that descriptor maps the same
memory. Nothing else leads to it: a handle of CUDA's older IPC is bytes that any process may guess.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable
from typing import Any

# From <cuda.h>.
_PINNED, _POSIX_FILE, _ON_DEVICE, _READ_WRITE = 1, 1, 1, 3
# A stream of each thread, so that copies of one do not wait for another's.
_OWN_STREAM = ctypes.c_void_p(2)
# Whether there is virtual memory management, and whether its memory is exported as a descriptor.
_NEEDED_ATTRIBUTES = (102, 103)

_Size, _Address = ctypes.c_size_t, ctypes.c_uint64


class DriverError(Exception):
    """The driver refuses, or is not there."""


class _Location(ctypes.Structure):
    _fields_ = (("type", ctypes.c_int), ("id", ctypes.c_int))


class _Properties(ctypes.Structure):
    """`CUmemAllocationProp`."""

    _fields_ = (
        ("type", ctypes.c_int),
        ("handle_types", ctypes.c_int),
        ("location", _Location),
        ("metadata", ctypes.c_void_p),
        ("flags", ctypes.c_ubyte * 8),
    )


class _Access(ctypes.Structure):
    """`CUmemAccessDesc`."""

    _fields_ = (("location", _Location), ("flags", ctypes.c_int))


class Driver:
    """The CUDA driver, and one of its devices."""

    def __init__(self, device: int) -> None:
        """Load it.

        Raises:
            DriverError: it is not there, or the device cannot share memory.
        """
        try:
            self._library = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise DriverError(f"no CUDA driver: {error}") from error
        self.call("cuInit", 0)
        self._ordinal, self._device, self._context = device, ctypes.c_int(), ctypes.c_void_p()
        self.call("cuDeviceGet", ctypes.byref(self._device), device)
        found = ctypes.c_int()
        for attribute in _NEEDED_ATTRIBUTES:
            self.call("cuDeviceGetAttribute", ctypes.byref(found), attribute, self._device)
            if not found.value:
                raise DriverError(f"the device lacks attribute {attribute}: it shares no memory")
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(self._context), self._device)

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function of the driver.

        Raises:
            DriverError: it returned an error, or this driver has no such function.
        """
        function = getattr(self._library, name, None)
        code = None if function is None else function(*arguments)
        if code == 0:
            return
        text = ctypes.c_char_p()
        if code is not None:
            self._library.cuGetErrorName(code, ctypes.byref(text))
        raise DriverError(f"{name}: {(text.value or b'unknown').decode()}")

    def use_here(self) -> None:
        """Make the device's context this thread's."""
        self.call("cuCtxSetCurrent", self._context)

    def make(self, size: int) -> DeviceBlock:
        """Make memory that holds NaN, whatever float reads it, and nothing of an earlier child's.

        Raises:
            DriverError: there is no room, or the size is no multiple of the device's pages.
        """
        wanted = _Properties(type=_PINNED, handle_types=_POSIX_FILE, location=self._place())
        page, handle = _Size(), _Address()
        self.call("cuMemGetAllocationGranularity", ctypes.byref(page), ctypes.byref(wanted), 0)
        if size % page.value:
            raise DriverError(f"{size} bytes are no multiple of the device's {page.value}")
        self.call(
            "cuMemCreate", ctypes.byref(handle), _Size(size), ctypes.byref(wanted), _Address()
        )
        block = DeviceBlock(self, handle, size)
        start, all_ones = _Address(block.address), ctypes.c_ubyte(0xFF)
        self.call("cuMemsetD8_v2_ptds", start, all_ones, _Size(size))
        block.settle()
        return block

    def taken(self, descriptor: int, size: int) -> DeviceBlock:
        """Map memory that another process has exported.

        Raises:
            DriverError: the driver refuses.
        """
        handle = _Address()
        file = ctypes.c_void_p(descriptor)
        self.call("cuMemImportFromShareableHandle", ctypes.byref(handle), file, _POSIX_FILE)
        return DeviceBlock(self, handle, size)

    def access(self, address: int, size: int) -> None:
        """Let the device read and write mapped memory."""
        wanted = _Access(location=self._place(), flags=_READ_WRITE)
        self.call("cuMemSetAccess", _Address(address), _Size(size), ctypes.byref(wanted), _Size(1))

    def _place(self) -> _Location:
        return _Location(type=_ON_DEVICE, id=self._ordinal)


class DeviceBlock:
    """Memory of a device, mapped into this process until it is closed."""

    def __init__(self, driver: Driver, handle: ctypes.c_uint64, size: int) -> None:
        """Map it."""
        self._driver, self._handle, self._size = driver, handle, size
        self._undo: list[Callable[[], None]] = [lambda: driver.call("cuMemRelease", handle)]
        start = _Address()
        self.address = 0
        try:
            driver.call(
                "cuMemAddressReserve",
                *(ctypes.byref(start), _Size(size), _Size(0), _Address(), _Address()),
            )
            self._undo.append(lambda: driver.call("cuMemAddressFree", start, _Size(size)))
            driver.call("cuMemMap", start, _Size(size), _Size(0), handle, _Address())
            self._undo.append(lambda: driver.call("cuMemUnmap", start, _Size(size)))
            self.address = start.value
            driver.access(self.address, size)
        except DriverError:
            self.close()
            raise

    def export(self) -> int:
        """Return a descriptor that leads to it."""
        descriptor = ctypes.c_int()
        self._driver.call(
            "cuMemExportToShareableHandle",
            *(ctypes.byref(descriptor), self._handle, _POSIX_FILE, _Address()),
        )
        return descriptor.value

    def write(self, start: int, source: int, size: int) -> None:
        """Copy bytes from an address of this process to the memory; `settle` waits for them."""
        where, count = _Address(self.address + start), _Size(size)
        self._driver.call("cuMemcpyHtoD_v2_ptds", where, ctypes.c_void_p(source), count)

    def read(self, start: int, target: int, size: int) -> None:
        """Copy bytes from the memory to an address of this process."""
        where, count = _Address(self.address + start), _Size(size)
        self._driver.call("cuMemcpyDtoH_v2_ptds", ctypes.c_void_p(target), where, count)

    def settle(self) -> None:
        """Wait until what this thread has written is there."""
        self._driver.call("cuStreamSynchronize", _OWN_STREAM)

    def close(self) -> None:
        """Unmap it once nothing runs on it; it is freed when the last process has done so."""
        with contextlib.suppress(DriverError):
            self._driver.call("cuCtxSynchronize")
        while self._undo:
            with contextlib.suppress(DriverError):
                self._undo.pop()()
