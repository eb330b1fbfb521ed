"""The JSON of `check`, `replay` and `minimize`."""

from __future__ import annotations

from typing import Literal

from kerneltruth.documents.case import Case
from kerneltruth.documents.model import Model, Number
from kerneltruth.documents.records import (
    BinaryRecord,
    CandidateRef,
    ErrorStats,
    KernelFact,
    QuantizationFault,
    SecondRound,
    Status,
    Suspicion,
)
from kerneltruth.documents.verdict import Cause, FailKind, VerdictWord


class DeclinedCase(Model, frozen=True, kw_only=True):
    """A case of the extended domain that the kernel refused, and the reason."""

    case: str
    reason: str


class InterfaceDocument(Model, frozen=True, kw_only=True):
    """A mismatch of form over all cases whose values are right."""

    kind: FailKind
    detail: str
    output: str
    cases: int
    core: int
    first: Case
    first_summary: str


class ObligationDocument(Model, frozen=True, kw_only=True):
    """The result of one obligation.

    Attributes:
        case: the first that breaks it, or that is refused.
        untried: kinds within it that no case tried though others held, and why.
    """

    status: Status
    promised: bool
    decisive: bool
    cases: int
    reason: str | None
    kind: FailKind | None
    detail: str
    case: Case | None
    case_summary: str | None
    finding: str | None
    untried: dict[str, str]


class CheckDocument(Model, frozen=True, kw_only=True):
    """`check --json`.

    Attributes:
        finding: the file of the finding that decides; its name alone where nothing was written.
        run: the run directory; null where nothing was written.
    """

    schema: Literal[2] = 2
    task: str
    also_in: tuple[str, ...]
    candidate: CandidateRef
    torch_only: bool
    contract: str
    passed: bool
    verdict: VerdictWord
    hazards: tuple[str, ...]
    declined: tuple[DeclinedCase, ...]
    kind: FailKind | None
    output: str | None
    causes: tuple[Cause, ...]
    inputs: tuple[str, ...]
    detail: str
    explanation: str
    cases: int
    failed: int
    unrefereeable: dict[str, int]
    void: dict[str, int]
    skipped: dict[str, int]
    own_weights: str | None
    interface: tuple[InterfaceDocument, ...]
    profile: dict[str, ObligationDocument]
    score: Number | None
    kernel: KernelFact | None
    second_round: SecondRound | None
    suspicions: tuple[Suspicion, ...]
    finding: str | None
    failing: Case | None
    failing_summary: str | None
    domain: Literal["core", "extended"] | None
    minimal: Case | None
    minimal_summary: str | None
    minimal_shown: str
    stats: ErrorStats | None
    worst_ratio: Number | None
    binaries: tuple[BinaryRecord, ...]
    seed: int
    seconds: Number
    run: str | None
    quantization: QuantizationFault | None = None


class RefusedFile(Model, frozen=True, kw_only=True):
    """A path of `check PATH ...` that holds nothing to judge, and what to do about it."""

    path: str
    reason: str


class CheckCounts(Model, frozen=True, kw_only=True):
    """Counts of verdicts of `check PATH ...`; they sum to the number of files."""

    passed: int
    failed: int
    not_judged: int
    refused: int


class ChecksDocument(Model, frozen=True, kw_only=True):
    """`check --json` of several files, of a folder, or of both, in the order given."""

    schema: Literal[1] = 1
    checks: tuple[CheckDocument, ...]
    refused: tuple[RefusedFile, ...]
    counts: CheckCounts
    seconds: Number
    run: str | None


class ReplayResult(Model, frozen=True, kw_only=True):
    """One finding replayed; `verdict` is null if it did not run.

    Attributes:
        errors: files with the errors of each element; null if none were asked for, and empty where
            no output of the right form came back.
    """

    finding: str
    id: str
    obligations: tuple[str, ...]
    inputs: Literal["same", "differ"]
    reference: Literal["same", "differ", "not compared"]
    recorded: VerdictWord
    recorded_kind: FailKind | None
    verdict: VerdictWord | None
    kind: FailKind | None
    output: str
    reproduced: bool
    reason: str
    errors: tuple[str, ...] | None = None


class ReplayDocument(Model, frozen=True, kw_only=True):
    """`replay --json`."""

    schema: Literal[1] = 1
    findings: int
    reproduced: int
    device: str
    results: tuple[ReplayResult, ...]


class MinimizeDocument(Model, frozen=True, kw_only=True):
    """`minimize --json`."""

    schema: Literal[1] = 1
    finding: str
    obligations: tuple[str, ...]
    verdict: VerdictWord
    kind: FailKind | None
    case: Case
    minimal: Case
    minimal_summary: str
    minimal_shown: str
    evaluations: int
    explanation: str
    script: str
