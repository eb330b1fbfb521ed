"""Nsight Compute's view of a candidate's kernels, where it is installed and may be used."""

from __future__ import annotations

import subprocess
import sys

from kerneltruth.clock.profile import Profile, ncu_command, read_profiles
from kerneltruth.commands.time import TimeOptions
from kerneltruth.errors import EnvironmentFault, UserError

DEADLINE_S = 300.0
# Launches that warm up and are let pass.
SKIPPED = 3
LAUNCHES = 4


def profile(options: TimeOptions, *, task: str, kernel: str | None) -> tuple[Profile, ...]:
    """Run `time` once more under `ncu`, and read what it says of some launches of a kernel.

    Args:
        options: of the command; its file and device.
        task: the task's key.
        kernel: the name of the candidate's kernel; None profiles whatever is launched.

    Raises:
        EnvironmentFault: ncu may not count here, or takes too long.
    """
    program = [sys.executable, "-m", "kerneltruth", "time", str(options.file), "--task", task]
    program += ["--device", options.device, "--baseline", "eager", "--budget", "0", "--json"]
    command = ncu_command(program, kernel=kernel, skip=SKIPPED, launches=LAUNCHES)
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S)
        return read_profiles(done.stdout + done.stderr)
    except subprocess.TimeoutExpired as error:
        raise EnvironmentFault(f"--profile: ncu took over {DEADLINE_S:.0f} s") from error
    except UserError as error:
        raise EnvironmentFault(f"--profile: {error}") from error
