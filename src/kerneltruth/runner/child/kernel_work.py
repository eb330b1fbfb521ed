"""Count what a call runs: launches of the candidate's own kernels, and operators of PyTorch.

A kernel is its own if the candidate's source brings it, in whatever file. Kernels of installed
packages and Inductor's generated ones are not. The judge requests one call in which everything is
counted, and one in which own kernels do nothing: their launches are counted but not made.
"""

from __future__ import annotations

import contextlib
import functools
import os
import site
import sysconfig
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import torch

from kerneltruth.runner import emulation
from kerneltruth.runner.child import extension_launches, placing
from kerneltruth.runner.observation import KernelLaunches, KernelWork
from kerneltruth.runner.protocol import Kernels

_MOST_NAMES = 64
# Operators of other namespaces may be the candidate's.
_TORCH = frozenset({"aten", "prims", "quantized", "torchvision"})
_VIEWS = frozenset({"aten::lift_fresh", "aten::_unsafe_view", "aten::set_", "aten::resize_"})
# Memory with what fills it, and what waits for a number.
_NO_WORK = frozenset(
    {
        *("empty", "empty_like", "empty_strided", "empty_permuted", "new_empty"),
        *("new_empty_strided", "zeros", "zeros_like", "new_zeros", "ones", "ones_like", "new_ones"),
        *("full", "full_like", "new_full", "fill_", "zero_", "scalar_tensor"),
        *("_local_scalar_dense", "is_same_size"),
    }
)
_Key = tuple[str, str, bool]


class _State:
    kernels: Kernels = "run"
    runs: ClassVar[Counter[_Key]] = Counter()
    apart = False
    on_gpu = False


def begin(kernels: Kernels, device: torch.device) -> None:
    """Begin a call: its kernels run, are counted, or do nothing."""
    _State.kernels, _State.apart, _State.on_gpu = kernels, False, device.type == "cuda"
    _State.runs.clear()
    if kernels == "count":
        emulation.follow_stores()


def end() -> None:
    """End a call: kernels run, and nothing is counted."""
    _State.kernels = "run"
    emulation.unfollow_stores()


def launched(function: Any) -> bool:
    """Count the launch of a Triton kernel; whether it is to be made."""
    if _State.kernels == "run":
        return True
    path = function.__code__.co_filename
    own = is_own(path)
    count(function.__name__, os.path.basename(path).removeprefix("candidate_"), own=own)
    return not (own and _State.kernels == "idle")


def launched_own(name: str, path: str) -> bool:
    """Count the launch of a kernel that the candidate has built; whether it is to be made.

    Its demangled name is counted without template arguments: they may be pages long.
    """
    count(extension_launches.qualified(name), os.path.basename(path), own=True)
    return _State.kernels != "idle"


def extensions() -> contextlib.AbstractContextManager[None]:
    """While entered, count what the candidate's shared objects launch, on request."""
    if _State.kernels == "run":
        return contextlib.nullcontext()
    return extension_launches.watched(is_own, launched_own)


def has_extensions() -> bool:
    """Return whether the candidate has loaded a shared object of its own."""
    return bool(extension_launches.loaded(is_own))


def count(name: str, module: str, *, own: bool) -> None:
    """Count a launch, or a call of an operator."""
    if not _State.apart and len(_State.runs) < _MOST_NAMES:
        _State.runs[name, module, own] += 1


def operator(func: Any, args: Sequence[Any]) -> None:
    """Count an operator of PyTorch, if it does work on the device."""
    if _State.apart or not _does_work(func):
        return
    given = [a for a in args if isinstance(a, torch.Tensor)]
    if given and all(map(_on_host, given)):
        return
    count(func._schema.name.partition("::")[2], func.namespace, own=False)


@contextlib.contextmanager
def uncounted() -> Iterator[None]:
    """Exclude work that is not the call's: a launch itself, a rehearsal."""
    before, _State.apart = _State.apart, True
    try:
        yield
    finally:
        _State.apart = before


def collect(values: Sequence[Any], *, seen: bool) -> KernelWork | None:
    """Return whose work the call was; None if the judge did not request it.

    Values are the leaves of what the entry returned; `seen` says whether launches of kernels in the
    candidate's language are, if none was.
    """
    if _State.kernels == "run":
        return None
    tensors = [t for t in map(placing.plain, values) if t is not None]
    stored: int | None = None
    if _State.kernels == "count" and not _State.on_gpu:
        counts = [emulation.elements_stored(t) for t in tensors]
        stored = None if None in counts else sum(n for n in counts if n is not None)
    runs = sorted(_State.runs.items(), key=lambda item: not item[0][2])
    return KernelWork(
        runs=tuple(
            KernelLaunches(name=name, module=module, own=own, launches=launches)
            for (name, module, own), launches in runs
        ),
        seen=seen or any(own for _, _, own in _State.runs),
        elements=sum(t.numel() for t in tensors),
        stored=stored,
    )


@functools.cache
def _does_work(func: Any) -> bool:
    schema = getattr(func, "_schema", None)
    if schema is None or func.namespace not in _TORCH or getattr(func, "is_view", False):
        return False
    name = schema.name
    if name in _VIEWS or name.partition("::")[2] in _NO_WORK:
        return False
    return any("Tensor" in str(r.type) for r in schema.returns) or "out" in func._overloadname


def _on_host(tensor: torch.Tensor) -> bool:
    """Return whether the candidate keeps the tensor on the host of a real or an emulated GPU."""
    return emulation.is_host(tensor) or (_State.on_gpu and tensor.device.type == "cpu")


@functools.cache
def is_own(path: str) -> bool:
    """Return whether a file is the candidate's: neither Python's own nor an installed package's."""
    real = os.path.realpath(path)
    return not real.startswith(_installed()) and "torchinductor" not in real


@functools.cache
def _installed() -> tuple[str, ...]:
    known = {*sysconfig.get_paths().values(), *site.getsitepackages()}
    known |= {os.path.dirname(os.path.dirname(torch.__file__))}
    here = os.path.realpath(os.getcwd())
    found = {os.path.realpath(p) for p in known if p}
    return tuple(f"{p}{os.sep}" for p in sorted(found) if not here.startswith(p))
