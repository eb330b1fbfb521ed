"""Messages that cross the wall between judge and child; `wire` turns them into bytes.

The judge sends `Load` and then `Call` and `Rehearse`, or, to a timed child, the messages of
`timing.messages`. The child answers each with an `Observation`, which holds claims: the judge
checks what it can.

Both sides share this module, so it knows nothing of tasks, cases or bounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypedDict

from kerneltruth.runner.arguments import Argument, Data, ScalarArgument
from kerneltruth.runner.observation import Observation
from kerneltruth.runner.timing.messages import (
    AllocateBuffers,
    CaptureGraphs,
    CountOperators,
    FillBuffers,
    PrepareInputs,
    RunBatch,
    ShowResult,
    SpotCheck,
    Supply,
)

# How the candidate's own kernels run in a call: normally; counted with all other work; or counted
# without doing anything.
Kernels = Literal["run", "count", "idle"]


class ProtocolError(Exception):
    """The other side sent something that is not a message of this protocol."""


class TooLarge(ProtocolError):
    """The contents of a message take more bytes than its reader allows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepare:
    """Create the device's context, and what batches need there, before anything is loaded."""

    device: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Load the candidate: source text, its language, and the entry to call.

    `mode` is "run" (really run), "compile" (compile every launch for `targets`, run nothing) or
    "time" (run as on any machine: Triton's own autotuner, nothing recorded, nothing guarded).
    `kit` is a folder of `extension_kit` with precompiled headers; None builds as PyTorch does.
    `pretrained` offers small models in place of pretrained ones, which the candidate loads by name.
    """

    source: str
    filename: str
    language: str
    entry: str
    device: str
    mode: str = "run"
    targets: tuple[str, ...] = ()
    kit: str | None = None
    pretrained: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Ranges of rows of a result that is too large to be sent.

    Attributes:
        total: how many rows the result must have.
        starts: the first row of each range.
        counts: how many rows each range has.
    """

    total: int
    starts: tuple[int, ...]
    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CallMemory:
    """The judge's memory that a call uses.

    Attributes:
        size: of the whole.
        room: ranges for what the candidate allocates: where each begins and ends.
        descriptor: leads to it, and comes with the message; None where the child has it.
    """

    size: int
    room: tuple[int, ...]
    descriptor: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierContents:
    """What some inputs hold in a call before the one that is observed: whole buffers by name."""

    buffers: dict[str, Data]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """Call the entry once, or more often in the same memory.

    Attributes:
        poison: 16 bytes from which memory that the candidate allocates uninitialized is filled.
        small_poison: whether small finite numbers fill it.
        small_guards: whether such numbers surround what the candidate allocates.
        config: which configuration autotuned kernels take, modulo their number.
        draw: the seed of random generators.
        reused: whether a model is called with other values first.
        gradients_of: inputs whose gradients replace the result.
        earlier: of calls before, with the same tensors, whose results are dropped.
        in_sight: whether tensors' versions tell of these changes, as they do in PyTorch.
        kernels: see `Kernels`.
        rows: which rows of each result are reported; None means all.
        free_bytes: memory of the device that must be free; otherwise the call is `unsupported`.
        memory: where its arguments lie, and what it allocates; None where the judge keeps none.
    """

    arguments: tuple[Argument, ...]
    poison: bytes
    small_poison: bool = False
    small_guards: bool = False
    config: int = 0
    draw: int = 0
    reused: bool = False
    gradients_of: tuple[str, ...] = ()
    earlier: tuple[EarlierContents, ...] = ()
    in_sight: bool = False
    kernels: Kernels = "run"
    rows: Rows | None = None
    free_bytes: int = 0
    memory: CallMemory | None = None


class CallSettings(TypedDict, total=False):
    """Fields of a `Call` that may be omitted."""

    small_poison: bool
    small_guards: bool
    config: int
    draw: int
    reused: bool
    gradients_of: tuple[str, ...]
    earlier: tuple[EarlierContents, ...]
    in_sight: bool
    kernels: Kernels
    rows: Rows | None
    free_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearse:
    """Call the entry once so that it compiles; only its launches are reported.

    Attributes:
        config: as in `Call`.
        spare: skip the call if less than this share of the device's memory is free.
        device_time: whether to call it again and record the device's time of each kernel.
    """

    arguments: tuple[Supply | ScalarArgument, ...]
    config: int = 0
    spare: float = 0.0
    device_time: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """Name the Triton kernels that have been compiled so far, with their static facts."""

    slot: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Unload:
    """Release all that a timed entry holds, and restore PyTorch's settings.

    Another entry is loaded next.
    """


# What a candidate that is timed does.
TimedStep = (
    Rehearse
    | PrepareInputs
    | AllocateBuffers
    | FillBuffers
    | SpotCheck
    | CaptureGraphs
    | RunBatch
    | ShowResult
    | Loaded
    | CountOperators
)
ChildMessage = Call | TimedStep | Unload


WireMessage = Prepare | Load | ChildMessage | Observation
