"""Device memory of timed children: how much each may have, and what happens when it runs out."""

from __future__ import annotations

from dataclasses import replace

import torch

from kerneltruth.clock.protocol.effort import Effort
from kerneltruth.clock.protocol.sides import ChildEvent, Graphs, Side
from kerneltruth.errors import lacks_memory
from kerneltruth.runner.protocol import Observation

# Device memory of a process that has done nothing yet.
CONTEXT_BYTES = 2**29


def memory_of(device: str) -> int:
    """Bytes of a GPU's memory; 0 for the CPU."""
    return 0 if device == "cpu" else int(torch.cuda.mem_get_info(torch.device(device))[1])


def limit_memory(effort: Effort, device: str, children: int) -> Effort:
    """Limit each child's input buffers to its share of the memory that contexts leave."""
    if device == "cpu":
        return effort
    room = memory_of(device) - (children + 2) * CONTEXT_BYTES
    share = max(room // (2 * children), 2**26)
    return replace(effort, memory_bytes=min(effort.memory_bytes, share))


def is_out_of_memory(seen: Observation) -> bool:
    """Whether the device lacked memory, which others may hold."""
    return seen.ended != "returned" and lacks_memory(f"{seen.error} {seen.message}")


def start_again(side: Side, seen: Observation) -> None:
    """Have a side that ran out of memory warm up once more, in its process if that survived."""
    if seen.dirty or seen.ended == "lost":
        side.child.restart()
        side.advance(ChildEvent.RESTARTED)
    side.advance(ChildEvent.FREED)
    side.graphs = Graphs.UNTRIED
