"""Emulate a GPU for candidates on a machine without one; other code imports only this module.

Tensors on the CPU claim to be on `cuda:0`, torch and Triton answer as a GPU would, and the memory
that kernels may touch is known. `interpreter`, beside this package, runs the kernels.
"""

from __future__ import annotations

from kerneltruth.runner.emulation.buffers import allocated, begin, collect, released
from kerneltruth.runner.emulation.devices import is_host
from kerneltruth.runner.emulation.facade import claimed_device, install, is_on, reads, suspended
from kerneltruth.runner.emulation.gpu import PretendDriver
from kerneltruth.runner.emulation.stores import begin as follow_stores
from kerneltruth.runner.emulation.stores import elements_stored
from kerneltruth.runner.emulation.stores import end as unfollow_stores

__all__ = [
    "PretendDriver",
    "allocated",
    "begin",
    "claimed_device",
    "collect",
    "elements_stored",
    "follow_stores",
    "install",
    "is_host",
    "is_on",
    "reads",
    "released",
    "suspended",
    "unfollow_stores",
]
