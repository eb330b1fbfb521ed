"""Define the judge's messages to a child while calls are timed."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from kerneltruth.runner.arguments import ScalarArgument


@dataclass(frozen=True, slots=True, kw_only=True)
class Supply:
    """A tensor argument of timed calls: each row holds a window of `pool`.

    Attributes:
        pool: elements; at least as many as a window has, or none, which are zeros.
        path: of a file with these elements, in place of `pool`: no process can write to it.
        member_of: as in `TensorArgument`.
        fixed: all calls share one copy of the pool's beginning, such as weights.
        shown: whether `ShowResult` reports the row's bytes.
        strides: of the tensor over the window; none where it is contiguous.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    pool: bytes = b""
    path: str | None = None
    member_of: str | None = None
    fixed: bool = False
    shown: bool = False
    strides: tuple[int, ...] = ()

    @property
    def span(self) -> int:
        """Return how many elements a window has, gaps among them."""
        if not self.strides or 0 in self.shape:
            return prod(self.shape)
        return 1 + sum((n - 1) * s for n, s in zip(self.shape, self.strides, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class PrepareInputs:
    """Supplies that timed calls take their inputs from; replaces the slot's earlier supplies.

    Attributes:
        slot: one of several such stocks in one child; later messages name it too.
        flush_bytes: how much memory is read before each batch, at least, to empty the caches.
        compiled: for baselines: the mode in which `torch.compile` compiles the entry.
    """

    arguments: tuple[Supply | ScalarArgument, ...]
    slot: int = 0
    flush_bytes: int = 0
    compiled: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocateBuffers:
    """Allocate `count` input buffers, one for each call; release all memory if it is 0."""

    count: int
    slot: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FillBuffers:
    """Give rows fresh contents.

    Attributes:
        windows: for each supply that is not fixed, where each row's window begins, in elements.
        scales: likewise, by what each row's elements are multiplied; no numbers mean by 1.
    """

    buffers: tuple[int, ...]
    windows: tuple[tuple[int, ...], ...]
    scales: tuple[tuple[float, ...], ...] = ()
    slot: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotCheck:
    """Check some calls of the following batches, and some elements of their results.

    Such a call's inputs replace others right before it, on the device: a result computed ahead of
    time has used other inputs.

    Attributes:
        buffers: of these calls; none ends the checks.
        sources: for each, the buffer whose contents it gets.
        elements: how many each output has.
        spots: for each output, which elements are kept, row-major.
    """

    buffers: tuple[int, ...] = ()
    sources: tuple[int, ...] = ()
    elements: tuple[int, ...] = ()
    spots: tuple[tuple[int, ...], ...] = ()
    slot: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureGraphs:
    """Make a CUDA graph of the calls of each group of rows."""

    groups: tuple[tuple[int, ...], ...]
    order: tuple[int, ...]
    slot: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunBatch:
    """Make calls one after the other, wait for the device, and report the time.

    Attributes:
        buffers: one for each call, in this order; with `graphs` the captured groups.
        head_start_s: how long the device is kept busy before, so that the host gets ahead of it.
        hidden: whether buffers hold noise during that time. Calls are enqueued by then; calls on
            streams that do not wait would finish before the batch begins.
    """

    buffers: tuple[int, ...]
    graphs: bool = False
    head_start_s: float = 0.0
    hidden: bool = False
    slot: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowResult:
    """Asks for the result of the last batch's last call.

    Attributes:
        spot_checks: return what was kept of the checked calls, in the order of
            `SpotCheck.buffers`: for each output a tensor with a line for each call.
    """

    spot_checks: bool = False
    slot: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CountOperators:
    """Make the call of a row once, not compiled, and count operators (see `child.operators`)."""

    buffer: int = 0
    slot: int = 0
