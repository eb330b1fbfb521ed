"""Measure whose kernels take the device's time, in a fresh process after a candidate was timed."""

from __future__ import annotations

from kerneltruth.clock.protocol.inputs import rehearsal_arguments
from kerneltruth.documents.case import Case
from kerneltruth.documents.timing import DeviceShare, KernelTime
from kerneltruth.runner.candidate import Candidate
from kerneltruth.runner.host import Runner
from kerneltruth.runner.protocol import KernelWork, Observation, Rehearse
from kerneltruth.tasks.spec import Task

# It compiles, and the profiler's first record takes seconds.
DEADLINE_S = 300.0
NAMELESS = "the names of its kernels are not known, so they are not told from others"
NOTHING = "no kernel ran"


def device_share(runner: Runner, candidate: Candidate, task: Task, case: Case) -> DeviceShare:
    """Return the shares of the device's time by kernel, in a call on a case."""
    asked = Rehearse(arguments=rehearsal_arguments(task, case), device_time=True)
    with runner.open(candidate, mode="time") as child:
        seen = child.request(asked, deadline_s=DEADLINE_S)
    return share_of(seen, case)


def share_of(seen: Observation, case: Case) -> DeviceShare:
    """Turn a child's records into shares."""
    work = seen.work or KernelWork()
    total = sum(run.device_s or 0.0 for run in work.runs)
    reason = _why_not(seen, total)
    own = None
    if reason is None:
        own = sum(run.device_s or 0.0 for run in work.runs if run.own) / total
    return DeviceShare(
        case=case.summary(),
        own=own,
        library=None if own is None else 1 - own,
        kernels=tuple(
            KernelTime(
                name=run.name, own=run.own, launches=run.launches, us=(run.device_s or 0.0) * 1e6
            )
            for run in work.runs
        ),
        reason=reason,
    )


def _why_not(seen: Observation, total: float) -> str | None:
    if seen.work is None:
        return seen.message or f"the call ended: {seen.ended}"
    if not total:
        return NOTHING
    return None if seen.work.seen else NAMELESS
