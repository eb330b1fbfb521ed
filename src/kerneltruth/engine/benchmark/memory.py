"""Device memory of timed children: how much each may have, and what happens when it runs out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import torch

from kerneltruth.clock.protocol.effort import Effort
from kerneltruth.clock.protocol.sides import ChildEvent, Graphs, Side
from kerneltruth.errors import lacks_memory
from kerneltruth.runner.observation import Observation

# Device memory of a process that has done nothing yet.
CONTEXT_BYTES = 2**29


class DeviceMemory(Protocol):
    """The memory that timed children and the judge's own process share."""

    @property
    def total(self) -> int:
        """Bytes of all; 0 where nothing limits them."""
        ...

    @property
    def free(self) -> int:
        """Bytes that no process holds."""
        ...

    def release(self) -> None:
        """Give back what this process keeps for its own use."""
        ...

    def finish(self) -> None:
        """Wait for the device: it still works on this process's requests."""
        ...


@dataclass(frozen=True, slots=True)
class HostMemory:
    """Without a GPU nothing is limited, and every request is done when it returns."""

    total: int = 0
    free: int = 0

    def release(self) -> None:
        """Keep nothing."""

    def finish(self) -> None:
        """Wait for nothing."""


@dataclass(frozen=True, slots=True)
class GpuMemory:
    """The memory of one GPU."""

    device: torch.device

    @property
    def total(self) -> int:
        """Bytes of all."""
        return int(torch.cuda.mem_get_info(self.device)[1])

    @property
    def free(self) -> int:
        """Bytes that no process holds."""
        return int(torch.cuda.mem_get_info(self.device)[0])

    def release(self) -> None:
        """Give back what PyTorch caches."""
        torch.cuda.empty_cache()

    def finish(self) -> None:
        """Synchronize."""
        torch.cuda.synchronize(self.device)


def memory_of(device: str) -> DeviceMemory:
    """Return the memory of "cpu" or "cuda:N"."""
    return HostMemory() if device == "cpu" else GpuMemory(torch.device(device))


def limit_memory(effort: Effort, total: int, children: int) -> Effort:
    """Limit each child's input buffers to its share of the memory that contexts leave.

    A total of 0 bytes limits nothing; `children` have a context.
    """
    if not total:
        return effort
    room = total - (children + 2) * CONTEXT_BYTES
    share = max(room // (2 * children), 2**26)
    return replace(effort, memory_bytes=min(effort.memory_bytes, share))


def is_out_of_memory(seen: Observation) -> bool:
    """Return whether the device lacked memory, which others may hold."""
    return seen.ended != "returned" and lacks_memory(f"{seen.error} {seen.message}")


def retry_with_memory(side: Side, seen: Observation) -> None:
    """Have a side that ran out of memory warm up once more, in its process if that survived."""
    if seen.dirty or seen.ended == "lost":
        side.child.restart()
        side.advance(ChildEvent.RESTARTED)
    side.advance(ChildEvent.FREED)
    side.graphs = Graphs.UNTRIED
