"""Which kernels take the device's time in a call, and whose they are.

CUPTI's activity records, through PyTorch's profiler, name every kernel with its time. The first
record in a process takes seconds, so this runs on request, and is never part of judging.
"""

from __future__ import annotations

import gc
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable
from typing import Any

import torch

from kerneltruth.runner.child import extension_launches, kernel_work
from kerneltruth.runner.observation import KernelLaunches, KernelWork

CALLS = 3
# Namespaces of templates that cuBLAS and PyTorch instantiate, and a candidate may, too.
SHARED_TEMPLATES = ("cutlass::", "cute::")
# By name: how often, and seconds.
Record = tuple[str, float]


def work_of(call: Callable[[], Any], device: torch.device) -> KernelWork:
    """Make the call a few times, and say which kernels ran and what time of the device they took.

    Not seen are kernels of an extension whose names are not known.
    """
    own: set[str] = set()

    def note(name: str, path: str) -> bool:
        del path
        own.add(name)
        return True

    # Compiles what is not compiled yet.
    with extension_launches.watched(kernel_work.is_own, note):
        call()
    torch.cuda.synchronize(device)
    own |= set(_triton_names())
    runs = shared_out(_records(call, device), own)
    return KernelWork(runs=runs, seen=extension_launches.NAMELESS not in own)


def shared_out(records: Iterable[Record], own: Collection[str]) -> tuple[KernelLaunches, ...]:
    """Return the kernels of the records, most device time first.

    A record has a name as the profiler gives it, and seconds, for each launch of all calls; `own`
    are demangled names of the candidate's kernels. Libraries instantiate the templates of CUTLASS
    as well, so these are told apart by their arguments.
    """
    seconds: defaultdict[tuple[str, bool], float] = defaultdict(float)
    launches: Counter[tuple[str, bool]] = Counter()
    whole = {_compact(name) for name in own}
    short_names = {extension_launches.qualified(name) for name in own}
    for name, took in records:
        short = extension_launches.qualified(name)
        is_shared = short.startswith(SHARED_TEMPLATES)
        key = short, _compact(name) in whole if is_shared else short in short_names
        seconds[key] += took
        launches[key] += 1
    return tuple(
        KernelLaunches(
            name=name,
            module="" if is_own else "library",
            own=is_own,
            launches=-(-launches[name, is_own] // CALLS),
            device_s=took / CALLS,
        )
        for (name, is_own), took in sorted(seconds.items(), key=lambda item: -item[1])
    )


def _compact(name: str) -> str:
    """Return a demangled name as demanglers agree on it: without result type and spaces."""
    return name.removeprefix("void ").replace(" ", "")


def _records(call: Callable[[], Any], device: torch.device) -> list[Record]:
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        for _ in range(CALLS):
            call()
        torch.cuda.synchronize(device)
    profiler = seen.profiler
    assert profiler is not None
    events = profiler.kineto_results.events()
    return [
        (event.name(), event.duration_ns() / 1e9)
        for event in events
        if event.device_type().name == "CUDA" and not event.is_user_annotation()
    ]


def _triton_names() -> Iterable[str]:
    from triton.runtime.jit import JITFunction

    for function in gc.get_objects():
        if isinstance(function, JITFunction):
            path = function.fn.__code__.co_filename
            yield from (function.fn.__name__,) if kernel_work.is_own(path) else ()
