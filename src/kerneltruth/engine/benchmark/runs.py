"""The timekeeper of a run with many candidates."""

from __future__ import annotations

import os
import secrets

from kerneltruth.clock.protocol.effort import Effort
from kerneltruth.engine.benchmark.baselines import baseline_sources
from kerneltruth.engine.benchmark.machine import known_machine
from kerneltruth.engine.benchmark.timekeeper import DEFAULT_BASELINES, Timekeeper
from kerneltruth.runner.host import Runner

# In `run` a shape takes a few tenths of a second, baselines included. Only `time` times calls on
# warm caches.
RUN_EFFORT = Effort(
    lap_s=0.002,
    graph_lap_s=0.006,
    blocks=(6, 24),
    precision=0.005,
    budget_s=0.3,
    memory_bytes=2 * 2**30,
    warm=False,
)


def keeper_for_runs(runner: Runner, baselines: tuple[str, ...] | None = None) -> Timekeeper:
    """The timekeeper of a run with many candidates."""
    return Timekeeper(
        runner,
        # Those who check meanwhile are children of the same parent.
        machine=known_machine(runner, root=os.getppid()),
        seed=secrets.randbits(64),
        baselines=baselines or DEFAULT_BASELINES,
        effort=RUN_EFFORT,
        sources=baseline_sources,
    )
