"""Define the records of what was judged: a case, an attempt, and what was learned of it."""

from __future__ import annotations

from typing import Literal, get_args

import msgspec
from msgspec import UNSET, UnsetType, field

from kerneltruth.documents.case import Case
from kerneltruth.documents.model import Model, Number
from kerneltruth.documents.verdict import FailKind, QuantizationRule, Verdict, VerdictWord

Headers = Literal["lean", "full"]
Status = Literal["held", "broken", "refused", "not_tried", "not_applicable"]
Obligation = Literal[
    "published",
    "shapes",
    "values",
    "attributes",
    "dtypes",
    "layouts",
    "specials",
    "empty",
    "gradients",
    "interface",
    "memory",
    "repeatable",
    "kernel",
]
OBLIGATIONS: tuple[Obligation, ...] = get_args(Obligation)


class ErrorStats(Model, frozen=True, kw_only=True):
    """Error of one output against the float64 reference, over elements finite on both sides.

    A value that was not measured is None, never 0. `max_bound_ratio` is error over bound; ULP is
    the distance in representable values of the output dtype.
    """

    count: int
    num_exceeding: int
    max_abs: Number | None = None
    mean_abs: Number | None = None
    p50_abs: Number | None = None
    p90_abs: Number | None = None
    p99_abs: Number | None = None
    max_rel: Number | None = None
    mean_rel: Number | None = None
    max_ulp: Number | None = None
    mean_ulp: Number | None = None
    worst_index: tuple[int, ...] | None = None
    max_bound_ratio: Number | None = None


class ErrorMap(Model, frozen=True, kw_only=True):
    """Where an output is wrong, as a picture that a person can read in JSON.

    Attributes:
        output: name of the output.
        shape: of the output. The picture shows it with all dims but the last folded into rows.
        lines: of one character per cell, from the first rows down. A cell stands for equal shares
            of rows and columns: `.` none of its elements is wrong, `1` to `9` up to that many
            tenths of them, `#` all.
    """

    output: str
    shape: tuple[int, ...]
    lines: tuple[str, ...]

    def __post_init__(self) -> None:
        if len({len(line) for line in self.lines}) > 1:
            raise ValueError(f"lines of several lengths: {self.lines}")


class QuantizationFault(Model, frozen=True, kw_only=True):
    """Which rule of its task's quantization a wrong kernel departs from, as its results prove.

    Attributes:
        words: another rule in place of it, as a clause; under that rule the results are right.
        cases: how many wrong results are right under it; no result that was tried is wrong.
    """

    rule: QuantizationRule
    words: str
    cases: int

    @property
    def sentence(self) -> str:
        """The fault as a sentence of an explanation."""
        rule = self.rule.replace("_", " ")
        return (
            f"Its quantization departs from the task ({rule}): the results of {self.cases} wrong "
            f"cases are right if {self.words}."
        )


class Mismatch(Model, frozen=True, kw_only=True):
    """How the form of an output differs from the promise, if its values were compared."""

    kind: FailKind
    detail: str
    output: str


class InterfaceNote(Model, frozen=True, kw_only=True):
    """A mismatch of form over all cases.

    Attributes:
        kind: `dtype` or `shape`.
        detail: what the first case returned, and what was expected.
        output: name of the output.
        cases: how many cases show it.
        core: how many of them belong to the core domain, where it counts as a failure.
        first: the first case that counts most: of the core domain, if any is.
    """

    kind: FailKind
    detail: str
    output: str
    cases: int
    core: int
    first: Case


class Judgement(Model, frozen=True, kw_only=True):
    """One case judged (under one configuration of an autotuned kernel).

    Attributes:
        interface: how the form of right values differs from the promise.
    """

    case: Case
    verdict: Verdict
    stats: ErrorStats | None = None
    config: int = 0
    digests: dict[str, str] = field(default_factory=dict)
    reference_digest: str | None = None
    output_digest: str | None = None
    seconds: Number = 0.0
    interface: tuple[Mismatch, ...] = ()


class CandidateRef(Model, frozen=True, kw_only=True):
    """A candidate as results name it; the source is stored by its hash.

    Attributes:
        reads: of a folder or a package, the files that the source holds, which are all that the
            candidate may read; left out for one file.
    """

    sha256: str
    path: str
    language: str
    entry: str
    reads: tuple[str, ...] | UnsetType = UNSET


class BinaryRecord(Model, frozen=True, kw_only=True):
    """A kernel compiled for a target, and the static facts read from it; null was not read.

    Attributes:
        uses: `wide_loads` (16 bytes or more at once), `async_copies`, `tma`, `atomics` on global
            memory.
    """

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
    seconds: Number | None = None


class DtypeCount(Model, frozen=True, kw_only=True):
    """Cases of one dtype: judged, of these returned to be judged, and failed in whatever way."""

    cases: int = 0
    returned: int = 0
    failed: int = 0


class KernelLaunchesRecord(Model, frozen=True, kw_only=True):
    """A kernel or operator that did work in a call, and how often it was launched.

    Attributes:
        module: file of a kernel, or namespace of PyTorch's operator.
        own: whether the candidate's source brings it.
    """

    name: str
    module: str
    own: bool
    launches: int


class KernelFact(Model, frozen=True, kw_only=True):
    """Own and library kernels of one call, and whether its result needs the candidate's own.

    Attributes:
        own: the share of launches that are of the candidate's own kernels; null where launches of
            kernels in its language are not seen, or where nothing is launched.
        library: the other share.
        own_launches: of the candidate's own kernels; null where they are not seen.
        launches: all that are seen: own ones, and PyTorch's operators that compute or copy.
        runs: the same by name, own ones first.
        elements: of the outputs.
        stored: how many of them lie where an own kernel has stored, in the interpreter.
        case: that was called.
        probe: with own kernels that do nothing, the result is wrong (`needed`), or still right
            (`not_needed`); null where it was not asked.
        reason: why it was not asked.
    """

    own: Number | None
    library: Number | None
    own_launches: int | None
    launches: int
    runs: tuple[KernelLaunchesRecord, ...]
    elements: int
    stored: int | None
    case: str
    probe: Literal["needed", "not_needed"] | None = None
    reason: str | None = None


class ProfileEntry(Model, frozen=True, kw_only=True):
    """The result of one obligation (see `oracle.obligations`).

    Attributes:
        promised: whether the task's prompt promises it.
        decisive: whether the contract asks it.
        cases: how many cases held.
        reason: why it was refused or not tried; of `published`, at which sizes it was tried, if
            these are smaller than the benchmark's.
        untried: kinds of layout, values or size within it that no case tried though others held,
            and why.
        failure: the first case that breaks it, or that is refused.
        finding: id of the finding that shows how it is broken; None where there is none.
    """

    status: Status
    promised: bool
    decisive: bool = False
    cases: int = 0
    reason: str | None = None
    failure: Judgement | None = None
    finding: str | None = None
    untried: dict[str, str] = field(default_factory=dict)


SecondRoundReason = Literal["asked", "drawn", "suspect"]
SuspectFact = Literal[
    "replaces_names",
    "threads_left",
    "processes_left",
    "calls_lost",
    "repetition_differs",
    "kernels_not_needed",
]


class Suspicion(Model, frozen=True, kw_only=True):
    """A fact that makes a right candidate suspect, which is judged again then."""

    fact: SuspectFact
    detail: str


class SecondRound(Model, frozen=True, kw_only=True):
    """What became of a candidate that passed and was judged again.

    Attributes:
        reason: `asked` by an option, `drawn` at random, or `suspect`, which makes it stricter.
        seed: of its cases.
        verdict: of this round, which the candidate's follows.
        cases: judged in it.
    """

    reason: SecondRoundReason
    seed: int
    verdict: VerdictWord
    cases: int


class Attempt(Model, frozen=True, kw_only=True):
    """One candidate judged: exactly one verdict, and everything a result line needs.

    Attributes:
        torch_only: whether the source has no kernel of its own, only calls of PyTorch.
        verdict: of the case that decides, or of the whole if none that decides failed.
        cases: cases judged (declined and unrefereeable ones not among them).
        failed: how many of them break or refuse what the contract asks.
        dtypes: the same by dtype, and how many calls came back to be judged.
        declined: refusals in the extended domain.
        unrefereeable: cases that were replaced because their bound lets a decoy pass, by reason.
        void: cases that were replaced because PyTorch's own function fails them too, by reason.
        skipped: cases not run, with a count and the reason.
        interface: outputs whose form differs from the promise while their values are right.
        failure: the judgement that decides.
        minimal: the smallest failing case found.
        explanation: where and how the output is wrong, in one or two sentences.
        shown: of the smallest case, the inputs, what is expected and what came, where that is
            short enough for a line.
        error_map: the same as a picture; it is stored with the finding alone.
        quantization: which rule of a quantized task it departs from; None where nothing proves one.
        binaries: every specialization compiled, with its static facts.
        headers: of CUDA C++, which of PyTorch's headers it was built with: few, or all.
        own_weights: why a model was judged with the weights that its constructor draws; None where
            it was given the judge's.
        profile: what became of each obligation, by name, such as `dtypes.float16`; empty where an
            earlier version judged.
        score: from 0 to 1, by the profile (see `oracle.score`).
        kernel: whose work a call is; None where none returned, or an earlier version judged.
        contract: whose obligations decided; empty where an earlier version judged.
        hazards: what is silently wrong beyond the contract: a line by obligation.
        second_round: of a candidate that passed and was judged again; the rest is of the first
            round if both passed, and of the second if it did not.
        suspicions: of either round; empty where the first did not pass.
    """

    task: str
    candidate: CandidateRef
    verdict: Verdict
    cases: int
    failed: int
    declined: tuple[tuple[Case, str], ...] = ()
    unrefereeable: dict[str, int] = field(default_factory=dict)
    skipped: dict[str, int] = field(default_factory=dict)
    failure: Judgement | None = None
    minimal: Case | None = None
    explanation: str = ""
    error_map: ErrorMap | None = None
    binaries: tuple[BinaryRecord, ...] = ()
    worst_ratio: Number | None = None
    seconds: Number = 0.0
    dtypes: dict[str, DtypeCount] = field(default_factory=dict)
    void: dict[str, int] = field(default_factory=dict)
    interface: tuple[InterfaceNote, ...] = ()
    shown: str = ""
    torch_only: bool = False
    headers: Headers | None = None
    own_weights: str | None = None
    profile: dict[str, ProfileEntry] = field(default_factory=dict)
    score: Number | None = None
    kernel: KernelFact | None = None
    contract: str = ""
    hazards: dict[str, str] = field(default_factory=dict)
    second_round: SecondRound | None = None
    suspicions: tuple[Suspicion, ...] = ()
    quantization: QuantizationFault | None = None


replace = msgspec.structs.replace
