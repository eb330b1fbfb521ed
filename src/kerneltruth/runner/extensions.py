"""How a candidate's C++ and CUDA are built: `load_inline` and `load` as PyTorch has them, faster.

nvcc reads torch/extension.h three times, which is most of a build's time. So `load_inline` first
builds with the light stand-ins of a kit (see `extension_kit`), in a folder of their own. Where that
fails, or a source names anything that they lack, or an argument is unusual, PyTorch's own
`load_inline` runs as it was called; its errors are the only ones that are raised. The judge loads
the candidate anew without the stand-ins before it convicts, and before it times.
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
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from kerneltruth.runner.extension_kit import HEADERS, SHIM, precompiled
from kerneltruth.runner.protocol import UnsupportedHere

# What the light headers know of the namespaces and macros that are PyTorch's.
_NAMES = """
Tensor TensorOptions IntArrayRef ArrayRef ScalarType Device DeviceType DeviceIndex
kByte kChar kShort kInt kLong kHalf kFloat kDouble kBool kBFloat16 kCPU kCUDA
kUInt8 kInt8 kInt16 kInt32 kInt64 kFloat16 kFloat32 kFloat64
empty zeros ones empty_like zeros_like ones_like matmul mm mean sum sqrt exp rsqrt
dtype device device_of wrap_pybind_function
"""
_MACROS = """
TORCH_CHECK TORCH_EXTENSION_NAME AT_ERROR AT_ASSERTM AT_DISPATCH_FLOATING_TYPES
C10_CUDA_CHECK C10_CUDA_KERNEL_LAUNCH_CHECK
"""
# Arguments of `load_inline` that the light build takes as they are.
_ARGUMENTS = """
name cpp_sources cuda_sources functions extra_cflags extra_cuda_cflags extra_ldflags
extra_include_paths verbose with_cuda is_python_module with_pytorch_error_handling
keep_intermediates
"""
_KNOWN_NAMES, _KNOWN_MACROS = frozenset(_NAMES.split()), frozenset(_MACROS.split())
_USUAL = frozenset(_ARGUMENTS.split())
_KNOWN_CUDA = frozenset(("CUDAGuard", "OptionalCUDAGuard", "CUDAStream", "getCurrentCUDAStream"))
_NAME = re.compile(r"\b(torch|at|c10)\s*::\s*(\w+)(?:\s*::\s*(\w+))?")
_MACRO = re.compile(r"\b(?:TORCH|AT|C10)_[A-Z0-9_]+\b")
_OTHER_NAMESPACE = re.compile(r"\b(?:py|pybind11|caffe2)\s*::")
_INCLUDE = re.compile(r"^\s*#\s*include\s*[<\"]([^>\"]+)[>\"]", re.MULTILINE)
_PYTORCH_HEADER = re.compile(r"(?:torch|ATen|c10|caffe2|pybind11)\b")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
# Neither which C++ is spoken nor what is found where may depend on a flag.
_PLAIN_FLAG = re.compile(
    r"|-O\w*|-g|-G|-l\w+|-W\w*|-f\w[\w-]*|-m\w[\w=-]*|-U\w+|--?use_fast_math|--?lineinfo|--restrict"
    r"|--expt-[\w-]+|-Xptxas|--?ptxas-options=?.*|-v|--?maxrregcount=\d+"
    r"|-D(?!.*(?:TORCH|C10|AT_))\w+(?:=\w+)?|--?gencode=?.*|arch=.*|--?arch=.*|-lineinfo"
)

_stood_in = False


def stood_in() -> bool:
    """Whether anything of this process was built with the light headers."""
    return _stood_in


def install(kit: str | None, *, light: bool) -> None:
    """Interpose on PyTorch's builds in this process.

    Args:
        kit: the folder of a kit; None leaves the builds as they are.
        light: whether its stand-ins may be used; its precompiled headers always are.

    Raises:
        UnsupportedHere: PyTorch's build tools lack what they import.
    """
    _find_ninja()
    # Of which files an object was made is of no use in a folder that is the candidate's own.
    os.environ.setdefault("TORCH_EXTENSION_SKIP_NVCC_GEN_DEPENDENCIES", "1")
    try:
        tools = _tools()
    except ImportError as error:
        raise UnsupportedHere(
            f"PyTorch cannot build C++ and CUDA here: {error}; pip install setuptools"
        ) from error
    own_load, own_inline = tools.load, tools.load_inline

    @functools.wraps(own_load)
    def load(*args: Any, **kwargs: Any) -> Any:
        sources = kwargs.get("sources", args[1] if len(args) > 1 else ())
        need_tools(tools, cuda=any(str(s).endswith((".cu", ".cuh")) for s in _listed(sources)))
        return own_load(*args, **kwargs)

    @functools.wraps(own_inline)
    def load_inline(*args: Any, **kwargs: Any) -> Any:
        try:
            given = inspect.signature(own_inline).bind(*args, **kwargs).arguments
        except TypeError:
            given = {}
        need_tools(tools, cuda=bool(given.get("cuda_sources")))
        if kit is not None and light and is_light(given):
            with contextlib.suppress(Exception):
                return _build_light(own_inline, given, Path(kit))
            # Its next build counts as the first, which it is for the candidate.
            tools.JIT_EXTENSION_VERSIONER.entries.pop(given["name"], None)
        if kit is not None and given:
            return own_inline(**_with_precompiled(given, Path(kit)))
        return own_inline(*args, **kwargs)

    tools.load, tools.load_inline = load, load_inline


def _tools() -> Any:
    return importlib.import_module("torch.utils.cpp_extension")


def need_tools(tools: Any, *, cuda: bool) -> None:
    """Refuse to build where ninja is missing, or nvcc where it is needed.

    Raises:
        UnsupportedHere: which of them, and what adds it.
    """
    home = tools.CUDA_HOME
    if cuda and (home is None or not os.path.exists(os.path.join(home, "bin", "nvcc"))):
        raise UnsupportedHere(
            "CUDA C++ needs nvcc, which is neither on PATH nor under CUDA_HOME: install the CUDA "
            "toolkit of your driver"
        )
    if shutil.which("ninja") is None:
        raise UnsupportedHere(
            "CUDA C++ needs ninja, which is not on PATH: pip install kerneltruth[gpu]"
        )


def is_light(given: Mapping[str, Any]) -> bool:
    """Whether the light headers may do for these arguments of `load_inline`, by their text."""
    if not given.keys() <= _USUAL or not given.get("is_python_module", True):
        return False
    if given.get("extra_include_paths") or not isinstance(given.get("name"), str):
        return False
    lists = [given.get(name) for name in ("extra_cflags", "extra_cuda_cflags", "extra_ldflags")]
    flags = [flag for each in lists for flag in each or ()]
    if not all(isinstance(flag, str) and _PLAIN_FLAG.fullmatch(flag.strip()) for flag in flags):
        return False
    if not given.get("functions", ()):
        return False
    texts = [*_listed(given.get("cpp_sources")), *_listed(given.get("cuda_sources"))]
    return all(isinstance(text, str) and _speaks_light(text) for text in texts)


def _speaks_light(text: str) -> bool:
    """Whether a source names nothing of PyTorch's that the light headers lack."""
    text = _COMMENT.sub(" ", text)
    headers = [name for name in _INCLUDE.findall(text) if _PYTORCH_HEADER.match(name)]
    names = _NAME.findall(text)
    return (
        all(name in HEADERS for name in headers)
        and _OTHER_NAMESPACE.search(text) is None
        and all(_is_known(*name) for name in names)
        and all(macro in _KNOWN_MACROS for macro in _MACRO.findall(text))
    )


def _is_known(namespace: str, name: str, inner: str) -> bool:
    if namespace != "torch" and name == "cuda":
        return inner in _KNOWN_CUDA
    return name in _KNOWN_NAMES or (namespace == "torch" and name in ("optional", "nullopt"))


def _listed(sources: Any) -> list[Any]:
    if sources is None:
        return []
    return [sources] if isinstance(sources, str) else list(sources)


def _build_light(own_inline: Callable[..., Any], given: Mapping[str, Any], kit: Path) -> Any:
    global _stood_in
    extensions = os.environ.get("TORCH_EXTENSIONS_DIR") or os.path.join(os.getcwd(), "extensions")
    folder = os.path.join(f"{extensions}_light", given["name"])
    os.makedirs(folder, exist_ok=True)
    arguments = _copied(given)
    arguments["extra_include_paths"] = [str(kit / "include")]
    arguments["extra_ldflags"] = [*(given.get("extra_ldflags") or ()), str(kit / SHIM)]
    arguments["build_directory"] = folder
    module = own_inline(**arguments)
    _stood_in = True
    return module


def _with_precompiled(given: Mapping[str, Any], kit: Path) -> dict[str, Any]:
    """The arguments, with the precompiled header where g++ looks first, if it is there."""
    arguments = _copied(given)
    folder = precompiled(kit, given.get("extra_cflags") or ())
    if folder is not None and folder.exists() and not given.get("extra_include_paths"):
        arguments["extra_include_paths"] = [str(folder)]
    return arguments


def _copied(given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments, with lists of our own: PyTorch adds to those that it is given."""
    return {k: list(v) if isinstance(v, list | tuple) else v for k, v in given.items()}


def _find_ninja() -> None:
    """Put a ninja that pip installed on PATH, where an environment that is not active has it."""
    if shutil.which("ninja") is not None:
        return
    folders = [os.path.dirname(sys.executable)]
    with contextlib.suppress(ImportError, AttributeError):
        folders.append(str(importlib.import_module("ninja").BIN_DIR))
    found = next((f for f in folders if os.access(os.path.join(f, "ninja"), os.X_OK)), None)
    if found is not None:
        os.environ["PATH"] = f"{os.environ.get('PATH', '')}{os.pathsep}{found}"
