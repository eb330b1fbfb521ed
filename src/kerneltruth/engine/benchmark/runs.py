"""The benchmarker of a run with many candidates."""

from __future__ import annotations

import os
import secrets

from kerneltruth.clock.protocol.effort import Effort
from kerneltruth.engine.benchmark.baselines import baseline_sources
from kerneltruth.engine.benchmark.benchmarker import DEFAULT_BASELINES, Benchmarker
from kerneltruth.engine.benchmark.machine import known_machine
from kerneltruth.runner.host import Runner

# In `run` a shape takes a few tenths of a second, baselines included. Only `time` times calls on
# warm caches.
RUN_EFFORT = Effort(
    batch_s=0.002,
    graph_batch_s=0.006,
    blocks=(6, 24),
    precision=0.005,
    budget_s=0.3,
    memory_bytes=2 * 2**30,
    warm=False,
)


def benchmarker_for_runs(runner: Runner, baselines: tuple[str, ...] | None = None) -> Benchmarker:
    """Return the benchmarker of a run with many candidates."""
    return Benchmarker(
        runner,
        # Processes that check kernels are children of the same parent.
        machine=known_machine(runner, root=os.getppid()),
        seed=secrets.randbits(64),
        baselines=baselines or DEFAULT_BASELINES,
        effort=RUN_EFFORT,
        sources=baseline_sources,
    )
