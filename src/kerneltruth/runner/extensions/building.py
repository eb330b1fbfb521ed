"""Build a candidate's C++ and CUDA with `load_inline` and `load` as PyTorch does, but faster.

nvcc reads torch/extension.h three times, which is most of a build's time. So `load_inline` first
builds with few of PyTorch's headers (see `headers`) and the operators that the sources name. If
that fails, or if fewer headers might change the meaning, PyTorch's own `load_inline` runs with the
original arguments; only its errors are raised. docs/guides/submissions.md says why both builds mean
the same.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import os
import re
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from kerneltruth.runner.extensions.headers import precompiled, write_headers
from kerneltruth.runner.unsupported import UnsupportedError

# Arguments of `load_inline` that the lean build takes as they are.
_ARGUMENTS = """
name cpp_sources cuda_sources functions extra_cflags extra_cuda_cflags extra_ldflags
extra_include_paths verbose with_cuda is_python_module with_pytorch_error_handling
keep_intermediates
"""
_USUAL = frozenset(_ARGUMENTS.split())
# No flag may change the C++ version or the search for headers.
_PLAIN_FLAG = re.compile(
    r"|-O\w*|-g|-G|-l\w+|-W\w*|-f\w[\w-]*|-m\w[\w=-]*|-U\w+|--?use_fast_math|--?lineinfo|--restrict"
    r"|--expt-[\w-]+|-Xptxas|--?ptxas-options=?.*|-v|--?maxrregcount=\d+"
    r"|-D(?!.*(?:TORCH|C10|AT_))\w+(?:=\w+)?|--?gencode=?.*|arch=.*|--?arch=.*|-lineinfo"
)
# A name that the lean headers lack is an error, and PyTorch's own build follows. What follows is
# where it may be none: macros of the other headers, a scope that names are looked up in unseen, a
# namespace within PyTorch's that hides another of the same name, names that are put together,
# headers that are found beside the source.
ABSENT_MACROS = re.compile(
    r"(?:BUILD_FEATURE|CATCH|END_HANDLE_TH|EXPECTED_MAX|FAIL_MTIAHOOKS|FORALL|HAS_(?:IMPL|PT2)"
    r"|FORWARD_HAS|IS_PYBIND|MAKE_TORCH|RECORD|REGISTER|ROLLBEAR|STRONG_HAS)_\w+"
    r"|DEFINE_TO|DYNAMIC_TYPE_BIT|HANDLE_TH_ERRORS|SEM_FAILED|SKA_NOINLINE|SOFT_ASSERT"
)
_UNSEEN = re.compile(
    rf"\b(?:{ABSENT_MACROS.pattern})\b|\bnamespace\s+(?:\w+\s*=\s*)?(?:at|torch|c10|pybind11)\b|##"
    r"|\btorch\s*::\s*[a-z]\w*\s*::|\bat\s*::\s*(?!cuda\b)[a-z]\w*\s*::"
    r"|#\s*+include\s*+(?![<\"]\w[\w./+-]*[>\"])"
)
# nvcc makes no bindings with the lean headers, and knows no casts of tensors.
_BINDINGS = re.compile(r"pybind11|PYBIND11|\bpy\s*::|torch/csrc/")
_CONDITION = re.compile(r"^[ \t]*#[ \t]*(?:el)?if(?:n?def)?\b((?:\\\n|.)*)", re.MULTILINE)
_DEFINITION = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.MULTILINE)
_IDENTIFIER = re.compile(r"\b[A-Za-z_]\w*")
# Conditions may ask for these: they are the compilers'.
_COMPILERS = """
defined __CUDA_ARCH__ __CUDACC__ __NVCC__ __CUDACC_VER_MAJOR__ __CUDACC_VER_MINOR__ __cplusplus
CUDA_VERSION CUDART_VERSION __GNUC__
"""
_MAY_ASK = frozenset(_COMPILERS.split())
# Names of functions, called without an object; of those that are operators the header is included.
_CALLABLE = re.compile(r"(?<![.\w])(?<!->)[A-Za-z_]\w*")
# Functions that stand in the header of another operator: `add_out` and `add_` in that of `add`.
_VARIANT = re.compile(r"(?:_symint)?(?:_outf?|_)?$")
# What operators only seem to need is left out of the lean headers, unless a source names it.
_LEFT_OUT = {
    "device_of": "ATen/DeviceGuard.h",
    "DeviceGuard": "ATen/DeviceGuard.h",
    "OptionalDeviceGuard": "ATen/DeviceGuard.h",
    "globalContext": "ATen/Context.h",
}

_lean = False
Which: TypeAlias = Callable[[str], str | None]


def lean() -> bool:
    """Return whether anything of this process was built with the lean PyTorch headers."""
    return _lean


def _tools() -> Any:
    return importlib.import_module("torch.utils.cpp_extension")


def install(
    kit: str | None, *, find: Callable[[], Any] = _tools, which: Which = shutil.which
) -> None:
    """Intercept PyTorch's builds in this process.

    The kit, a folder of precompiled headers, need not be there; None leaves the builds as they are.
    `find` imports PyTorch's build tools; `which` finds programs on PATH.

    Raises:
        UnsupportedError: PyTorch's build tools lack what they import.
    """
    global _lean
    _lean = False
    _find_ninja(which)
    # Dependency files are useless in the candidate's own folder.
    os.environ.setdefault("TORCH_EXTENSION_SKIP_NVCC_GEN_DEPENDENCIES", "1")
    try:
        tools = find()
    except ImportError as error:
        raise UnsupportedError(
            f"PyTorch cannot build C++ and CUDA here: {error}; pip install setuptools"
        ) from error
    own_load, own_inline = tools.load, tools.load_inline

    @functools.wraps(own_load)
    def load(*args: Any, **kwargs: Any) -> Any:
        sources = kwargs.get("sources", args[1] if len(args) > 1 else ())
        cuda = any(str(s).endswith((".cu", ".cuh")) for s in _listed(sources))
        need_tools(tools, which, cuda=cuda)
        return own_load(*args, **kwargs)

    @functools.wraps(own_inline)
    def load_inline(*args: Any, **kwargs: Any) -> Any:
        try:
            given = inspect.signature(own_inline).bind(*args, **kwargs).arguments
        except TypeError:
            given = {}
        need_tools(tools, which, cuda=bool(given.get("cuda_sources")))
        if kit is not None and is_lean(given):
            with contextlib.suppress(Exception):
                return _build_lean(own_inline, given, Path(kit))
            # The candidate's next build counts as its first.
            tools.JIT_EXTENSION_VERSIONER.entries.pop(given["name"], None)
        return own_inline(*args, **kwargs)

    tools.load, tools.load_inline = load, load_inline


def _torch() -> str:
    return str(importlib.import_module("torch").__file__)


def need_tools(tools: Any, which: Which, *, cuda: bool) -> None:
    """Refuse to build if ninja is missing, or nvcc if it is needed.

    Raises:
        UnsupportedError: says which is missing, and how to add it.
    """
    home = tools.CUDA_HOME
    if cuda and (home is None or not os.path.exists(os.path.join(home, "bin", "nvcc"))):
        raise UnsupportedError(
            "CUDA C++ needs nvcc, which is neither on PATH nor under CUDA_HOME: install the CUDA "
            "toolkit of your driver"
        )
    if which("ninja") is None:
        raise UnsupportedError(
            "CUDA C++ needs ninja, which is not on PATH: pip install kerneltruth[gpu]"
        )


def is_lean(given: Mapping[str, Any]) -> bool:
    """Return whether fewer headers mean the same for these arguments of `load_inline`."""
    if not given.keys() <= _USUAL or not given.get("is_python_module", True):
        return False
    if given.get("extra_include_paths") or not isinstance(given.get("name"), str):
        return False
    lists = [given.get(name) for name in ("extra_cflags", "extra_cuda_cflags", "extra_ldflags")]
    flags = [flag for each in lists for flag in each or ()]
    if not all(isinstance(flag, str) and _PLAIN_FLAG.fullmatch(flag.strip()) for flag in flags):
        return False
    cpp, cuda = _listed(given.get("cpp_sources")), _listed(given.get("cuda_sources"))
    if not all(isinstance(text, str) for text in (*cpp, *cuda)):
        return False
    return all(_means_the_same("\n".join(each)) for each in (cpp, cuda)) and not any(
        _BINDINGS.search(text) for text in cuda
    )


def _means_the_same(text: str) -> bool:
    """Return whether fewer headers can only cause an error in a source; see `_UNSEEN`."""
    known = _MAY_ASK.union(_DEFINITION.findall(text))
    conditions = (name for found in _CONDITION.findall(text) for name in _IDENTIFIER.findall(found))
    return _UNSEEN.search(text) is None and known.issuperset(conditions)


def included(texts: Sequence[str], originals: Path) -> str:
    """Lines that include the operators that sources name.

    All of them, since a call without a namespace finds them by its arguments.
    """
    called = {name for text in texts for name in _CALLABLE.findall(text)}
    names = sorted(called.union(_VARIANT.sub("", name) for name in called))
    whole = {str(originals / _LEFT_OUT[name]) for name in names if name in _LEFT_OUT}
    operators = (name for name in names if (originals / f"ATen/ops/{name}.h").is_file())
    lines = [f'#include "{path}"' for path in sorted(whole)]
    return "\n".join([*lines, *(f"#include <ATen/ops/{name}.h>" for name in operators)])


def _listed(sources: Any) -> list[Any]:
    if sources is None:
        return []
    return [sources] if isinstance(sources, str) else list(sources)


def _build_lean(own_inline: Callable[..., Any], given: Mapping[str, Any], kit: Path) -> Any:
    global _lean
    extensions = os.environ.get("TORCH_EXTENSIONS_DIR") or os.path.join(os.getcwd(), "extensions")
    folder = Path(f"{extensions}_lean", given["name"])
    folder.mkdir(parents=True, exist_ok=True)
    headers = Path(f"{extensions}_headers")
    originals = Path(_torch()).parent / "include"
    write_headers(headers, originals)
    arguments = _copied(given) | {"build_directory": str(folder)}
    for name in ("cpp_sources", "cuda_sources"):
        if texts := _listed(given.get(name)):
            arguments[name] = [included(texts, originals), *texts]
    ready = precompiled(kit, given.get("extra_cflags") or ())
    # Named before it exists, too: with other arguments the next child would build once more.
    first = [] if ready is None else [str(ready)]
    arguments["extra_include_paths"] = [*first, str(headers)]
    module = own_inline(**arguments)
    _lean = True
    return module


def _copied(given: Mapping[str, Any]) -> dict[str, object]:
    """Copy the arguments' lists, because PyTorch appends to them."""
    return {k: list(v) if isinstance(v, list | tuple) else v for k, v in given.items()}


def _find_ninja(which: Which) -> None:
    """Put a pip-installed ninja on PATH, if its environment is not active."""
    if which("ninja") is not None:
        return
    folders = [os.path.dirname(sys.executable)]
    with contextlib.suppress(ImportError, AttributeError):
        folders.append(str(importlib.import_module("ninja").BIN_DIR))
    found = next((f for f in folders if os.access(os.path.join(f, "ninja"), os.X_OK)), None)
    if found is not None:
        os.environ["PATH"] = f"{os.environ.get('PATH', '')}{os.pathsep}{found}"
