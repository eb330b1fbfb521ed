"""Which device a command runs on, and the processes warmed up for it. No torch here."""

from __future__ import annotations

import contextlib
import ctypes
import difflib
import importlib.util
import itertools
import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from kerneltruth.errors import EnvironmentFault, UserError
from kerneltruth.runner.host import Runner
from kerneltruth.runs.files import cache_folder

TARGETS = ("sm_80", "sm_89", "sm_90", "sm_100", "gfx942")
# Every CUDA device of this machine.
ALL = "cuda:all"
_SPELLING = re.compile(r"^(auto|cpu|cuda(:\d+)?)$")


def choose_device(wanted: str, *, count: Callable[[], int] | None = None) -> str:
    """Turn `auto|cpu|cuda[:N]` into "cpu" or "cuda:N".

    Devices are counted through NVML, not by starting CUDA:
    a process that has touched the device cannot fork children that use it.

    Raises:
        UserError: another spelling, or all devices.
        EnvironmentFault: a CUDA device is wanted and there is none of that number.
    """
    if wanted == ALL:
        raise UserError(
            f"--device {ALL}: only `kerneltruth run` and kt.Judge take it; name one device here, "
            "such as cuda:0"
        )
    if not _SPELLING.match(wanted):
        raise UserError(f"--device {wanted!r}: must be auto, cpu, cuda or cuda:N")
    if wanted == "cpu":
        return "cpu"
    present = (count or cuda_devices)()
    if wanted == "auto":
        return "cuda:0" if present else "cpu"
    index = int(wanted.partition(":")[2] or 0)
    if index >= present:
        raise EnvironmentFault(
            f"--device {wanted}: this machine shows {present} CUDA devices; "
            "see `kerneltruth doctor`, or use --device cpu"
        )
    return f"cuda:{index}"


def choose_devices(wanted: Sequence[str], *, count: Callable[[], int] | None = None) -> list[str]:
    """Turn names of devices into "cpu" and "cuda:N", each once; `cuda:all` is all of them.

    Args:
        wanted: by the user.
        count: how many CUDA devices there are; None takes `cuda_devices`.

    Raises:
        UserError: another spelling, or no name.
        EnvironmentFault: a CUDA device is wanted and there is none of that number.
    """
    if not wanted:
        raise UserError("devices: name at least one, such as cpu, cuda:0 or cuda:all")
    found: list[str] = []
    for name in wanted:
        if name != ALL:
            found.append(choose_device(name, count=count))
            continue
        present = (count or cuda_devices)()
        found += [choose_device(f"cuda:{n}", count=count) for n in range(max(present, 1))]
    return list(dict.fromkeys(found))


def choose_targets(wanted: tuple[str, ...]) -> tuple[str, ...]:
    """Return the targets to compile for, each once.

    Raises:
        UserError: a target that no kernel is compiled for.
    """
    for name in wanted:
        if name not in TARGETS:
            near = difflib.get_close_matches(name, TARGETS, n=1)
            hint = f"; nearest: {near[0]}" if near else ""
            raise UserError(f"--target {name!r}: must be one of {', '.join(TARGETS)}{hint}")
    return tuple(dict.fromkeys(wanted))


def cuda_devices() -> int:
    """Return how many CUDA devices torch can use, without creating a context.

    NVML comes first: importing torch here would delay the candidates' processes.
    """
    if not has_driver() or not _torch_has_cuda():
        return 0
    count = _count_by_nvml(os.environ.get("CUDA_VISIBLE_DEVICES"))
    if count is None:
        count = _count_by_torch()
    return count


def _torch_has_cuda() -> bool:
    """Return whether the installed torch was built for CUDA, read from its files."""
    found = importlib.util.find_spec("torch")
    if found is None or found.origin is None:
        return False
    try:
        text = (Path(found.origin).parent / "version.py").read_text(encoding="utf-8")
    except OSError:
        return True
    return not re.search(r"^cuda\b[^=]*=\s*None", text, re.M)


def _count_by_nvml(visible: str | None) -> int | None:
    """Return the devices that NVML shows and `CUDA_VISIBLE_DEVICES` leaves; None if unknown."""
    if visible is not None and not re.fullmatch(r"-?\d+(,-?\d+)*|", visible):
        return None
    try:
        import pynvml
    except ImportError:
        return None
    try:
        pynvml.nvmlInit()
        count = pynvml.nvmlDeviceGetCount()
        pynvml.nvmlShutdown()
    except pynvml.NVMLError:
        return None
    return visible_devices(count, visible)


def visible_devices(present: int, visible: str | None) -> int:
    """Return how many of the devices 0 to `present` - 1 a list leaves: up to its first bad number.

    That is how CUDA reads `CUDA_VISIBLE_DEVICES`; None means that it is not set.
    """
    if visible is None:
        return present
    numbers = [int(n) for n in visible.split(",") if n]
    good = itertools.takewhile(lambda n: 0 <= n < present, numbers)
    return len(list(good))


def _count_by_torch() -> int:
    import torch

    count: int = (
        torch.cuda._device_count_nvml() if hasattr(torch.cuda, "_device_count_nvml") else -1
    )
    return count if count >= 0 else _count_in_a_child()


def has_driver() -> bool:
    """Return whether the CUDA driver's library exists; without it no torch finds a device."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


def _count_in_a_child() -> int:
    code = "import torch; print(torch.cuda.device_count())"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    return int(ran.stdout.strip() or 0) if ran.returncode == 0 else 0


def device_name(device: str) -> str:
    """Return the device's common name: the GPU's, or the CPU's."""
    if device == "cpu":
        return f"cpu ({_cpu_model()})"
    name = _asked_of_driver("name", "-i", device.split(":")[1])
    return device if name is None else f"{device} ({name.strip()})"


def _cpu_model() -> str:
    try:
        with open("/proc/cpuinfo") as facts:
            names = [line.partition(":")[2].strip() for line in facts if "model name" in line]
    except OSError:
        names = []
    return f"{os.cpu_count()} x {names[0]}" if names else f"{os.cpu_count()} cores"


def driver_version() -> str | None:
    """Version of the NVIDIA driver, if there is one."""
    said = _asked_of_driver("driver_version")
    return said.splitlines()[0].strip() if said else None


def _asked_of_driver(what: str, *which: str) -> str | None:
    query = ["nvidia-smi", f"--query-gpu={what}", "--format=csv,noheader", *which]
    try:
        ran = subprocess.run(query, capture_output=True, text=True, check=False, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return ran.stdout if ran.returncode == 0 else None


def new_runner(device: str, targets: tuple[str, ...]) -> Runner:
    """Return a runner for the device; Triton compiles for other targets on a CPU only."""
    on_cpu = device == "cpu"
    return Runner(device=device, targets=targets if on_cpu else (), cache_root=cache_root())


def begin(runner: Runner, *, timed: bool = False) -> None:
    """Begin to warm up, and return at once.

    On a CPU no right kernel is timed.
    """
    if runner.device == "cpu":
        runner.start(("run", "compile") if runner.targets else ("run",))
    else:
        runner.start(("run", "time_compiled") if timed else ("run",))


def cache_root(folder: Path | None = None) -> Path | None:
    """Return where compiled kernels are kept between runs, so that a second run is warm.

    It is `folder`, by default one in the user's cache; None where no such place can be written:
    then every run compiles anew.
    """
    with contextlib.suppress(OSError, RuntimeError):
        folder = folder or cache_folder("compiled")
        if not folder.is_absolute():  # the user has no home
            return None
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK | os.X_OK):
            return folder
    return None
