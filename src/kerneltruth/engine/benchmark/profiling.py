"""Profile a candidate's kernels: shares of the device's time, and Nsight Compute's view."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from kerneltruth.cases.philox import stream
from kerneltruth.clock.protocol.inputs import make_bench_inputs, rehearsal_arguments
from kerneltruth.clock.roofline.profile import Profile, ncu_command, read_profiles
from kerneltruth.documents.case import Case
from kerneltruth.documents.timing import DeviceShare, KernelTime
from kerneltruth.errors import EnvironmentFault, UserError
from kerneltruth.runner.candidate import Candidate
from kerneltruth.runner.child import without_judge
from kerneltruth.runner.host import Runner
from kerneltruth.runner.observation import KernelWork, Observation
from kerneltruth.runner.protocol import Load, Rehearse
from kerneltruth.runner.timing.messages import AllocateBuffers, PrepareInputs
from kerneltruth.tasks.spec import Task

# It compiles, and the first record of a profiler takes seconds.
DEADLINE_S = 300.0
NAMELESS = "the names of its kernels are not known, so they are not told from others"
NOTHING = "no kernel ran"
# Calls of the candidate that are profiled, and launches of them.
CALLS = 4
LAUNCHES = 4


def profile(
    candidate: Candidate,
    task: Task,
    case: Case,
    *,
    device: str,
    kernel: str | None,
    deadline_s: float = DEADLINE_S,
) -> tuple[Profile, ...]:
    """Call the candidate under `ncu`, and read what it says of some launches of a kernel.

    The candidate runs in a process of ncu, with no wall around it; without a kernel's name,
    whatever is launched first is profiled.

    Raises:
        EnvironmentFault: ncu may not count here, or takes too long.
    """
    inputs = make_bench_inputs(task, case, device=device)
    contents = inputs.draw(stream(0, "profile"), CALLS)
    load = Load(
        source=candidate.source,
        filename=os.path.basename(candidate.path),
        language=candidate.language,
        entry=candidate.entry,
        device=device,
        mode="time",
        pretrained=task.pretrained,
    )
    messages = (
        PrepareInputs(arguments=inputs.arguments),
        AllocateBuffers(count=CALLS),
        inputs.refill(range(CALLS), contents),
    )
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "messages"
        without_judge.write(script, load, messages)
        program = [sys.executable, "-m", "kerneltruth.runner.child.without_judge", str(script)]
        command = ncu_command(program, kernel=kernel, launches=LAUNCHES)
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=deadline_s)
            return read_profiles(done.stdout + done.stderr)
        except subprocess.TimeoutExpired as error:
            raise EnvironmentFault(
                f"--profile: ncu took over {deadline_s:.0f} s; time it without --profile"
            ) from error
        except UserError as error:
            raise EnvironmentFault(f"--profile: {error}") from error


def device_share(runner: Runner, candidate: Candidate, task: Task, case: Case) -> DeviceShare:
    """Return the shares of the device's time by kernel, in a call on a case."""
    rehearse = Rehearse(arguments=rehearsal_arguments(task, case), device_time=True)
    with runner.open(replace(candidate, pretrained=task.pretrained), mode="time") as child:
        seen = child.request(rehearse, deadline_s=DEADLINE_S)
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
