"""The child: load one candidate, call it as requested, and report what happened.

It has no task, no reference, no bound and no seed. Whatever the candidate raises is an observation;
only the death of the process is not reported from here.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from kerneltruth.runner import emulation
from kerneltruth.runner.arguments import (
    Argument,
    Data,
    KeptArgument,
    RepeatedArgument,
    ScalarArgument,
)
from kerneltruth.runner.child import (
    binding,
    failures,
    guards,
    kernel_work,
    left_threads,
    offering,
    optimizers,
    placing,
    seeding,
    settings,
)
from kerneltruth.runner.child.entry import CandidateEntry, import_entry
from kerneltruth.runner.child.kept_results import KeptResults
from kerneltruth.runner.child.recorders import Recorders, recorders_for
from kerneltruth.runner.child.shared_memory import SharedMemory, mapped
from kerneltruth.runner.child.timed_candidate import TimedCandidate
from kerneltruth.runner.cuda_driver import DriverError
from kerneltruth.runner.observation import Binary, Observation
from kerneltruth.runner.protocol import Call, Load, Rows, TimedStep, Unload
from kerneltruth.runner.unsupported import MEMORY_LACKS, UnsupportedError


def make_context(device: str) -> None:
    """Start CUDA: most of a fresh child's start-up time, overlapping with the judge's work."""
    if device != "cpu":
        torch.zeros(1, device=device)


class Worker:
    """One candidate in this process."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._device = torch.device(load.device)
        self._entry: CandidateEntry | None = None
        self._compiling = load.mode == "compile"
        self._recorders = Recorders()
        self._timed: TimedCandidate | None = None
        self._memory: SharedMemory | None = None
        self._kept = KeptResults()
        self._settings = settings.settings()
        # Those that the candidate, or what it calls, did not start.
        self._threads = 0

    @property
    def lean(self) -> bool:
        """Return whether anything was built with the lean PyTorch headers."""
        return self._recorders.extensions is not None and bool(self._recorders.extensions.lean())

    def load(self) -> Observation:
        """Import the source and find its entry."""
        start = time.perf_counter()
        try:
            make_context(self._load.device)
            self._recorders = recorders_for(self._load)
        except UnsupportedError as error:
            return failures.failure(error)
        except Exception as error:
            # No code of the candidate has run yet.
            return replace(failures.failure(error), ended="lost")
        self._threads = left_threads.count()
        try:
            self._entry = import_entry(self._load, self._device)
        except BaseException as error:
            seen = failures.failure(error)
            if seen.ended == "raised":
                seen = replace(seen, ended="load_failed")
            return replace(seen, seconds=time.perf_counter() - start)
        self._timed = TimedCandidate(
            self._entry, arrays=self._load.language == "numpy", launches=self._recorders.launches
        )
        return Observation(ended="returned", seconds=time.perf_counter() - start)

    def call(self, call: Call) -> Observation:
        """Call the entry once, between guards."""
        if call.memory is not None:
            if call.memory.descriptor is not None:
                try:
                    mapping = mapped(call.memory.descriptor, call.memory.size, self._device)
                except DriverError as error:
                    return Observation(ended="lost", message=f"cannot map the memory: {error}")
                except OSError as error:
                    # The system refuses only a process that has used up, or lowered, its limits.
                    return failures.failure(MemoryError(f"its process cannot map inputs: {error}"))
                self._memory = SharedMemory(mapping)
            assert self._memory is not None
            self._memory.begin(call.memory.room)
        observation = self._called(call)
        if self._memory is not None:
            # Once nothing here uses results and arguments any more.
            observation = replace(observation, used=self._memory.used())
        if call.free_bytes and self._device.type == "cuda" and not observation.dirty:
            # Other children need the memory.
            torch.cuda.empty_cache()
        return observation

    def _called(self, call: Call) -> Observation:
        start = time.perf_counter()
        inputs: list[placing.PlacedInput] = []
        values: list[Any] = []
        copied = self._memory is None
        guard = self._guard(call)
        seeding.seed(call.draw)
        if self._recorders.launches is not None:
            self._recorders.launches.begin(call.config)
        kernel_work.begin(call.kernels, self._device)
        try:
            with emulation.suspended():
                self._need_memory(call.free_bytes)
                arguments = [self._offered(a, inputs) for a in call.arguments]
                if self._recorders.launches is not None and self._device.type == "cpu":
                    emulation.begin((p.name, p.view) for p in inputs)
                if self._device.type == "cuda":
                    guard.prime_cuda(self._device)
            is_cuda = self._load.language == "cuda"
            with kernel_work.extensions() if is_cuda else contextlib.nullcontext():
                values = self._invoke(arguments, call, guard, inputs)
            # Threads may still write to what the judge would read.
            copied = self._memory is None or left_threads.count() > self._threads
            with emulation.suspended():
                seen = not is_cuda or kernel_work.has_extensions()
                # It looks where kernels have stored.
                work = kernel_work.collect(values, seen=seen)
                reused: tuple[int, ...] = ()
                if self._memory is not None:
                    reused = self._kept.returned_before(values, self._memory)
                    placing.move(values, self._memory)
                    self._synchronize()
                observation = self._observed(values, inputs, call.rows, copied=copied)
                observation = replace(observation, work=work, reused=reused)
        except BaseException as error:
            observation = failures.failure(error)
        kernel_work.end()
        try:
            with emulation.suspended():
                observation = self._completed(observation, inputs, guard, copied=copied)
                observation = replace(observation, threads_left=left_threads.of_python())
                if (
                    copied
                    and observation.ended == "returned"
                    and left_threads.waited(self._threads)
                ):
                    observation = self._reread(observation, values, inputs, call.rows)
                    self._threads = max(self._threads, left_threads.count())
        except BaseException as error:
            observation = failures.failure(error)
        return replace(observation, seconds=time.perf_counter() - start)

    def _guard(self, call: Call) -> guards.Guard:
        return guards.Guard(
            call.poison,
            small_poison=call.small_poison,
            small_guards=call.small_guards,
            memory=self._memory,
            observe=kernel_work.operator if call.kernels != "run" else None,
        )

    def _reread(
        self,
        observation: Observation,
        values: Sequence[Any],
        inputs: list[placing.PlacedInput],
        rows: Rows | None,
    ) -> Observation:
        """Add what has changed since the observation was made."""
        results = self._observed(values, inputs, rows, copied=True).results
        buffers = {
            p.name: placing.raw_bytes(p.buffer) for p in inputs if p.name in observation.buffers
        }
        changed = [name for name, data in buffers.items() if data != observation.buffers[name]]
        differs = results != observation.results
        return replace(observation, inputs_changed=tuple(changed), results_changed=differs)

    def time(self, message: TimedStep | Unload) -> Observation:
        """Do one step for a timed candidate."""
        start = time.perf_counter()
        try:
            observation = self._step(message)
        except BaseException as error:
            observation = failures.failure(error)
        return replace(observation, seconds=time.perf_counter() - start)

    def _step(self, message: TimedStep | Unload) -> Observation:
        if isinstance(message, Unload):
            self.leave()
            return Observation(ended="returned")
        return self.timed.do(message)

    @property
    def timed(self) -> TimedCandidate:
        """Return the candidate as it is timed."""
        assert self._timed is not None
        return self._timed

    def leave(self) -> None:
        """Release all that the entry holds, and restore PyTorch's settings."""
        if self._timed is not None:
            self._timed.leave()
        self._entry = self._timed = None
        _forget_compiled()
        settings.restore(self._settings)
        # The process began with the garbage collector off.
        gc.collect()
        if self._device.type == "cuda":
            torch.cuda.empty_cache()

    def _offered(self, argument: Argument, inputs: list[placing.PlacedInput]) -> binding.Offered:
        if isinstance(argument, ScalarArgument):
            return offering.offered_scalar(argument)
        if isinstance(argument, KeptArgument):
            assert self._memory is not None
            placed = placing.place_kept(argument, self._memory)
        elif isinstance(argument, RepeatedArgument):
            placed = placing.place_repeated(argument, self._device)
        else:
            placed = placing.place(argument, self._device)
        inputs.append(placed)
        as_array = self._load.language == "numpy"
        value = placing.as_numpy(placed.view) if as_array else placed.view
        return binding.Offered(
            name=argument.name, value=value, tensor=True, member_of=argument.member_of
        )

    def _invoke(
        self,
        arguments: Sequence[binding.Offered],
        call: Call,
        guard: guards.Guard,
        inputs: Sequence[placing.PlacedInput],
    ) -> list[Any]:
        """Call the entry and flatten its result, while the guards are up."""
        arguments, gradients = optimizers.set_aside(arguments)
        owners = optimizers.parameters(arguments, gradients)
        arguments = [_requiring(a) if a.name in call.gradients_of else a for a in arguments]
        leaves = [a.value for a in arguments if a.name in call.gradients_of]
        entry, ((positional, named),) = self._loaded.bound(
            [arguments], as_it_is=bool(gradients), reused=call.reused
        )
        if call.reused:
            seeding.seed(call.draw)
        poisoned = guards.numpy_poisoned(call.poison, small=call.small_poison)
        with poisoned if self._load.language == "numpy" else contextlib.nullcontext(), guard:
            if call.earlier:
                self._call_earlier(partial(entry, *positional, **named), call, inputs)
            returned = entry(*positional, **named)
            if gradients:
                returned = optimizers.stepped(returned, owners, gradients)
            values = placing.leaves(returned)
            if leaves:
                values = _gradients(values, leaves)
        self._synchronize()
        return values

    def _call_earlier(
        self, entry: Callable[[], Any], call: Call, inputs: Sequence[placing.PlacedInput]
    ) -> None:
        """Call the entry with other contents in the same memory; restore what it holds."""
        changing = {name for contents in call.earlier for name in contents.buffers}
        own = {p.name: placing.raw_bytes(p.buffer) for p in inputs if p.name in changing}
        for contents in call.earlier:
            self._rewrite(inputs, own | contents.buffers, in_sight=call.in_sight)
            with contextlib.suppress(Exception):
                entry()
        self._rewrite(inputs, own, in_sight=call.in_sight)

    def _rewrite(
        self, inputs: Sequence[placing.PlacedInput], buffers: Mapping[str, Data], *, in_sight: bool
    ) -> None:
        self._synchronize()
        with emulation.suspended():
            placing.rewrite(inputs, buffers, in_sight=in_sight)

    def _synchronize(self) -> None:
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)

    @property
    def _loaded(self) -> CandidateEntry:
        assert self._entry is not None
        return self._entry

    def _need_memory(self, size: int) -> None:
        if not size or self._device.type != "cuda":
            return
        torch.cuda.empty_cache()
        free, _ = torch.cuda.mem_get_info(self._device)
        if free < size:
            raise UnsupportedError(f"{MEMORY_LACKS}: {_gib(size)} for {_gib(free)} that are free")

    def _observed(
        self,
        values: Sequence[Any],
        inputs: list[placing.PlacedInput],
        rows: Rows | None,
        *,
        copied: bool,
    ) -> Observation:
        if self._compiling:
            return Observation(ended="returned")
        if rows is not None:
            return Observation(ended="returned", results=placing.collect_rows(values, rows))
        arrays = self._load.language == "numpy"
        results = placing.collect(values, inputs, arrays=arrays, memory=self._memory, copied=copied)
        return Observation(ended="returned", results=results)

    def _completed(
        self,
        observation: Observation,
        inputs: list[placing.PlacedInput],
        guard: guards.Guard,
        *,
        copied: bool,
    ) -> Observation:
        """Add observations from memory and recorders, unless the device cannot be read any more."""
        if self._recorders.launches is not None:
            observation = replace(observation, launches=tuple(self._recorders.launches.collect()))
        if self._recorders.compiling is not None:
            return _compiled(observation, tuple(self._recorders.compiling.collect()))
        if observation.dirty:
            return observation
        return replace(
            observation,
            buffers={p.name: placing.raw_bytes(p.buffer) for p in inputs if p.shown and copied},
            guards_hit=guard.hits(),
            allocations=tuple(guard.shared),
            accesses=emulation.collect(),
        )


def _forget_compiled() -> None:
    """Make `torch.compile` drop everything it keeps in memory."""
    if "torch._dynamo" in sys.modules:
        sys.modules["torch._dynamo"].reset()
    if "torch._inductor.codecache" in sys.modules:
        made = sys.modules["torch._inductor.codecache"].PyCodeCache
        for module in made.modules:
            sys.modules.pop(module.__name__, None)
        made.cache_clear()


def _gib(size: int) -> str:
    return f"{size / 2**30:.1f} GiB"


def _requiring(argument: binding.Offered) -> binding.Offered:
    return replace(argument, value=argument.value.detach().requires_grad_())


def _gradients(values: list[Any], inputs: Sequence[torch.Tensor]) -> list[Any]:
    module = importlib.import_module("kerneltruth.runner.gradients")
    if not values or not isinstance(values[0], torch.Tensor):
        return values
    found: list[Any] = module.gradients(values[0], inputs)
    return found


def _compiled(observation: Observation, binaries: tuple[Binary, ...]) -> Observation:
    """Return how compiling ended: a refused kernel outweighs host errors on unwritten outputs."""
    refused = next((b for b in binaries if not b.ok), None)
    if refused is not None:
        observation = replace(
            observation, ended="compile_failed", error="CompilationError", message=refused.error
        )
    return replace(observation, binaries=binaries)
