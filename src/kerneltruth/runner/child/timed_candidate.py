"""A candidate that is timed: its input buffers and calls, slot by slot, and its rehearsals."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from kerneltruth.runner import emulation
from kerneltruth.runner.arguments import ScalarArgument
from kerneltruth.runner.child import binding, offering, operators, optimizers, placing, seeding
from kerneltruth.runner.child.entry import CandidateEntry
from kerneltruth.runner.observation import KernelWork, Observation
from kerneltruth.runner.protocol import Loaded, Rehearse, TimedStep
from kerneltruth.runner.timing import input_buffers, timed_worker
from kerneltruth.runner.timing.messages import CountOperators, PrepareInputs, Supply


class TimedCandidate:
    """A candidate's entry with input buffers in slots."""

    def __init__(self, entry: CandidateEntry, *, arrays: bool, launches: Any) -> None:
        """Hold the entry, which takes NumPy's arrays or tensors; `launches` records kernels."""
        self._entry = entry
        self._device = entry.device
        self._arrays = arrays
        self._launches = launches
        self._slots: dict[int, timed_worker.TimedWorker] = {}

    def calls(self, slot: int = 0) -> list[Callable[[], Any]]:
        """Return the calls on the buffers of a slot, in order."""
        return self._slots[slot].calls

    def leave(self) -> None:
        """Release all buffers."""
        self._slots.clear()

    def do(self, message: TimedStep) -> Observation:
        """Do one step."""
        if isinstance(message, Rehearse):
            return self._rehearse(message)
        if isinstance(message, PrepareInputs):
            seeding.seed()
            self._slots.pop(message.slot, None)
            ready = partial(self._calls, message.compiled)
            self._slots[message.slot] = timed_worker.TimedWorker(message, self._device, ready)
            return Observation(ended="returned")
        if isinstance(message, Loaded):
            loaded = importlib.import_module("kerneltruth.runner.child.loaded")
            return Observation(ended="returned", binaries=loaded.binaries())
        worker = self._slots.get(message.slot)
        if worker is None:
            return Observation(ended="lost", message="a batch came before its inputs")
        if isinstance(message, CountOperators):
            (call,) = self._calls(None, [worker.offered(message.buffer)])
            return operators.observed(call, self._device)
        return worker.do(message)

    def _rehearse(self, request: Rehearse) -> Observation:
        if self._device.type == "cuda":
            # Left from earlier calls, and from one that raised.
            torch.cuda.empty_cache()
            free, total = torch.cuda.mem_get_info(self._device)
            if free < request.spare * total:
                return Observation(ended="unsupported", message="others need the memory")
        seeding.seed()
        if self._launches is not None:
            self._launches.begin(request.config)
        call = self._call_once(request)
        work: KernelWork | None = None
        if request.device_time:
            device_time = importlib.import_module("kerneltruth.runner.child.device_time")
            work = device_time.work_of(call, self._device)
        if self._device.type == "cuda":
            torch.cuda.empty_cache()
        launches = self._launches.collect() if self._launches is not None else ()
        return Observation(ended="returned", launches=tuple(launches), work=work)

    def _call_once(self, request: Rehearse) -> Callable[[], Any]:
        with emulation.suspended():
            row = [self._supplied(a) for a in request.arguments]
        (call,) = self._calls(None, [row])
        call()
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        return call

    def _supplied(self, argument: Supply | ScalarArgument) -> binding.Offered:
        if isinstance(argument, ScalarArgument):
            return offering.offered_scalar(argument)
        window = input_buffers.pooled(argument, self._device)[: argument.span]
        return offering.offered_tensor(argument, input_buffers.tensor_in(window, argument))

    def _calls(
        self, compiled: str | None, rows: Sequence[Sequence[binding.Offered]]
    ) -> list[Callable[[], Any]]:
        """Return a call for each buffer; the entry is built, and compiled, once."""
        if self._arrays:
            rows = [[_as_array(a) for a in row] for row in rows]
        aside = [optimizers.set_aside(row) for row in rows]
        owners = [optimizers.parameters(row, gradients) for row, gradients in aside]
        gradients = aside[0][1]
        entry, bound = self._entry.bound([row for row, _ in aside], as_it_is=bool(gradients))
        if compiled is not None:
            _cache_headers()
            entry = torch.compile(entry, mode=compiled, dynamic=False)
        calls: list[Callable[[], Any]] = [
            partial(entry, *positional, **named) for positional, named in bound
        ]
        if not gradients:
            return calls
        return [partial(_stepped, call, owners[i], aside[i][1]) for i, call in enumerate(calls)]


def _cache_headers() -> None:
    """Have Inductor precompile its C++ headers where it keeps what it compiles.

    It would use a folder for temporary files, which ends with this process, and compiling them
    takes longer than all else before a first call on a CPU.
    """
    codecache = importlib.import_module("torch._inductor.codecache")
    folder = os.path.join(codecache.cache_dir(), "precompiled_headers")
    vars(codecache).update(_HEADER_DIR=folder, _HEADER_LOCK_DIR=os.path.join(folder, "locks"))


def _stepped(call: Callable[[], Any], owners: Any, gradients: Any) -> Any:
    """Call what makes an optimizer, and take its steps."""
    return optimizers.stepped(call(), owners, gradients)


def _as_array(argument: binding.Offered) -> binding.Offered:
    if not argument.tensor:
        return argument
    return replace(argument, value=placing.as_numpy(argument.value))
