"""What extensions of PyTorch are built with, made once for each PyTorch, Python and compiler.

`kit_for` makes it, in the judge; `extensions` uses it, in a child. A kit is a folder:

    include/       stand-ins for PyTorch's headers, which nvcc reads in less than a second
    shim.so        what those headers declare, compiled with PyTorch's own
    real/FLAGS/    PyTorch's own torch/extension.h, precompiled for g++ under these flags

`python -m kerneltruth.runner.extension_kit FOLDER [FLAG ...]` makes one, or adds a precompiled
header to one; it is a process of its own since it imports PyTorch's build tools.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

LIGHT = Path(__file__).parent / "light"
SHIM = "shim.so"
_MAKE_S = 300.0

# Which of PyTorch's headers have a stand-in, and which file stands in for them.
HEADERS = {
    "torch/extension.h": "light_python.h",
    "torch/types.h": "light.h",
    "ATen/ATen.h": "light.h",
    "ATen/cuda/CUDAContext.h": "light_stream.h",
    "c10/cuda/CUDAException.h": "light_check.h",
    "c10/cuda/CUDAGuard.h": "light_guard.h",
    "c10/cuda/CUDAStream.h": "light_stream.h",
}
# What only some versions of PyTorch have: the name for it, and which text in which header shows it.
_IN_SOME = (
    ("KERNELTRUTH_AT_ERROR", "c10/util/Exception.h", "#define AT_ERROR("),
    ("KERNELTRUTH_OPTIONAL", "torch/types.h", "using std::optional;"),
)
# Precompiled headers fit one level of optimization; these are the ones that sources ask for.
_OPTIMIZATION = re.compile(r"-O[0-3s]?|-Ofast|-g")
_HOST_FLAGS = re.compile(r"extra_cflags\s*=\s*\[([^\]]*)\]")


def kit_for(root: Path, environment: Mapping[str, str]) -> Path | None:
    """The kit of this Python and its PyTorch under `root`, made if it is not there.

    None where it cannot be made; then extensions are built as usual. Side by side, only one process
    makes it, and the others wait.

    Args:
        root: a folder for kits.
        environment: in which the kit's compilers run.
    """
    if shutil.which("nvcc", path=environment.get("PATH")) is None and not _cuda_home(environment):
        return None
    folder = root / f"kit-{_key(environment)}"
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        if not folder.exists():
            root.mkdir(mode=0o700, parents=True, exist_ok=True)
            with _alone(folder):
                if not folder.exists():
                    make(folder, environment)
        return folder
    return None


def make(folder: Path, environment: Mapping[str, str]) -> None:
    """Make a kit in a folder that is not there yet.

    Raises:
        subprocess.SubprocessError: the compiler fails, or takes too long.
    """
    _run(folder, (), environment)


def add_precompiled(kit: Path, source: str, environment: Mapping[str, str]) -> None:
    """Have torch/extension.h precompiled for the flags that a candidate's source names.

    It takes longer than one build and hundreds of megabytes, so the first to ask does without, and
    so does who asks while another process makes it. Where it fails, g++ reads the header as usual.
    """
    flags = host_flags(source)
    folder = precompiled(kit, flags)
    if folder is None or folder.exists():
        return
    asked = folder.parent / f".{folder.name}.asked"
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        if not asked.exists():
            folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            asked.touch()
            return
        with _alone(folder, wait=False):
            if not folder.exists():
                _run(kit, flags, environment)


def precompiled(kit: Path, flags: Sequence[str]) -> Path | None:
    """Where the header lies precompiled under these flags; None where other flags are in use."""
    flags = [flag for flag in flags if flag.strip()]
    if len(flags) > 1 or not all(_OPTIMIZATION.fullmatch(flag) for flag in flags):
        return None
    return kit / "real" / ("".join(flags) or "plain")


def host_flags(source: str) -> tuple[str, ...]:
    """The flags for g++ that a source names first, read off its text."""
    found = _HOST_FLAGS.search(source)
    return tuple(re.findall(r"['\"]([^'\"]*)['\"]", found.group(1))) if found else ()


def _key(environment: Mapping[str, str]) -> str:
    """A hash of what a kit depends on."""
    torch = Path(sys.prefix)
    with contextlib.suppress(ImportError):
        import torch as package

        torch = Path(package.__file__)
    compiler = shutil.which(environment.get("CXX", "c++"), path=environment.get("PATH"))
    words = [sys.version, str(torch), _cuda_home(environment), str(compiler)]
    for path in (torch.parent / "version.py", *sorted(LIGHT.iterdir()), Path(__file__)):
        words.append(_text(path))
    if compiler is not None:
        words.append(str(os.stat(compiler).st_mtime_ns))
    return hashlib.sha256("\0".join(words).encode()).hexdigest()[:16]


def _cuda_home(environment: Mapping[str, str]) -> str:
    usual = "/usr/local/cuda" if os.path.exists("/usr/local/cuda/bin/nvcc") else ""
    return environment.get("CUDA_HOME") or environment.get("CUDA_PATH") or usual


@contextlib.contextmanager
def _alone(folder: Path, *, wait: bool = True) -> Iterator[None]:
    """Hold a lock that belongs to a folder which may not be there yet.

    Raises:
        BlockingIOError: another process holds it, and we do not `wait`.
    """
    name = f".{folder.name}.lock"
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (folder.parent / name).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        yield


def _run(folder: Path, flags: Sequence[str], environment: Mapping[str, str]) -> None:
    command = [sys.executable, "-P", "-m", "kerneltruth.runner.extension_kit", str(folder), *flags]
    # What fails here only costs time later; the compilers' words are for nobody.
    subprocess.run(command, env=dict(environment), check=True, capture_output=True, timeout=_MAKE_S)


def main(arguments: Sequence[str]) -> None:
    """Make the kit, or add a precompiled header to it."""
    import torch
    from torch.utils import cpp_extension

    folder, flags = Path(arguments[0]), list(arguments[1:])
    device = "cuda" if torch.version.cuda and cpp_extension.CUDA_HOME else "cpu"
    includes = [f"-isystem{path}" for path in cpp_extension.include_paths(device)]
    includes.append(f"-isystem{sysconfig.get_path('include', scheme='posix_prefix')}")
    tools: Any = cpp_extension
    compile_command = [
        tools.get_cxx_compiler(),
        "-DTORCH_API_INCLUDE_EXTENSION_H",
        *includes,
        "-fPIC",
        _standard(cpp_extension.__file__),
        *flags,
    ]
    target = precompiled(folder, flags) if folder.exists() else folder
    assert target is not None
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".making-") as making:
        place = Path(making) / "made"
        if target is folder:
            _make_kit(place, compile_command, cpp_extension.library_paths(device), device)
        else:
            _precompile(place, compile_command)
        place.rename(target)


def _standard(tools: str) -> str:
    """The option by which this PyTorch chooses its C++, of which each version has another."""
    found = re.search(r"-std=c\+\+\d\d", Path(tools).read_text())
    return found.group() if found else "-std=c++17"


def write_headers(include: Path, originals: Sequence[str]) -> None:
    """Write the stand-ins into a folder that is not there yet, under the names of the originals.

    Args:
        include: the folder.
        originals: where PyTorch's own headers lie.
    """
    shutil.copytree(LIGHT, include, ignore=shutil.ignore_patterns("*.cpp"))
    for header, light in HEADERS.items():
        path = include / header
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'#include "{os.path.relpath(include / light, path.parent)}"\n')
    found = [
        f"#define {name}\n"
        for name, header, text in _IN_SOME
        if any(text in _text(Path(folder) / header) for folder in originals)
    ]
    (include / "light_config.h").write_text("".join(["#pragma once\n", *found]))


def _text(path: Path) -> str:
    return path.read_text() if path.is_file() else ""


def _make_kit(place: Path, compiler: list[str], libraries: list[str], device: str) -> None:
    originals = [option.removeprefix("-isystem") for option in compiler]
    write_headers(place / "include", originals)
    cuda = ["-DKERNELTRUTH_CUDA"] if device == "cuda" else []
    links = [f"-L{path}" for path in libraries]
    links += ["-lc10", "-ltorch_cpu", "-ltorch_python", *(["-lc10_cuda"] if cuda else [])]
    shim = str(LIGHT / "shim.cpp")
    subprocess.run([*compiler, *cuda, "-shared", shim, "-o", str(place / SHIM), *links], check=True)


def _precompile(place: Path, compiler: list[str]) -> None:
    (place / "torch").mkdir(parents=True)
    source = place / "extension.cpp.h"
    source.write_text("#include <torch/extension.h>\n")
    made = place / "torch" / "extension.h.gch"
    subprocess.run([*compiler, "-x", "c++-header", str(source), "-o", str(made)], check=True)


if __name__ == "__main__":
    main(sys.argv[1:])
