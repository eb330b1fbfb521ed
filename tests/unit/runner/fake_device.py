"""A CUDA device that is none: its memory is a file, and a keeper of it serves in a thread."""

import contextlib
import ctypes
import json
import os
import socket
import threading

from kerneltruth.runner.cuda_driver import DriverError
from kerneltruth.runner.device_keeper import serve
from kerneltruth.runner.helper_process import HelperLost
from kerneltruth.runner.kept_memory import KeptHostMemory


class FakeBlock:
    def __init__(self, driver, size):
        self._driver, self._memory = driver, KeptHostMemory(size)
        self._first = self._memory.seen.ctypes.data

    def export(self):
        return os.dup(self._memory.descriptor)

    def write(self, start, source, size):
        self._driver.copy(self._first + start, source, size)

    def read(self, start, target, size):
        self._driver.copy(target, self._first + start, size)

    def settle(self):
        pass

    def close(self):
        self._driver.blocks.remove(self)


class FakeDriver:
    """A device with room for this many bytes at once."""

    def __init__(self, room=2**30):
        self.room, self.blocks, self.broken, self.copies = room, [], False, []

    def use_here(self):
        pass

    def make(self, size):
        if size > self.room:
            raise DriverError("cuMemCreate: CUDA_ERROR_OUT_OF_MEMORY")
        self.blocks.append(FakeBlock(self, size))
        return self.blocks[-1]

    def copy(self, target, source, size):
        if self.broken:
            raise DriverError("cuMemcpy: CUDA_ERROR_ECC_UNCORRECTABLE")
        self.copies.append(size)
        ctypes.memmove(target, source, size)


class FakeKeeper:
    def __init__(self, control):
        self._control = control

    def ready(self):
        return {}

    def close(self):
        pass

    def send(self, message, descriptors):
        try:
            socket.send_fds(self._control, [json.dumps(message).encode()], descriptors)
        except OSError as error:
            raise HelperLost(str(error)) from error


@contextlib.contextmanager
def serving(driver):
    """The keeper of a device, which serves until the end."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    thread = threading.Thread(
        target=serve, args=(theirs, driver), kwargs={"gone": lambda: False}, daemon=True
    )
    thread.start()
    try:
        yield FakeKeeper(ours)
    finally:
        ours.close()
        thread.join()
        theirs.close()
