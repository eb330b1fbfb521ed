"""How much of a device's memory timed children may have."""

from __future__ import annotations

from dataclasses import replace

import torch

from kerneltruth.clock.protocol.effort import Effort

# Device memory of a process that has done nothing yet.
CONTEXT_BYTES = 2**29


def memory_of(device: str) -> int:
    """Bytes of the device's memory; 0 of a CPU's, which is not asked for."""
    return 0 if device == "cpu" else int(torch.cuda.mem_get_info(torch.device(device))[1])


def fitting(effort: Effort, device: str, children: int) -> Effort:
    """The effort with rows that so many children have room for, beside what they need to live."""
    if device == "cpu":
        return effort
    room = memory_of(device) - (children + 2) * CONTEXT_BYTES
    share = max(room // (2 * children), 2**26)
    return replace(effort, memory_bytes=min(effort.memory_bytes, share))
