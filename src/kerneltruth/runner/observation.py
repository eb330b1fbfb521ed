"""What the child observes of a call: claims until the judge has checked them."""

from __future__ import annotations

from dataclasses import dataclass, field

from kerneltruth.runner.arguments import Data

ITEMSIZE = {
    "complex128": 16,
    "complex64": 8,
    "float64": 8,
    "float32": 4,
    "float16": 2,
    "bfloat16": 2,
    "float8_e4m3fn": 1,
    "float8_e5m2": 1,
    "int64": 8,
    "int32": 4,
    "int16": 2,
    "int8": 1,
    "uint8": 1,
    "bool": 1,
}

_PLAIN = ("bool", "complex", "dict", "float", "function", "int", "list", "str", "tuple")


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorResult:
    """An output: logical elements in row-major order, and the tensor's memory layout.

    A dtype that is not in `ITEMSIZE` (complex32, say) travels without data: its name is enough for
    the judge to refuse it. `alias` names the input whose memory it shares, if any. `place`: where
    in the judge's memory its first element lies, if it does; the judge then reads it there, unless
    threads are left that may still write to it.
    """

    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    device: str
    data: Data
    alias: str | None = None
    place: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherResult:
    """An output that is no ordinary tensor: its type's name, or its kind, and a short repr."""

    type: str
    text: str

    @property
    def is_tensor(self) -> bool:
        """Return whether it is a tensor, of a kind that has no elements to read one by one."""
        return self.type.endswith(" tensor")

    @property
    def noun(self) -> str:
        """Return what it is, to follow a verb: `None`, `an int` or `an object of the class X`."""
        if self.type == "NoneType":
            return "None"
        if self.is_tensor:
            return f"a {self.type}"
        if self.type in _PLAIN:
            return f"{'an' if self.type == 'int' else 'a'} {self.type}"
        return f"an object of the class `{self.type}`"


ReturnedResult = TensorResult | OtherResult


# What a constant of a kernel may hold.
Constant = None | bool | int | float | str


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """A kernel launch by the candidate: what `tiles` and the compiler need to know."""

    kernel: str
    grid: tuple[int, ...]
    constants: dict[str, Constant]
    signature: dict[str, str]
    configs: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelLaunches:
    """A kernel or operator that did work in a call, and how often.

    Attributes:
        module: file of the kernel, or namespace of the operator.
        own: whether the candidate's source brings it.
        device_s: time of the device that it took, where that was asked for.
    """

    name: str
    module: str
    own: bool
    launches: int
    device_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelWork:
    """How much of a call runs the candidate's own kernels.

    Attributes:
        runs: own kernels first, then PyTorch's operators: those that compute or copy on the device,
            not views, nor allocations with what fills them.
        seen: whether launches of the candidate's kernels are seen, if it makes any.
        elements: how many the outputs have.
        stored: how many of them lie where an own kernel has stored; None where that is not seen.
    """

    runs: tuple[KernelLaunches, ...] = ()
    seen: bool = True
    elements: int = 0
    stored: int | None = None

    @property
    def own(self) -> int:
        """How often the candidate's own kernels were launched."""
        return sum(run.launches for run in self.runs if run.own)

    @property
    def launches(self) -> int:
        """All launches, those of the library among them."""
        return sum(run.launches for run in self.runs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """An access of the interpreter's outside of all memory that a launch may touch.

    Attributes:
        line: of the source; None if it is not known.
        write: whether it is a store or an atomic operation; it was not performed.
        buffer: the nearest one: an input's name, an allocation, or a parameter of the kernel.
        element: which of the buffer's elements it would be.
        elements: how many the buffer has, from its first to its last.
    """

    kernel: str
    line: int | None
    write: bool
    program: tuple[int, ...]
    buffer: str
    element: int
    elements: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Binary:
    """A kernel compiled for a target, and the static facts read from it; null means not read."""

    kernel: str
    target: str
    ok: bool
    error: str | None = None
    registers: int | None = None
    spills: int | None = None
    shared_bytes: int | None = None
    instructions: int | None = None
    num_warps: int | None = None
    tensor_cores: bool | None = None
    uses: tuple[str, ...] | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardedAllocation:
    """An allocation in the judge's memory: where its first band begins, and its size between them.

    The bands are of the dtype's poison.
    """

    name: str
    dtype: str
    start: int
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """How one Load or Call ended.

    `ended` is one of: `returned`; `raised` (the candidate raised: `error`, `message`);
    `load_failed` (the source did not import or has no such entry); `compile_failed` (Triton or
    nvcc refused the kernel); `unsupported` (this machine or the interpreter cannot run it);
    `died` (`signal` or exit code in `message`); `timeout`; `flooded` (too much output);
    `lost` (our own side broke).

    Attributes:
        results: what the entry returned, flattened from a tuple or list.
        buffers: each input's whole buffer after the call, guard bands and gaps included.
        guards_hit: names of candidate allocations whose guard bands were written.
        allocations: those in the judge's memory, whose bands it reads itself.
        used: ranges of the judge's memory that tensors still use after the call.
        reused: which results lie where a result of an earlier call still lies.
        accesses: out of bounds, as the interpreter saw them.
        inputs_changed: names of inputs that changed after the call, or after the one before.
        results_changed: whether a result did.
        earlier_changed: whether this call has changed a result of the call before.
        threads_left: how many threads of Python ran on after the call.
        launches: distinct kernel launches of this call or rehearsal.
        work: whose work the call is, where the judge asked for it.
        timings: of a batch: `device_s` between events around the calls, `host_s` until the last
            call returned; of a single call also `peak_bytes`, the memory allocated during it. For
            `CountOperators`, the counts.
        dirty: the child cannot be trusted with a further call (a broken CUDA context).
        lean: an extension was built with few of PyTorch's headers.
    """

    ended: str
    error: str | None = None
    message: str | None = None
    signal: int | None = None
    results: tuple[ReturnedResult, ...] = ()
    buffers: dict[str, Data] = field(default_factory=dict)
    guards_hit: tuple[str, ...] = ()
    allocations: tuple[GuardedAllocation, ...] = ()
    used: tuple[int, ...] = ()
    reused: tuple[int, ...] = ()
    accesses: tuple[Access, ...] = ()
    inputs_changed: tuple[str, ...] = ()
    results_changed: bool = False
    earlier_changed: bool = False
    threads_left: int = 0
    launches: tuple[Launch, ...] = ()
    work: KernelWork | None = None
    binaries: tuple[Binary, ...] = ()
    timings: dict[str, float] = field(default_factory=dict)
    output: str = ""
    seconds: float | None = None
    dirty: bool = False
    lean: bool = False
