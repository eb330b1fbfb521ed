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
from kerneltruth.runner.protocol import KernelRun, KernelWork

CALLS = 3
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


def shared_out(records: Iterable[Record], own: Collection[str]) -> tuple[KernelRun, ...]:
    """Return the kernels of the records, most device time first.

    A record has a name as the profiler gives it, and seconds, for each launch of all calls; `own`
    are names of the candidate's kernels, with their namespaces.
    """
    seconds: defaultdict[str, float] = defaultdict(float)
    launches: Counter[str] = Counter()
    for name, took in records:
        short = extension_launches.qualified(name)
        seconds[short] += took
        launches[short] += 1
    return tuple(
        KernelRun(
            name=name,
            module="" if name in own else "library",
            own=name in own,
            launches=-(-launches[name] // CALLS),
            device_s=took / CALLS,
        )
        for name, took in sorted(seconds.items(), key=lambda item: -item[1])
    )


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
