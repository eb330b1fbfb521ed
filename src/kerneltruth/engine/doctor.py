"""`doctor`: what this machine can do, what is missing, and the command that adds it."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from kerneltruth.documents.facts import DeviceFacts, DoctorDocument, Isolation, Missing
from kerneltruth.engine.devices import TARGETS, cuda_devices, device_name, driver_version
from kerneltruth.runner.containment import LEVELS, Level, cgroups, levels
from kerneltruth.runner.device_memory import why_not
from kerneltruth.runner.interpreter.versions import FIRST, LAST_TESTED, WINDOW, number
from kerneltruth.runs.findings import installed_version

_LIBRARIES = (
    "torch",
    "triton",
    "numpy",
    "ml_dtypes",
    "safetensors",
    "nvidia-ml-py",
    "typer",
    "rich",
)
# What each level adds to the one before.
_STOPS: dict[Level, str] = {
    "process": "a fresh process per candidate that gets bytes alone, without privileges, limited",
    "syscalls": "no sockets, no other process's memory or signals (seccomp)",
    "strict": "no files but its own and those of the system and of Python (Landlock)",
    "namespaces": "a user, processes, a network and temporary files of its own alone (namespaces)",
}
_GROUPED = "memory and processes limited by the system (control groups)"
_SAMPLED = "memory and processes looked at twice a second: no control group may be made"
_KEPT = "inputs, guard bands and results in memory of the judge, on the device too"
_LEFT_OPEN = "what a candidate does within its own process, and how much of the machine it takes"


def examine(
    *,
    count: int | None = None,
    version: Callable[[str], str | None] = installed_version,
    offered: Callable[[], levels.OfferedLevel] = levels.offered,
    unkept: Callable[[str], str | None] = why_not,
) -> DoctorDocument:
    """Return the document of `doctor --json`."""
    count = cuda_devices() if count is None else count
    devices = [DeviceFacts(device="cpu", name=device_name("cpu"), runs="Triton's interpreter")]
    devices += [
        DeviceFacts(device=f"cuda:{i}", name=device_name(f"cuda:{i}"), runs="compiled kernels")
        for i in range(count)
    ]
    libraries = {name: version(name) for name in _LIBRARIES}
    compile_tools = _compile_tools()
    missing = [
        Missing(what=name, add=f"pip install {name}")
        for name, found in libraries.items()
        if found is None
    ]
    if count and shutil.which("nvcc") is None:
        missing.append(
            Missing(
                what="nvcc (CUDA C++ candidates)", add="install the CUDA toolkit of your driver"
            )
        )
    if count and shutil.which("ninja") is None and version("ninja") is None:
        missing.append(
            Missing(what="ninja (CUDA C++ candidates)", add="pip install kerneltruth[gpu]")
        )
    if not count:
        missing += _interpreter(libraries["triton"])
        missing.append(
            Missing(
                what="a CUDA device: Triton runs in its interpreter, CUDA C++ not at all",
                add="nothing to install: run the same command on a CUDA machine",
            )
        )
    return DoctorDocument(
        python=platform.python_version(),
        executable=sys.executable,
        system=f"{platform.system()} {platform.release()}",
        cores=os.cpu_count(),
        devices=tuple(devices),
        driver=driver_version() if count else None,
        libraries=libraries,
        compile_targets=TARGETS if compile_tools["ptxas"] else (),
        tools=compile_tools,
        isolation=_isolation(
            levels.on_cuda(offered()) if count else offered(),
            grouped=cgroups.may_make(),
            kept=(unkept("cuda:0"),) if count else (),
        ),
        missing=tuple(missing),
    )


def _interpreter(triton: str | None) -> list[Missing]:
    """Return what keeps this Triton from running kernels without a GPU."""
    if triton is None or FIRST <= number(triton) <= LAST_TESTED:
        return []
    if number(triton) < FIRST:
        what = f"Triton {WINDOW}: kernels for Triton {triton} run on a CUDA device only"
    else:
        what = f"Triton {WINDOW}: in {triton} kernels run without a CUDA device as far as they can"
    after = f"{LAST_TESTED[0]}.{LAST_TESTED[1] + 1}"
    return [Missing(what=what, add=f"pip install 'triton>={FIRST[0]}.{FIRST[1]},<{after}'")]


def _compile_tools() -> dict[str, str | None]:
    import importlib.util

    spec = importlib.util.find_spec("triton")
    if spec is None or spec.origin is None:
        return {"ptxas": None, "cuobjdump": None, "ncu": shutil.which("ncu")}
    folder = Path(spec.origin).parent / "backends" / "nvidia" / "bin"
    return {
        name: str(folder / name) if (folder / name).exists() else shutil.which(name)
        for name in ("ptxas", "cuobjdump", "ncu")
    }


def _isolation(
    here: levels.OfferedLevel, *, grouped: bool, kept: tuple[str | None, ...]
) -> Isolation:
    """Return the level that candidates get, and what it leaves open.

    `kept` is, of each device, why the judge keeps none of its memory, or None where it does.
    """
    in_force = [_STOPS[level] for level in LEVELS[: LEVELS.index(here.level) + 1]]
    if here.level == "namespaces":
        in_force.append(_GROUPED if grouped else _SAMPLED)
    limited_by = here.limited_by or _LEFT_OPEN
    for why in kept:
        if why is None:
            in_force.append(_KEPT)
        else:
            limited_by += f"; the child keeps the device's memory itself: {why}"
    return Isolation(
        level=here.level,
        in_force=tuple(in_force),
        limited_by=limited_by,
        landlock_abi=here.landlock_abi or None,
        user_namespaces=Path("/proc/self/ns/user").exists(),
    )
