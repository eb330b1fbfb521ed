"""Time calls in the child: input buffers, batches over them, and the last call's result.

The judge chooses the buffers of a batch and their contents; each call of a batch finds inputs in
its own memory with contents that no earlier call saw. Times taken here are claims, which the judge
checks against its own clock.

This module looks up the operators that fill buffers and flush caches before a candidate loads and
could replace them.
"""

from __future__ import annotations

import contextlib
import ctypes
import time
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch

from kerneltruth.runner.arguments import ScalarArgument
from kerneltruth.runner.child import placing
from kerneltruth.runner.child.binding import Offered
from kerneltruth.runner.child.offering import offered_scalar, offered_tensor
from kerneltruth.runner.observation import Observation
from kerneltruth.runner.protocol import TimedStep
from kerneltruth.runner.timing.input_buffers import InputBuffers, pooled
from kerneltruth.runner.timing.messages import (
    AllocateBuffers,
    CaptureGraphs,
    FillBuffers,
    PrepareInputs,
    RunBatch,
    ShowResult,
    SpotCheck,
    Supply,
)
from kerneltruth.runner.timing.spot_checks import SpotRecorder, unwatched

Caller = Callable[[], Any]
# From the arguments of each buffer to the calls: the entry is built once.
MakeCalls = Callable[[Sequence[Sequence[Offered]]], list[Caller]]
# cudaLimitPersistingL2CacheSize of cudaDeviceSetLimit.
_PERSISTING_L2 = 0x06
_sum = torch.ops.aten.sum.default
_clone = torch.ops.aten.clone.default
# Device cycles per second, as many as any device has.
_CYCLES = 2e9
_sleep = torch.cuda._sleep
# More than one result stays alive, so that results use several places in turn.
_KEPT_RESULTS = 8
_KEPT_BYTES = 2**29
_Event = torch.cuda.Event
_record, _elapsed = torch.cuda.Event.record, torch.cuda.Event.elapsed_time
_synchronize = torch._C._cuda_synchronize if hasattr(torch._C, "_cuda_synchronize") else None
_perf_counter = time.perf_counter


@dataclass(slots=True)
class _Graphs:
    """Captured groups of calls, with the buffer and the result of each group's last call."""

    pool: Any
    made: list[tuple[Any, int, Any]] = field(default_factory=list)


class TimedWorker:
    """Input buffers for one entry, and batches over them."""

    def __init__(
        self,
        stock: PrepareInputs,
        device: torch.device,
        ready: MakeCalls,
        *,
        cuda: Any = torch.cuda,
        unwatched: Callable[[], contextlib.AbstractContextManager[Any]] = unwatched,
        keep_busy: Callable[[float], None] | None = None,
    ) -> None:
        """Hold the inputs.

        `cuda` captures graphs, `unwatched` switches dispatch modes off, and `keep_busy` gives the
        device work for some seconds; a CPU gets none.
        """
        self._cuda, self._unwatched = cuda, unwatched
        self._stock = stock
        self._device = device
        self._ready = ready
        self._on_gpu = device.type == "cuda"
        self._keep_busy = keep_busy or (_sleeps if self._on_gpu else _goes_on)
        self._held = [self._hold(a) for a in stock.arguments if isinstance(a, Supply)]
        self._flush = _flushed(self._flush_words(), device)
        self.calls: list[Caller] = []
        self._graphs: _Graphs | None = None
        self._recorder: SpotRecorder | None = None
        self._row = 0
        self._kept = 1
        self._last: Any = None
        self._snapshot: Any = None

    def do(self, message: TimedStep) -> Observation:
        """Execute one message, and return the observation."""
        timings: dict[str, float] = {}
        match message:
            case AllocateBuffers(count=count):
                self.buffers(count)
            case FillBuffers(buffers=buffers, windows=windows, scales=scales):
                self.refill(buffers, windows, scales)
            case SpotCheck():
                self.spot_check(message)
            case CaptureGraphs(groups=groups, order=order):
                self.capture(groups, order)
            case RunBatch():
                timings = self.batch(message)
            case ShowResult(spot_checks=True):
                kept = self._recorder.results() if self._recorder is not None else ()
                return Observation(ended="returned", results=kept)
            case _:
                return self.show()
        return Observation(ended="returned", timings=timings)

    def _hold(self, supply: Supply) -> InputBuffers:
        return InputBuffers(supply=supply, pool=pooled(supply, self._device))

    def _flush_words(self) -> int:
        """Allocate as much memory as the judge requests, and at least twice the L2 cache."""
        if not (self._stock.flush_bytes and self._on_gpu):
            return self._stock.flush_bytes // 8
        cache = torch.cuda.get_device_properties(self._device).L2_cache_size
        return max(self._stock.flush_bytes, 2 * cache) // 8

    def buffers(self, count: int) -> None:
        """Allocate buffers, without contents, and prepare their calls; for none, free memory."""
        self.calls, self._graphs, self._recorder = [], None, None
        self._last = self._snapshot = None
        for held in self._held:
            held.make(count)
        if not count:
            if self._on_gpu:
                torch.cuda.empty_cache()
            return
        self.calls = self._ready([self.offered(buffer) for buffer in range(count)])

    def offered(self, buffer: int) -> list[Offered]:
        """Return the arguments of a buffer's call."""
        held = iter(self._held)
        offered = []
        for a in self._stock.arguments:
            if isinstance(a, ScalarArgument):
                offered.append(offered_scalar(a))
            else:
                offered.append(offered_tensor(a, next(held).buffer(buffer)))
        return offered

    def refill(
        self,
        buffers: Sequence[int],
        windows: Sequence[Sequence[int]],
        scales: Sequence[Sequence[float]],
    ) -> None:
        """Fill buffers with fresh contents."""
        moving = [h for h in self._held if not h.supply.fixed]
        # A call may have requested a buffer's gradient.
        with torch.no_grad():
            for i, held in enumerate(moving):
                held.refill(buffers, windows[i], scales[i] if scales else ())
        if self._on_gpu:
            _no_persisting_lines()
        self._wait()

    def _flip(self) -> None:
        """Turn the buffers' contents into noise, or back."""
        with self._unwatched():
            for held in self._held:
                held.flip()

    def spot_check(self, request: SpotCheck) -> None:
        """Check these calls from now on; their results have the form of the last one."""
        with self._unwatched():
            self._recorder = SpotRecorder(request, self._last) if request.buffers else None

    def _call(self, buffer: int) -> Caller:
        spot_checks = self._recorder is not None and buffer in self._recorder.sources
        return partial(self._spot_checked, buffer) if spot_checks else self.calls[buffer]

    def _spot_checked(self, buffer: int) -> Any:
        assert self._recorder is not None
        with self._unwatched():
            for held in self._held:
                held.put(buffer, self._recorder.sources[buffer])
        result = self.calls[buffer]()
        with self._unwatched():
            self._recorder.keep(buffer, result)
        return result

    def capture(self, groups: Sequence[Sequence[int]], order: Sequence[int]) -> None:
        """Capture a CUDA graph of each group of calls."""
        graphs = _Graphs(pool=self._cuda.graph_pool_handle())
        made: dict[int, tuple[Any, int, Any]] = {}
        self._wait()
        stream = self._cuda.Stream(self._device)
        with self._cuda.stream(stream):
            for index in order:
                buffers = groups[index]
                calls = [self._call(buffer) for buffer in buffers]
                graph = self._cuda.CUDAGraph()
                graph.capture_begin(pool=graphs.pool, capture_error_mode="thread_local")
                try:
                    last = self._called(calls)
                finally:
                    graph.capture_end()
                made[index] = graph, buffers[-1], last
        graphs.made = [made[index] for index in range(len(groups))]
        self._wait()
        self._graphs = graphs

    def batch(self, request: RunBatch) -> dict[str, float]:
        """Make the calls, and report their times."""
        buffers, graphs = request.buffers, request.graphs
        # Before the clock starts: otherwise a result of the last batch would be freed within this
        # one.
        self._last = self._snapshot = None
        if graphs:
            assert self._graphs is not None
            made = [self._graphs.made[i] for i in buffers]
            calls = [graph.replay for graph, _, _ in made]
            self._row = made[-1][1]
        else:
            calls = [self._call(buffer) for buffer in buffers]
            self._row = buffers[-1]
        if request.hidden:
            self._flip()
            # Work enqueued from here on sees scrambled inputs.
            self._wait()
        if request.head_start_s > 0:
            self._keep_busy(request.head_start_s)
        if request.hidden:
            # Calls on an unsynchronized stream have read noise.
            self._flip()
        # Reading leaves no dirty cache lines that a call would first have to write back.
        _sum(self._flush)
        timings, last = self._timed(calls) if self._on_gpu else self._timed_on_cpu(calls)
        self._last = made[-1][2] if graphs else last
        # At once: what another thread or stream has not written yet stays unwritten here.
        with self._unwatched():
            self._snapshot = [_copied(value) for value in placing.leaves(self._last)]
        self._wait()
        return timings

    def _called(self, calls: Sequence[Caller]) -> Any:
        """Make calls, keep some results alive, and return the last result."""
        kept: deque[Any] = deque(maxlen=self._kept)
        for call in calls:
            kept.append(call())
        return kept[-1]

    def _timed(self, calls: Sequence[Caller]) -> tuple[dict[str, float], Any]:
        alone = len(calls) == 1
        if alone:
            base = torch.cuda.memory_allocated(self._device)
            torch.cuda.reset_peak_memory_stats(self._device)
        before, after = (_Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        began = _perf_counter()
        _record(before)
        last = self._called(calls)
        _record(after)
        host = _perf_counter() - began
        self._wait()
        timings = {"device_s": _elapsed(before, after) / 1000, "host_s": host}
        if alone:
            peak = torch.cuda.max_memory_allocated(self._device) - base
            timings["peak_bytes"] = float(peak)
            self._kept = max(1, min(_KEPT_RESULTS, _KEPT_BYTES // max(peak, 1)))
        return timings, last

    def _timed_on_cpu(self, calls: Sequence[Caller]) -> tuple[dict[str, float], Any]:
        began = _perf_counter()
        last = self._called(calls)
        host = _perf_counter() - began
        return {"device_s": host, "host_s": host}, last

    def show(self) -> Observation:
        """Return the last result of the last batch."""
        inputs = [
            placing.PlacedInput(
                name=h.supply.name,
                view=h.buffer(self._row),
                buffer=h.memory(self._row).view(torch.uint8),
            )
            for h in self._held
            if h.count
        ]
        results = placing.collect(self._snapshot, [], arrays=True)
        shared = placing.aliases(placing.leaves(self._last), inputs)
        return Observation(
            ended="returned",
            results=tuple(placing.with_alias(r, a) for r, a in zip(results, shared, strict=True)),
            buffers={
                h.supply.name: placing.raw_bytes(h.buffer(self._row))
                for h in self._held
                if h.supply.shown
            },
        )

    def _wait(self) -> None:
        if self._on_gpu and _synchronize is not None:
            _synchronize()


def _sleeps(seconds: float) -> None:
    _sleep(int(seconds * _CYCLES))  # type: ignore[no-untyped-call]


def _goes_on(seconds: float) -> None:
    del seconds


# The memory that empties the caches; all timed workers of a process share it while any uses it,
# because a device holds that of many processes.
_FLUSHES: weakref.WeakValueDictionary[Any, torch.Tensor] = weakref.WeakValueDictionary()


def _flushed(words: int, device: torch.device) -> torch.Tensor:
    """Return memory that a batch reads before its calls."""
    found = _FLUSHES.get((words, device))
    if found is None:
        found = torch.zeros(words, dtype=torch.int64, device=device)
        _FLUSHES[words, device] = found
    return found


def _copied(value: Any) -> Any:
    """Return a copy of a tensor, and anything else as it is."""
    tensor = placing.plain(value)
    return value if tensor is None else _clone(tensor)


def _no_persisting_lines() -> None:
    """Reserve no part of the L2 cache, whose lines a flush would not evict."""
    library = _runtime_library()
    if library is not None:
        library.cudaDeviceSetLimit(_PERSISTING_L2, ctypes.c_size_t(0))
        library.cudaCtxResetPersistingL2Cache()


_LIBRARY: list[Any] = []


def _runtime_library() -> Any:
    """Return the CUDA runtime that torch has loaded, if it can be found."""
    if not _LIBRARY:
        found = None
        major = (torch.version.cuda or "12").partition(".")[0]
        for name in (f"libcudart.so.{major}", "libcudart.so"):
            with contextlib.suppress(OSError):
                found = ctypes.CDLL(name)
                break
        _LIBRARY.append(found)
    return _LIBRARY[0]
