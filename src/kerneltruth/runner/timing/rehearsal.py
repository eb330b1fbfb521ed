"""Make a batch over almost nothing, before a candidate is there."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch

from kerneltruth.runner.child.binding import Offered
from kerneltruth.runner.timing.messages import PrepareInputs, RunBatch, Supply
from kerneltruth.runner.timing.timed_worker import Caller, TimedWorker

# Buffers whose filling uses other kernels.
_REHEARSED = ("float32", "float16", "int64")


def rehearse(device: str, worker: type[TimedWorker] = TimedWorker) -> None:
    """Make a batch over almost nothing: a device loads each kernel at its first launch.

    Loading takes a while, which overlaps with the previous candidate.
    """
    where = torch.device(device)
    for dtype in _REHEARSED:
        supply = Supply(name="x", dtype=dtype, shape=(2,), pool=bytes(64))
        track = worker(PrepareInputs(arguments=(supply,), flush_bytes=8), where, _untouched)
        track.buffers(2)
        track.refill((0, 1), ((0, 1),), ((1.0, 0.5),) if dtype == "float32" else ())
        track.batch(RunBatch(buffers=(0, 1), head_start_s=1e-6, hidden=True))
        track.show()
    if where.type == "cuda":
        torch.cuda.empty_cache()


def _untouched(buffers: Sequence[Sequence[Offered]]) -> list[Caller]:
    """Return calls that return their input."""
    return [partial(_first, buffer[0].value) for buffer in buffers]


def _first(value: Any) -> Any:
    return value
