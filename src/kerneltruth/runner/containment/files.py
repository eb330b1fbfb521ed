"""Which files a contained child may open: those of the system, of Python, and its own.

The lists name what a kernel needs in order to run and to be compiled: libraries, compilers, Python
and what can be imported, the GPU, and of /proc what concerns the machine and the child itself. This
package is left out but for the child's side: no task, reference, bound or corpus.
"""

from __future__ import annotations

import contextlib
import glob
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from kerneltruth.runner.containment import landlock
from kerneltruth.runner.containment.landlock import (
    IOCTL_DEV,
    READ,
    READ_DIR,
    READ_FILE,
    TRUNCATE,
    WRITE,
    WRITE_FILE,
)

FileRule = tuple[str, int]
_PINNED: list[int] = []
_PACKAGE = Path(__file__).parents[2]

_SYSTEM = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/opt", "/sys"),
    *("/nix/store", "/gnu/store", "/run/opengl-driver"),
)
# No accounts' secrets, no keys, no configuration of services.
_ETC = "ld.so.cache ld.so.conf ld.so.conf.d ld.so.preload alternatives localtime passwd group"
_ETC += " nsswitch.conf os-release OpenCL vulkan nvidia nvidia-container-runtime cufile.json"
# What concerns the machine; of its processes only the child itself, added below.
_PROC = "cgroups cpuinfo devices driver filesystems interrupts loadavg meminfo modules mounts"
_PROC += " partitions stat swaps sys uptime version vmstat"
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_GPU_DEVICES = ("/dev/nvidia*", "/dev/dri", "/dev/kfd")
_NAMED = ("CUDA_HOME", "CUDA_PATH")
_COMPILERS = ("cc", "gcc", "clang", "nvcc", "hipcc")
_INSTALLED = ("site-packages", "dist-packages", "lib-dynload")
# The child's side of this package, and what it imports. The rest stays with the judge.
_OWN = ("__init__.py", "runner")
_MODULES = (".py", ".pyc", ".so", ".pyd", ".zip")


def shared(
    environment: Mapping[str, str], *, hidden: Iterable[Path], gpu: bool
) -> tuple[FileRule, ...]:
    """Return the rules that all children share: rights by path.

    Args:
        environment: of children; the toolkits and libraries that it names may be read.
        hidden: folders that may not be read because one above them may.
        gpu: whether devices of GPUs may be used.
    """
    package = _PACKAGE.resolve()
    copies = (Path(entry, package.name) for entry in sys.path if entry)
    away = _hidden((package, *copies, *hidden))
    roots = [*_SYSTEM, *(f"/etc/{name}" for name in _ETC.split())]
    roots += [environment[name] for name in _NAMED if environment.get(name)]
    roots += [sys.prefix, sys.base_prefix, sys.exec_prefix]
    rules = [rule for root in roots for rule in _below(Path(root), away)]
    for folder in (*_searched(environment), *_configured()):
        if folder.is_absolute() and not any(folder in (p, *p.parents) for p in away):
            rules += _below(folder, away)
    for entry in sys.path:
        rules += _importable(Path(entry), away) if entry else ()
    rules += [(str(package), READ_DIR)]
    rules += [(str(package / name), READ) for name in _OWN]
    rules += [(f"/proc/{name}", READ) for name in _PROC.split()]
    rules += [(name, READ_FILE | WRITE_FILE) for name in _DEVICES]
    if gpu:
        found = (path for pattern in _GPU_DEVICES for path in glob.glob(pattern))
        rules += [(path, READ_FILE | READ_DIR | WRITE_FILE | IOCTL_DEV) for path in found]
        # The driver makes files there, by which debuggers and other processes would find it.
        rules += [("/dev/shm", READ | WRITE)]
    return tuple(_outermost(rules))


def pin(path: str) -> None:
    """Keep a part of /proc in the kernel's memory while this process lives.

    A rule holds for what the path is now; the kernel may forget it, and make it anew without one.
    """
    with contextlib.suppress(OSError):
        _PINNED.append(os.open(path, os.O_PATH | os.O_CLOEXEC))


def private(
    folders: Iterable[Path | None], reads: Iterable[Path | None], *, alone: bool = False
) -> Iterator[FileRule]:
    """Yield a child's own rules, as that child: its folders, itself in /proc, what it may read.

    A child that is alone in its namespaces may read all of /proc.
    """
    for folder in folders:
        if folder is not None:
            yield os.path.realpath(folder), READ | WRITE
    for path in reads:
        if path is not None:
            yield os.path.realpath(path), READ
    if alone:
        yield "/proc", READ
    # CUDA names its threads there, and does not start if it cannot.
    yield f"/proc/{os.getpid()}", READ | WRITE_FILE | TRUNCATE


def _outermost(rules: Iterable[FileRule]) -> Iterator[FileRule]:
    """Yield rules without those that a rule for a folder above them contains."""
    given = landlock.merged(rules)
    for path, rights in given.items():
        above = (given.get(str(folder), 0) for folder in Path(path).parents)
        if not any(rights & ~more == 0 for more in above):
            yield path, rights


def _hidden(folders: Iterable[Path]) -> frozenset[Path]:
    found = {Path("/usr/local/src"), Path("/usr/src"), *folders}
    with contextlib.suppress(RuntimeError):
        found.add(Path.home())
    return frozenset(path.resolve() for path in found if path.exists()) - {Path("/")}


def _searched(environment: Mapping[str, str]) -> Iterator[Path]:
    """Yield folders of libraries and programs; of a compiler, its whole installation."""
    for entry in environment.get("LD_LIBRARY_PATH", "").split(os.pathsep):
        yield Path(entry)
    for entry in environment.get("PATH", "").split(os.pathsep):
        folder = Path(entry)
        compiles = any(os.path.exists(folder / name) for name in _COMPILERS)
        yield folder.parent if compiles and folder.name == "bin" else folder


def _configured() -> Iterator[Path]:
    """Yield the folders in which the system looks for libraries."""
    for file in sorted(glob.glob("/etc/ld.so.conf.d/*.conf")):
        with contextlib.suppress(OSError, ValueError):
            yield from (Path(line.strip()) for line in Path(file).read_text().splitlines())


def _below(root: Path, hidden: frozenset[Path]) -> Iterator[FileRule]:
    """Yield rules for all below a folder but what is hidden there."""
    root = root.resolve()
    if root == Path("/"):
        return
    inside = frozenset(path for path in hidden if root in path.parents)
    if not inside:
        yield str(root), READ
        return
    yield str(root), READ_DIR
    with contextlib.suppress(OSError):
        for entry in sorted(root.iterdir()):
            if entry.resolve() not in inside:
                yield from _below(entry, inside)


def _importable(entry: Path, hidden: frozenset[Path]) -> Iterator[FileRule]:
    """Yield rules for an entry of the import path: what is installed, elsewhere modules alone."""
    real = entry.resolve()
    if real.name in _INSTALLED or not real.is_dir():
        yield from _below(real, hidden)
        return
    yield str(real), READ_DIR
    for path in sorted(real.iterdir()):
        is_package = path.is_dir() and (path / "__init__.py").exists()
        if (is_package or path.suffix in _MODULES) and path.resolve() not in hidden:
            yield from _below(path, hidden)
