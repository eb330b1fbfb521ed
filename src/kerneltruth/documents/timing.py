"""Times of a call, a shape, a candidate; `time --json` and the perf stage of a run."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, UnsetType

from kerneltruth import __version__
from kerneltruth.documents.case import Case
from kerneltruth.documents.model import Model, Number, Stored
from kerneltruth.documents.records import BinaryRecord, CandidateRef
from kerneltruth.documents.stored import Environment

TimeOutcome = Literal["timed", "timing_suspect", "wrong", "failed", "unsupported_here"]
PerfOutcome = Literal[
    "timed", "timing_suspect", "wrong", "failed", "unsupported_here", "not_run", "infra"
]
Regime = Literal["memory", "compute", "launch", "latency"]


class GradedCalls(Model, frozen=True, kw_only=True):
    """Compared results of timed calls: how many, and what is wrong with them."""

    calls: int
    wrong: tuple[str, ...]
    not_graded: str | None


class Remark(Model, frozen=True, kw_only=True):
    """One observation.

    Attributes:
        kind: a word for programs.
        text: a sentence for people.
        kernel: which kernel; None for the call as a whole.
    """

    kind: str
    text: str
    kernel: str | None = None


class Advice(Model, frozen=True, kw_only=True):
    """What bounds a call, with the numbers.

    Attributes:
        bound_by: see `work.regime`.
        seconds: of the call.
        floor_s: the least it could take.
        efficiency: floor over time.
        bytes_per_s: the floor's bytes over the time.
        flops_per_s: the floor's operations over the time.
        memory_share: of the measured copy rate.
        compute_share: of the rate of the floor's format; None without one.
        launch_share: of the time that launching takes; None where it was not measured.
        remarks: the conclusions, most telling first.
    """

    bound_by: Regime
    seconds: Number
    floor_s: Number
    efficiency: Number
    bytes_per_s: Number
    flops_per_s: Number
    memory_share: Number
    compute_share: Number | None
    launch_share: Number | None
    remarks: tuple[Remark, ...]


class ConditionsRecord(Model, frozen=True, kw_only=True):
    """A device while something was timed; clocks as lowest and highest."""

    readings: int
    sm_clock_mhz: tuple[int, int] | None
    memory_clock_mhz: tuple[int, int] | None
    temperature_c: int | None
    power_w: Number | None
    throttle: tuple[str, ...]
    others: int


class BaselineTime(Model, frozen=True, kw_only=True):
    """One baseline on one shape; `ratio` is its time over the candidate's."""

    us: Number
    warm_us: Number | None
    ratio: Number
    low: Number
    high: Number
    outcome: Literal["faster", "tie", "slower"]
    efficiency: Number | None
    launches: int | None
    remark: str | None


class AloneTimes(Model, frozen=True, kw_only=True):
    """Baselines that were beaten, timed once more when the candidate was gone."""

    us: dict[str, Number]
    conditions: ConditionsRecord | None


class CallEnergy(Model, frozen=True, kw_only=True):
    """Energy of a side's calls, as the device's counter shows it around long batches.

    Attributes:
        joules: of a call, with the idle device's part; null where it is not reported.
        watts: mean power during these batches; likewise.
        laps: joules of a call in each batch.
        calls: of each batch.
        seconds: of all batches, by the judge's clock.
        reason: why the energy is not reported.
    """

    joules: Number | None
    watts: Number | None
    laps: tuple[Number, ...]
    calls: int
    seconds: Number
    reason: str | None


class ShapeEnergy(Model, frozen=True, kw_only=True):
    """Energy of the calls on a shape.

    Attributes:
        idle_watts: of the device before the batches, while no side ran; null where it is not read.
        sides: of `candidate` and of each baseline, by name.
        reason: why nothing was read.
    """

    idle_watts: Number | None
    sides: dict[str, CallEnergy]
    reason: str | None


class ShapeTimes(Model, frozen=True, kw_only=True):
    """The candidate on one shape; bytes and operations are known if the device was measured.

    Attributes:
        strides: of tensors that lie as in the example, not contiguous; by name.
        energy: of the calls; absent where nobody asked.
    """

    case: Case
    summary: str
    strides: dict[str, tuple[int, ...]] | UnsetType = UNSET
    candidate_us: Number
    candidate_low: Number
    candidate_high: Number
    method: Literal["graph", "calls"]
    regime: Literal["cold", "cpu"]
    warm_us: Number | None
    blocks: int
    noise_floor: Number
    baselines: dict[str, BaselineTime]
    baselines_failed: dict[str, str]
    efficiency: Number | None
    floor_us: Number | None
    bound_by: Regime | None
    bytes: int | UnsetType = UNSET
    flops: Number | UnsetType = UNSET
    advice: Advice | None
    graded: GradedCalls
    not_captured: str | None
    kernels: dict[str, tuple[BinaryRecord, ...]]
    repeated: tuple[str, ...]
    conditions: ConditionsRecord | None
    flags: tuple[str, ...]
    alone: AloneTimes | UnsetType = UNSET
    energy: ShapeEnergy | UnsetType = UNSET


class KernelTime(Model, frozen=True, kw_only=True):
    """A kernel's part in a call: `us` is the device's time of all its launches."""

    name: str
    own: bool
    launches: int
    us: Number


class DeviceShare(Model, frozen=True, kw_only=True):
    """Device time of own and library kernels in a call, by CUPTI's activity records.

    Attributes:
        case: that was called, in words.
        own: the share of kernels that the candidate's source brings; null where they are not told
            from others, or where nothing ran.
        library: the other share.
        kernels: those with most of the time first.
        reason: why the shares are not known.
    """

    case: str
    own: Number | None
    library: Number | None
    kernels: tuple[KernelTime, ...]
    reason: str | None


class CandidateTimes(Stored, frozen=True, kw_only=True):
    """A candidate on all shapes of its task: the perf stage; `detail` says why it is not timed.

    Attributes:
        kernel: whose kernels take the device's time; absent where nobody looked.
    """

    outcome: PerfOutcome
    shapes: tuple[ShapeTimes, ...] | UnsetType = UNSET
    import_s: Number | UnsetType | None = UNSET
    first_call_s: Number | UnsetType = UNSET
    compile_s: Number | UnsetType = UNSET
    launch_us: Number | UnsetType | None = UNSET
    detail: str | UnsetType = UNSET
    ready_s: Number | UnsetType = UNSET
    ready: dict[str, Number] | UnsetType = UNSET
    not_timed: tuple[str, ...] | UnsetType = UNSET
    noise_floor: Number | UnsetType = UNSET
    peak_bytes: int | UnsetType = UNSET
    baseline_peak_bytes: dict[str, int] | UnsetType = UNSET
    device_s: Number | UnsetType = UNSET
    spent: dict[str, Number] | UnsetType = UNSET
    seconds: Number | UnsetType = UNSET
    kernel: DeviceShare | UnsetType = UNSET


class ProfiledKernel(Model, frozen=True, kw_only=True):
    """One launch as Nsight Compute saw it."""

    kernel: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    metrics: dict[str, Number]
    bound_by: Literal["memory", "compute", "latency"] | None
    remarks: tuple[str, ...]


class TimeDocument(Model, frozen=True, kw_only=True):
    """`time --json`: `CandidateTimes`, with what was timed, where and when.

    Attributes:
        started: in ISO 8601 and UTC.
        kernel: whose kernels take the device's time; null where nobody looked, as on a CPU.
    """

    schema: Literal[1] = 1
    task: str
    device: str
    candidate: CandidateRef
    torch_only: bool
    outcome: TimeOutcome
    shapes: tuple[ShapeTimes, ...]
    import_s: Number | UnsetType | None = UNSET
    first_call_s: Number | UnsetType = UNSET
    compile_s: Number | UnsetType = UNSET
    launch_us: Number | UnsetType | None = UNSET
    detail: str | UnsetType = UNSET
    ready_s: Number
    ready: dict[str, Number]
    not_timed: tuple[str, ...]
    noise_floor: Number
    peak_bytes: int
    baseline_peak_bytes: dict[str, int]
    device_s: Number | UnsetType = UNSET
    spent: dict[str, Number] | UnsetType = UNSET
    seconds: Number
    profile: tuple[ProfiledKernel, ...] | UnsetType = UNSET
    kernel: DeviceShare | None = None
    environment: Environment
    started: str
    version: str = __version__
