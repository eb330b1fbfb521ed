"""What the judge asks a child for while calls are timed."""

from __future__ import annotations

from dataclasses import dataclass

from kerneltruth.runner.arguments import ScalarArgument


@dataclass(frozen=True, slots=True, kw_only=True)
class Supply:
    """A tensor argument of timed calls, contiguous: each row holds a window of `pool`.

    Attributes:
        pool: elements; at least as many as the tensor has, or none, which are zeros.
        path: of a file with these elements, in place of `pool`: one that nobody can write to.
        member_of: as in `TensorArgument`.
        fixed: all calls share one copy of the pool's beginning, such as weights.
        shown: whether `ShowResult` reports the row's bytes.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    pool: bytes = b""
    path: str | None = None
    member_of: str | None = None
    fixed: bool = False
    shown: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PrepareInputs:
    """What timed calls take their inputs from; forgets what was in the slot before.

    Attributes:
        arguments: in call order.
        slot: one of several such stocks in one child; later errands name it too.
        flush_bytes: how much memory is read before each batch, at least, to empty the caches.
        compiled: for baselines: the mode in which `torch.compile` compiles the entry.
    """

    arguments: tuple[Supply | ScalarArgument, ...]
    slot: int = 0
    flush_bytes: int = 0
    compiled: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocateBuffers:
    """Make so many rows: memory for the inputs of a call each; that of no rows is given back."""

    count: int
    slot: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FillBuffers:
    """Give rows fresh contents.

    Attributes:
        rows: which ones.
        windows: for each supply that is not fixed, where each row's window begins, in elements.
        scales: likewise, by what each row's elements are multiplied; no numbers mean by 1.
    """

    buffers: tuple[int, ...]
    windows: tuple[tuple[int, ...], ...]
    scales: tuple[tuple[float, ...], ...] = ()
    slot: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotCheck:
    """Look at some calls of the batches that follow, and at some elements of what they give.

    Such a call's inputs are put in place of others right before it, on the device: who computed
    its result beforehand did so from other inputs.

    Attributes:
        rows: of these calls; none ends the sampling.
        sources: for each, the row whose contents it gets.
        elements: how many each output has.
        spots: of each output, which elements are kept, row-major.
    """

    buffers: tuple[int, ...] = ()
    sources: tuple[int, ...] = ()
    elements: tuple[int, ...] = ()
    spots: tuple[tuple[int, ...], ...] = ()
    slot: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureGraphs:
    """Make a CUDA graph of the calls of each group of rows.

    Attributes:
        groups: the rows of each.
        order: in which they are captured.
    """

    groups: tuple[tuple[int, ...], ...]
    order: tuple[int, ...]
    slot: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunBatch:
    """Make calls one after the other, wait for the device, and say how long it took.

    Attributes:
        rows: a call each, in this order; with `graphs` the groups that were captured.
        ahead_s: for which the device is kept busy before, so that the host gets ahead of it.
        hidden: whether rows hold noise meanwhile. Calls are enqueued by then, and on streams that
            do not wait for what comes before they would be done before the batch begins.
    """

    buffers: tuple[int, ...]
    graphs: bool = False
    head_start_s: float = 0.0
    hidden: bool = False
    slot: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowResult:
    """Show what the last call of the last batch gave.

    Attributes:
        sampled: show what was kept of the calls that are sampled, in the order of `SpotCheck.rows`:
            of each output a tensor with a line for each call.
    """

    spot_checks: bool = False
    slot: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CountOperators:
    """Make the call of a row once, not compiled, and count operators (see `runner.operators`)."""

    buffer: int = 0
    slot: int = 0
