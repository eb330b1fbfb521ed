"""Write and precompile the headers that PyTorch extensions are built with: a lean subset.

`write_headers` makes a folder that precedes PyTorch's: the files of `lean/`, and PyTorch's
ATen/Functions.h without the operators. Everything that they include is PyTorch's.
`precompile_ahead` precompiles the header of the bindings into a folder for each PyTorch, Python and
compiler, with one folder in it for each set of flags; `building` uses both, in a child.

`python -m kerneltruth.runner.extensions.headers FOLDER [FLAG ...]` precompiles. It is a separate
process because it imports PyTorch's build tools and nothing waits for it.
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
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

LEAN = Path(__file__).parent / "lean"
FUNCTIONS = "ATen/Functions.h"
# The functions left in ATen/Functions.h call these.
_CALLED = ("std", "std_mean", "var", "var_mean")
_OPERATOR = re.compile(r"^#include <ATen/ops/(\w+)\.h>\n", re.MULTILINE)
_MAKE_S = 300.0
# A precompiled header fits one optimization level; sources use these.
_OPTIMIZATION = re.compile(r"-O[0-3s]?|-Ofast|-g")
_HOST_FLAGS = re.compile(r"extra_cflags\s*=\s*\[([^\]]*)\]")

_begun: dict[Path, subprocess.Popen[bytes]] = {}


def write_headers(folder: Path, originals: Path) -> None:
    """Write the folder that precedes PyTorch's headers; an existing one stays as it is."""
    if folder.exists():
        return
    text = (originals / FUNCTIONS).read_text()
    kept = _OPERATOR.sub(lambda found: found.group() if found.group(1) in _CALLED else "", text)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".headers-") as making:
        made = Path(making) / "headers"
        shutil.copytree(LEAN, made)
        (made / FUNCTIONS).write_text(kept)
        with contextlib.suppress(OSError):
            made.rename(folder)


def kit_folder(root: Path, environment: Mapping[str, str]) -> Path:
    """Return the folder under `root` for headers precompiled for this Python and PyTorch.

    The compiler runs in this environment.
    """
    return root / f"kit-{_key(environment)}"


def precompile_ahead(
    kit: Path,
    source: str,
    environment: Mapping[str, str],
    *,
    begin: Callable[..., subprocess.Popen[bytes]] = subprocess.Popen,
) -> None:
    """Begin to precompile the header of the bindings for the flags that a source names.

    Precompiling takes as long as some builds and hundreds of megabytes, so it begins at the second
    source. Builds that start before it ends do without, as do all builds if it fails.
    """
    flags = host_flags(source)
    folder = precompiled(kit, flags)
    if folder is None or folder.exists() or folder in _begun:
        return
    marker = kit / f".{folder.name}.asked"
    with contextlib.suppress(OSError):
        if not marker.exists():
            kit.mkdir(mode=0o700, parents=True, exist_ok=True)
            marker.touch()
            return
        module = ["-P", "-m", "kerneltruth.runner.extensions.headers"]
        _begun[folder] = begin(
            [sys.executable, *module, str(kit), *flags],
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )


def precompiled(kit: Path, flags: Sequence[str]) -> Path | None:
    """Return where the header is precompiled with these flags; None for other flags."""
    flags = [flag for flag in flags if flag.strip()]
    if len(flags) > 1 or not all(_OPTIMIZATION.fullmatch(flag) for flag in flags):
        return None
    return kit / ("".join(flags) or "plain")


def host_flags(source: str) -> tuple[str, ...]:
    """Return the flags for g++ that a source names first, parsed from its text."""
    found = _HOST_FLAGS.search(source)
    return tuple(re.findall(r"['\"]([^'\"]*)['\"]", found.group(1))) if found else ()


def _key(environment: Mapping[str, str]) -> str:
    torch = Path(sys.prefix)
    with contextlib.suppress(ImportError):
        import torch as package

        torch = Path(package.__file__)
    compiler = shutil.which(environment.get("CXX", "c++"), path=environment.get("PATH"))
    words = [sys.version, str(torch), str(compiler)]
    own = (path for path in sorted(LEAN.rglob("*")) if path.is_file())
    for path in (torch.parent / "version.py", *own, Path(__file__)):
        words.append(path.read_text() if path.is_file() else "")
    if compiler is not None:
        words.append(str(os.stat(compiler).st_mtime_ns))
    return hashlib.sha256("\0".join(words).encode()).hexdigest()[:16]


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder that may not exist yet.

    Raises:
        BlockingIOError: another process holds it.
    """
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (folder.parent / f".{folder.name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield


def _precompile(making: Path, flags: Sequence[str]) -> Path:
    """Precompile torch/extension.h as `load_inline` makes g++ read it; return its folder."""
    import torch
    from torch.utils import cpp_extension

    tools: Any = cpp_extension
    device = "cuda" if torch.version.cuda and tools.CUDA_HOME else "cpu"
    includes = tools.include_paths(device)
    includes.append(sysconfig.get_path("include", scheme="posix_prefix"))
    write_headers(making / "headers", Path(torch.__file__).parent / "include")
    made = making / "made"
    (made / "torch").mkdir(parents=True)
    source = making / "extension.cpp.h"
    source.write_text("#include <torch/extension.h>\n")
    command = [
        tools.get_cxx_compiler(),
        "-DTORCH_API_INCLUDE_EXTENSION_H",
        f"-I{making / 'headers'}",
        *(f"-isystem{path}" for path in includes),
        "-fPIC",
        standard_option(tools.__file__),
        *flags,
        *("-x", "c++-header", str(source), "-o", str(made / "torch" / "extension.h.gch")),
    ]
    subprocess.run(command, check=True, timeout=_MAKE_S)
    return made


def main(
    arguments: Sequence[str], precompile: Callable[[Path, Sequence[str]], Path] = _precompile
) -> None:
    """Precompile the header into a kit, unless it exists or another process is doing so."""
    kit, flags = Path(arguments[0]), [flag for flag in arguments[1:] if flag.strip()]
    target = precompiled(kit, flags)
    if target is None:
        return
    with contextlib.suppress(BlockingIOError), _alone(target):
        if not target.exists():
            with tempfile.TemporaryDirectory(dir=kit, prefix=".making-") as making:
                precompile(Path(making), flags).rename(target)


def standard_option(tools: str) -> str:
    """Return the option by which this PyTorch chooses its C++ version."""
    found = re.search(r"-std=c\+\+\d\d", Path(tools).read_text())
    return found.group() if found else "-std=c++17"


if __name__ == "__main__":
    main(sys.argv[1:])
