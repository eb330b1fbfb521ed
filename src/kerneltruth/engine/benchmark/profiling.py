"""Nsight Compute's view of a candidate's kernels, where it is installed and may be used."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from kerneltruth.cases.philox import stream
from kerneltruth.clock.protocol.inputs import make_bench_inputs
from kerneltruth.clock.roofline.profile import Profile, ncu_command, read_profiles
from kerneltruth.documents.case import Case
from kerneltruth.errors import EnvironmentFault, UserError
from kerneltruth.runner.candidate import Candidate
from kerneltruth.runner.child import alone
from kerneltruth.runner.protocol import Load
from kerneltruth.runner.timing.messages import AllocateBuffers, PrepareInputs
from kerneltruth.tasks.spec import Task

DEADLINE_S = 300.0
# Calls of the candidate that are profiled, and launches of them.
CALLS = 4
LAUNCHES = 4


def profile(
    candidate: Candidate, task: Task, case: Case, *, device: str, kernel: str | None
) -> tuple[Profile, ...]:
    """Call the candidate under `ncu`, and read what it says of some launches of a kernel.

    Args:
        candidate: runs in a process of ncu, with no wall around it.
        task: its task.
        case: gives the shape and the inputs.
        device: a CUDA device.
        kernel: the name of the candidate's kernel; None profiles whatever is launched first.

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
    )
    messages = (
        PrepareInputs(arguments=inputs.arguments),
        AllocateBuffers(count=CALLS),
        inputs.refill(range(CALLS), contents),
    )
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "messages"
        alone.write(script, load, messages)
        program = [sys.executable, "-m", "kerneltruth.runner.child.alone", str(script)]
        command = ncu_command(program, kernel=kernel, launches=LAUNCHES)
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S)
            return read_profiles(done.stdout + done.stderr)
        except subprocess.TimeoutExpired as error:
            raise EnvironmentFault(f"--profile: ncu took over {DEADLINE_S:.0f} s") from error
        except UserError as error:
            raise EnvironmentFault(f"--profile: {error}") from error
